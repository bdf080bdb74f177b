//! Reading a record log; see the parent for the layout.
//!
//! What is wrong in a log may be a write that a crash cut short, or damage to what was whole. The
//! reader tells them apart by what it finds:
//! - The file ends inside a record, or the bad spot is space that was never written (zeros up to
//!   the end of a page or of the file): a crash did that. The log ends at the last whole record
//!   before it, even if records follow that reached the disk before their elders.
//! - Anything else that is bad, with whole fragments after it: damage.
//! - Anything else that is bad, with nothing whole after it: taken for a torn tail, and told as
//!   [`TornKind::Garbage`], because a damaged last record looks the same.

use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{BLOCK_BYTES, FragmentType, HEADER_BYTES};
use crate::fs::ReadFile;
use crate::lsm::coding::checksum;
use crate::{Error, Result};

const CHUNK_BYTES: usize = 8 * BLOCK_BYTES;
/// Systems write files back in pages of this size or a multiple.
const PAGE_BYTES: u64 = 4096;
/// So many zeros before a page's end pass for space that was never written.
const UNWRITTEN_ZEROS: usize = 8;

/// What to do about damage with whole records after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnCorruption {
    /// Return [`Error::Corruption`].
    Fail,
    /// Go on with the next whole record; [`LogReader::skipped`] tells what was left out.
    Skip,
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    /// Where its first fragment starts in the file.
    pub(crate) offset: u64,
    /// Where its last fragment ends: the log may be cut here.
    pub(crate) end: u64,
    pub(crate) bytes: &'a [u8],
}

/// How a log ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tail {
    /// With its last record.
    Clean,
    Torn(Torn),
}

/// What lies behind the last whole record. Before anything is appended to such a log, cut it at
/// `valid_up_to` and sync it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Torn {
    /// The end of the last whole record before the bad spot.
    pub(crate) valid_up_to: u64,
    /// The bad spot.
    pub(crate) offset: u64,
    pub(crate) kind: TornKind,
    pub(crate) problem: String,
    /// Whether whole fragments lie behind the bad spot: written after what is missing, they must
    /// not be applied.
    pub(crate) records_follow: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TornKind {
    /// The file ends inside a record.
    Truncated,
    /// Space was reserved or counted into the file's length, and never written.
    Unwritten,
    /// Bytes that are no record. A crash leaves them on some file systems; so does damage to the
    /// last record.
    Garbage,
}

/// A stretch of the file that [`OnCorruption::Skip`] left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skipped {
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) problem: String,
}

/// Yields the records of a log in order. Memory: a chunk of the file and one record.
#[derive(Debug)]
pub(crate) struct LogReader {
    fragments: FragmentReader,
    on_corruption: OnCorruption,
    /// Where the next fragment is looked for.
    at: u64,
    valid_up_to: u64,
    /// Fragments of a record in several.
    assembled: Vec<u8>,
    /// What was behind a bad spot does not start a record yet.
    resyncing: bool,
    skipped: Vec<Skipped>,
    tail: Option<Tail>,
}

impl LogReader {
    /// Reads `file`, whose path is told in errors, from its start to the length it has now.
    pub(crate) fn new(
        file: Arc<dyn ReadFile>,
        path: &Path,
        on_corruption: OnCorruption,
    ) -> Result<Self> {
        Ok(Self {
            fragments: FragmentReader::new(file, path)?,
            on_corruption,
            at: 0,
            valid_up_to: 0,
            assembled: Vec::new(),
            resyncing: false,
            skipped: Vec::new(),
            tail: None,
        })
    }

