//! The recorded history of a simulated disk, and the disks that crashes within it leave.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::SimFs;
use super::crash::CrashModel;
use super::disk::{Disk, FileNumber};

/// One mutating call, as it took effect.
#[derive(Clone)]
#[expect(missing_docs, reason = "the fields are the arguments of the calls they are named after")]
pub enum Call {
    CreateDirectory { path: Arc<Path> },
    Create { path: Arc<Path>, file: FileNumber },
    Write { path: Arc<Path>, file: FileNumber, offset: usize, bytes: Arc<[u8]> },
    Truncate { path: Arc<Path>, file: FileNumber, length: usize },
    SetMode { path: Arc<Path>, file: FileNumber, mode: u32 },
    Sync { path: Arc<Path>, file: FileNumber },
    FailedSync { path: Arc<Path>, file: FileNumber },
    Rename { from: Arc<Path>, to: Arc<Path> },
    HardLink { from: Arc<Path>, to: Arc<Path> },
    Remove { path: Arc<Path> },
    SyncDirectory { path: Arc<Path> },
}

impl Call {
    /// The call with only the first `length` bytes of what it wrote; `None` for other calls.
    pub(super) fn cut_short(&self, length: usize) -> Option<Self> {
        match self {
            Self::Write { path, file, offset, bytes } => Some(Self::Write {
                path: Arc::clone(path),
                file: *file,
                offset: *offset,
                bytes: bytes.get(..length)?.into(),
            }),
            _ => None,
        }
    }

    /// How many bytes the call wrote.
    pub(super) fn written_bytes(&self) -> usize {
        match self {
            Self::Write { bytes, .. } => bytes.len(),
            _ => 0,
        }
    }
}

/// Prints like a line of strace: one line a call, lengths instead of bytes.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreateDirectory { path } => write!(f, "create_directory {}", path.display()),
            Self::Create { path, file } => write!(f, "create {} = {file:?}", path.display()),
            Self::Write { path, file, offset, bytes } => {
                write!(f, "write {} {file:?} at {offset}: {} bytes", path.display(), bytes.len())
            }
            Self::Truncate { path, file, length } => {
                write!(f, "truncate {} {file:?} to {length}", path.display())
            }
            Self::SetMode { path, file, mode } => {
                write!(f, "set_mode {} {file:?} {mode:o}", path.display())
            }
            Self::Sync { path, file } => write!(f, "sync {} {file:?}", path.display()),
            Self::FailedSync { path, file } => {
                write!(f, "sync {} {file:?} (failed)", path.display())
            }
            Self::Rename { from, to } => write!(f, "rename {} {}", from.display(), to.display()),
            Self::HardLink { from, to } => {
                write!(f, "hard_link {} {}", from.display(), to.display())
            }
            Self::Remove { path } => write!(f, "remove {}", path.display()),
            Self::SyncDirectory { path } => write!(f, "sync_directory {}", path.display()),
        }
    }
}

/// The mutating calls of a workload in their order, and the disk they started from.
#[derive(Debug, Clone)]
pub struct Trace {
    base: Disk,
    calls: Vec<Call>,
}

impl Trace {
    pub(super) fn new(base: Disk, calls: Vec<Call>) -> Self {
        Self { base, calls }
    }

    /// The number of mutating calls.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether nothing was changed.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The calls, the first one first.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The disk after a crash just behind the first `cut` calls (all of them if there are fewer).
    pub fn crash_at(&self, cut: usize, model: CrashModel) -> SimFs {
        let mut images = self.images(model);
        for call in self.calls.iter().take(cut.min(self.calls.len())) {
            images.advance(call);
        }
        images.image().disk
    }

    /// The disks after a crash at each cut, from 0 to [`len`](Self::len), made one from the other:
    /// an image costs about what its calls changed.
    pub fn images(&self, model: CrashModel) -> Images<'_> {
        let disk = self.base.clone();
        Images { calls: &self.calls, model, cut: 0, disk, torn: None, started: false, seen: None }
    }
}

/// The disk after one crash.
#[derive(Debug)]
pub struct Image {
    /// How many mutating calls had been made.
    pub cut: usize,
    /// What is on the disk now.
    pub disk: SimFs,
    /// The disk is surely the same as that of the cut before: what was found there is found here.
    pub unchanged: bool,
}

/// See [`Trace::images`].
#[derive(Debug)]
pub struct Images<'a> {
    calls: &'a [Call],
    model: CrashModel,
    cut: usize,
    disk: Disk,
    /// The disk with the last call torn, if it was a write and the model tears.
    torn: Option<Disk>,
    started: bool,
    /// The generation of the durable disk at the cut before.
    seen: Option<u64>,
}

impl Images<'_> {
    fn advance(&mut self, call: &Call) {
        self.cut += 1;
        self.torn = None;
        if let CrashModel::TornWrite { seed } = self.model {
            let length = super::crash::torn_length(seed, self.cut, call.written_bytes());
            if let Some(torn_call) = call.cut_short(length) {
                let mut torn = self.disk.kept();
                torn.apply(&torn_call);
                self.torn = Some(torn);
            }
        }
        self.disk.apply(call);
    }

    fn image(&mut self) -> Image {
        let disk = match self.torn.take() {
            Some(torn) => torn.kept(),
            None => self.disk.after_crash(self.model, self.cut),
        };
        let generation = self.disk.durable_generation;
        let unchanged = self.model == CrashModel::DropUnsynced && self.seen == Some(generation);
        self.seen = Some(generation);
        Image { cut: self.cut, disk: SimFs::from_disk(disk), unchanged }
    }
}

impl Iterator for Images<'_> {
    type Item = Image;

    fn next(&mut self) -> Option<Image> {
        if self.started {
            let call = self.calls.get(self.cut)?;
            self.advance(call);
        }
        self.started = true;
        Some(self.image())
    }
}