    /// The next record; `None` at the end, and [`tail`](Self::tail) tells how it ended.
    ///
    /// # Errors
    /// I/O errors; with [`OnCorruption::Fail`] damage in the middle.
    pub(crate) fn next(&mut self) -> Result<Option<Record<'_>>> {
        let Some(found) = self.find_record()? else { return Ok(None) };
        self.at = found.last.end;
        self.valid_up_to = found.last.end;
        self.resyncing = false;
        let bytes = match found.last.kind {
            FragmentType::Full => self.fragments.payload(&found.last)?,
            _ => &self.assembled,
        };
        Ok(Some(Record { offset: found.offset, end: found.last.end, bytes }))
    }

    /// How the log ended; `None` before [`next`](Self::next) returned `None`.
    pub(crate) fn tail(&self) -> Option<&Tail> {
        self.tail.as_ref()
    }

    /// What was left out so far.
    pub(crate) fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    fn find_record(&mut self) -> Result<Option<FoundRecord>> {
        let mut start = None;
        self.assembled.clear();
        while self.tail.is_none() {
            let fragment = match self.fragments.read(self.at)? {
                Step::Fragment(fragment) => fragment,
                Step::End => {
                    self.end(start);
                    break;
                }
                Step::Bad(bad) => {
                    let resume = self.fragments.resync(&bad)?;
                    self.handle_bad(bad, resume)?;
                    start = None;
                    continue;
                }
            };
            match (fragment.kind, start) {
                (FragmentType::Full | FragmentType::First, Some(offset)) => {
                    // Older writers left an empty FIRST at the end of a block and began again.
                    if !self.assembled.is_empty() {
                        let bad = Bad::garbage(offset, "a record without its end");
                        self.handle_bad(bad, Some(fragment.start))?;
                    }
                    start = None;
                    self.assembled.clear();
                    self.at = fragment.start;
                }
                (FragmentType::Full, None) => {
                    return Ok(Some(FoundRecord { offset: fragment.start, last: fragment }));
                }
                (FragmentType::First, None) => {
                    start = Some(fragment.start);
                    self.extend(&fragment)?;
                }
                (FragmentType::Middle, Some(_)) => self.extend(&fragment)?,
                (FragmentType::Last, Some(offset)) => {
                    self.extend(&fragment)?;
                    return Ok(Some(FoundRecord { offset, last: fragment }));
                }
                (FragmentType::Middle | FragmentType::Last, None) => {
                    let bad = Bad::garbage(fragment.start, "a fragment without the record's start");
                    self.handle_bad(bad, Some(fragment.end))?;
                }
            }
        }
        Ok(None)
    }

    fn extend(&mut self, fragment: &Fragment) -> Result<()> {
        self.assembled.extend_from_slice(self.fragments.payload(fragment)?);
        self.at = fragment.end;
        Ok(())
    }

    fn end(&mut self, start: Option<u64>) {
        self.tail = Some(match start {
            // An empty FIRST alone holds nothing, but must not be appended to either.
            Some(offset) => Tail::Torn(Torn {
                valid_up_to: self.valid_up_to,
                offset,
                kind: TornKind::Truncated,
                problem: "the file ends between the fragments of a record".to_owned(),
                records_follow: false,
            }),
            None => Tail::Clean,
        });
    }

    /// Decides over a bad spot: the end of the log, an error, or on at `resume`, the next whole
    /// fragment.
    fn handle_bad(&mut self, bad: Bad, resume: Option<u64>) -> Result<()> {
        let ends = match (self.on_corruption, resume) {
            (_, None) => true,
            (OnCorruption::Fail, Some(_)) => bad.kind == TornKind::Unwritten,
            (OnCorruption::Skip, Some(_)) => false,
        };
        if ends {
            self.tail = Some(Tail::Torn(Torn {
                valid_up_to: self.valid_up_to,
                offset: bad.at,
                kind: bad.kind,
                problem: bad.problem,
                records_follow: resume.is_some(),
            }));
            return Ok(());
        }
        if self.on_corruption == OnCorruption::Fail {
            return Err(Error::corruption(&self.fragments.path, bad.at, bad.problem));
        }
        let resume = resume.unwrap_or(self.fragments.length);
        match self.skipped.last_mut() {
            // The rest of a record whose start was bad belongs to the same stretch.
            Some(last) if self.resyncing => last.length = resume - last.offset,
            _ => {
                let offset = self.valid_up_to.max(bad.at.min(self.at));
                let problem = bad.problem;
                self.skipped.push(Skipped { offset, length: resume - offset, problem });
            }
        }
        self.resyncing = true;
        self.at = resume;
        self.assembled.clear();
        Ok(())
    }
}

struct FoundRecord {
    offset: u64,
    last: Fragment,
}

/// A fragment whose checksum is right.
#[derive(Debug, Clone, Copy)]
struct Fragment {
    start: u64,
    end: u64,
    kind: FragmentType,
}

#[derive(Debug)]
struct Bad {
    at: u64,
    /// Where the fragment would end, if its header is to be believed.
    claimed_end: Option<u64>,
    kind: TornKind,
    problem: String,
}

impl Bad {
    fn garbage(at: u64, problem: impl Into<String>) -> Self {
        Self { at, claimed_end: None, kind: TornKind::Garbage, problem: problem.into() }
    }
}

enum Step {
    Fragment(Fragment),
    Bad(Bad),
    End,
}

/// Reads fragments at any place of the file, a chunk at a time.
#[derive(Debug)]
struct FragmentReader {
    file: Arc<dyn ReadFile>,
    path: PathBuf,
    length: u64,
    chunk: Vec<u8>,
    /// A multiple of the block size.
    chunk_start: u64,
    scratch: Vec<u8>,
}

impl FragmentReader {
    fn new(file: Arc<dyn ReadFile>, path: &Path) -> Result<Self> {
        let length = file.length()?;
        let path = path.to_path_buf();
        Ok(Self { file, path, length, chunk: Vec::new(), chunk_start: 0, scratch: Vec::new() })
    }

    /// The first fragment at or after `at`, which is a fragment's end or a block's start.
    fn read(&mut self, mut at: u64) -> Result<Step> {
        let mut room = room_in_block(at);
        if room < HEADER_BYTES {
            at += room as u64;
            room = BLOCK_BYTES;
        }
        if at >= self.length {
            return Ok(Step::End);
        }
        let file_length = self.length;
        let block = self.rest_of_block(at)?;
        let Some((header, after)) = block.split_first_chunk::<HEADER_BYTES>() else {
            let kind = match block.iter().all(|byte| *byte == 0) {
                true => TornKind::Unwritten,
                false => TornKind::Truncated,
            };
            let problem = "the file ends inside a fragment's header".to_owned();
            return Ok(Step::Bad(Bad { at, claimed_end: None, kind, problem }));
        };
        let [c0, c1, c2, c3, l0, l1, kind_byte] = *header;
        let length = usize::from(u16::from_le_bytes([l0, l1]));
        if header.iter().all(|byte| *byte == 0) {
            let problem = "space that was never written".to_owned();
            return Ok(Step::Bad(Bad {
                at,
                claimed_end: None,
                kind: TornKind::Unwritten,
                problem,
            }));
        }
        let end = at + (HEADER_BYTES + length) as u64;
        if length > room - HEADER_BYTES {
            return self.bad(at, None, format!("a fragment of {length} bytes crosses its block"));
        }
        let Some(payload) = after.get(..length) else {
            let problem =
                format!("a fragment of {length} bytes, and the file ends at {file_length}");
            return Ok(Step::Bad(Bad {
                at,
                claimed_end: None,
                kind: TornKind::Truncated,
                problem,
            }));
        };
        let (stored, computed) =
            (u32::from_le_bytes([c0, c1, c2, c3]), checksum(&[&[kind_byte], payload]));
        if stored != computed {
            let problem =
                format!("checksum mismatch: stored {stored:08x}, computed {computed:08x}");
            return self.bad(at, Some(end), problem);
        }
        match FragmentType::parse(kind_byte) {
            Some(kind) => Ok(Step::Fragment(Fragment { start: at, end, kind })),
            None => self.bad(at, Some(end), format!("unknown fragment type {kind_byte}")),
        }
    }

    /// The payload of a fragment that `read` returned.
    fn payload(&mut self, fragment: &Fragment) -> Result<&[u8]> {
        let length = usize::try_from(fragment.end - fragment.start).unwrap_or(usize::MAX);
        let block = self.rest_of_block(fragment.start)?;
        // `read` has seen the whole fragment in the same bytes.
        Ok(block.get(HEADER_BYTES..length).unwrap_or_default())
    }

    /// The first whole fragment behind a bad spot: where the bad one claims to end, else at the
    /// start of a later block, which is always the start of a fragment.
    fn resync(&mut self, bad: &Bad) -> Result<Option<u64>> {
        if let Some(end) = bad.claimed_end
            && let Step::Fragment(next) = self.read(end)?
        {
            return Ok(Some(next.start));
        }
        let mut block = bad.at + room_in_block(bad.at) as u64;
        while block < self.length {
            if let Step::Fragment(next) = self.read(block)? {
                return Ok(Some(next.start));
            }
            block += BLOCK_BYTES as u64;
        }
        Ok(None)
    }

    fn bad(&mut self, at: u64, claimed_end: Option<u64>, problem: String) -> Result<Step> {
        let end = claimed_end.unwrap_or(at + HEADER_BYTES as u64);
        let kind = match self.is_unwritten(at, end)? {
            true => TornKind::Unwritten,
            false => TornKind::Garbage,
        };
        Ok(Step::Bad(Bad { at, claimed_end, kind, problem }))
    }

    /// Whether a page that overlaps `start..end` ends in zeros, and so may never have been
    /// written.
    fn is_unwritten(&mut self, start: u64, end: u64) -> Result<bool> {
        let block_end = start + room_in_block(start) as u64;
        let block = self.rest_of_block(start)?;
        let mut page_end = start;
        while page_end < end.min(block_end) {
            page_end = (page_end / PAGE_BYTES + 1) * PAGE_BYTES;
            let upto = usize::try_from(page_end - start).unwrap_or(usize::MAX).min(block.len());
            let from = upto.saturating_sub(UNWRITTEN_ZEROS);
            if block[from..upto].iter().all(|byte| *byte == 0) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The bytes from `at`, which lies in the file, to the end of its block or of the file.
    fn rest_of_block(&mut self, at: u64) -> Result<&[u8]> {
        let block_start = at - at % BLOCK_BYTES as u64;
        let chunk_end = self.chunk_start + self.chunk.len() as u64;
        if block_start < self.chunk_start || at >= chunk_end {
            self.load(block_start)?;
        }
        let from = usize::try_from(at - self.chunk_start).unwrap_or(usize::MAX);
        let upto = from.saturating_add(room_in_block(at)).min(self.chunk.len());
        Ok(self.chunk.get(from..upto).unwrap_or_default())
    }

    fn load(&mut self, block_start: u64) -> Result<()> {
        let left = self.length - block_start;
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        self.chunk.clear();
        let mut scratch = mem::take(&mut self.scratch);
        let bytes = self.file.read_at(block_start, length, &mut scratch)?;
        self.chunk.extend_from_slice(bytes);
        self.chunk_start = block_start;
        self.scratch = scratch;
        Ok(())
    }
}

fn room_in_block(at: u64) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "less than BLOCK_BYTES")]
    let used = (at % BLOCK_BYTES as u64) as usize;
    BLOCK_BYTES - used
}
