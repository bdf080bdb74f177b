//! Bringing a reader up to date.
//!
//! 1. The files of one moment are listed, and those that are new are opened: from then on nothing
//!    that happens to their names matters.
//! 2. What is new in any of them is read into a keydir of its own, tombstones included.
//! 3. Readers are held off, and that keydir is put into the one they use; entries in files that are
//!    gone are dropped; the set of files is changed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::ReadOnlyBitcask;
use super::follow::{File, Followed, Step};
use super::listing;
use crate::Result;
use crate::bitcask::Damage;
use crate::bitcask::data_file::{FileSet, Usage};
use crate::bitcask::keydir::{Keydir, Location};
use crate::bitcask::load::Listing;
use crate::bitcask::parallel::in_parallel;

/// How often files may go away under the reader's eyes before it gives up.
const ATTEMPTS: usize = 1_000;

pub(super) fn refresh(reader: &ReadOnlyBitcask) -> Result<bool> {
    let mut followed = reader.followed.lock();
    for _ in 0..ATTEMPTS {
        let listing = listing::read(reader.fs.as_ref(), &reader.directory)?;
        match read_news(reader, &followed, &listing)? {
            Read::News(news) => return take_in(reader, &mut followed, &listing, news),
            Read::Gone => {}
            Read::Replaced => match read_news(reader, &Followed::new(), &listing)? {
                Read::News(news) => {
                    followed.clear();
                    return start_over(reader, &mut followed, &listing, news);
                }
                Read::Gone | Read::Replaced => {}
            },
        }
    }
    Err(listing::unsteady(&reader.directory))
}

/// What a refresh found.
struct News {
    keydir: Keydir,
    /// Files that are new or of which more was read.
    changed: Vec<File>,
}

enum Read {
    News(News),
    /// A file went away after it was listed.
    Gone,
    /// A record that was known is there no more: nothing that was taken in can be relied on.
    Replaced,
}

/// Steps 1 and 2.
fn read_news(reader: &ReadOnlyBitcask, followed: &Followed, listing: &Listing) -> Result<Read> {
    let fs = reader.fs.as_ref();
    let mut opened = Vec::new();
    for &(id, _) in &listing.data {
        if followed.contains_key(&id) {
            continue;
        }
        match File::open(fs, &reader.directory, listing, id)? {
            Some(file) => opened.push(file),
            None => return Ok(Read::Gone),
        }
    }
    let known = listing.data.iter().filter_map(|(id, _)| followed.get(id));
    let files: Vec<_> = known.chain(&opened).collect();
    let (keydir, mut changed) = (Keydir::new(), Vec::new());
    // Which record of a key is the newest is told by its location, not by the order of reading.
    for step in in_parallel(files.len(), |index| files[index].read_on(fs, listing, &keydir))? {
        match step {
            Step::Same => {}
            Step::New(file) => changed.push(file),
            Step::Replaced => return Ok(Read::Replaced),
        }
    }
    Ok(Read::News(News { keydir, changed }))
}

/// Step 3.
fn take_in(
    reader: &ReadOnlyBitcask,
    followed: &mut Followed,
    listing: &Listing,
    news: News,
) -> Result<bool> {
    let is_gone = |id| listing.identity(id).is_none();
    let gone: Vec<_> = followed.keys().copied().filter(|id| is_gone(*id)).collect();
    if news.changed.is_empty() && gone.is_empty() {
        return Ok(false);
    }
    if followed.is_empty() {
        return start_over(reader, followed, listing, news);
    }
    let old_files = reader.files.load_full();
    let (files, damage) = change_files(followed, listing, news.changed);
    let keydir = reader.keydir.write();
    let usage = |location: Location| {
        let file = files.get(location.file).or_else(|| old_files.get(location.file));
        file.map(|file| &file.usage)
    };
    let mut result = Ok(());
    news.keydir.snapshot().for_each(|key, location| {
        if result.is_ok() {
            result = put_in(&keydir, key, location, &usage);
        }
    });
    if result.is_err() {
        // Half of it is in: the next refresh starts over.
        followed.clear();
        return result.map(|()| true);
    }
    if gone.iter().any(|id| old_files.get(*id).is_some_and(|file| may_be_pointed_at(&file.usage))) {
        keydir.retain(|location| !is_gone(location.file));
    }
    reader.files.store(Arc::new(files));
    reader.damage.store(Arc::new(damage));
    Ok(true)
}

/// Step 3 where nothing was taken in before, or nothing of it is valid.
fn start_over(
    reader: &ReadOnlyBitcask,
    followed: &mut Followed,
    listing: &Listing,
    news: News,
) -> Result<bool> {
    let (files, damage) = change_files(followed, listing, news.changed);
    news.keydir.snapshot().for_each(|_, location| {
        if let Some(file) = files.get(location.file).filter(|_| !location.is_tombstone()) {
            revive(&file.usage, location.size);
        }
    });
    let mut keydir = reader.keydir.write();
    *keydir = news.keydir;
    reader.files.store(Arc::new(files));
    reader.damage.store(Arc::new(damage));
    Ok(true)
}

/// Brings what is known of the files up to date; returns the files for readers, and the damage.
fn change_files(
    followed: &mut Followed,
    listing: &Listing,
    changed: Vec<File>,
) -> (FileSet, Vec<Damage>) {
    followed.retain(|id, _| listing.identity(*id).is_some());
    for mut file in changed {
        count_found(&file);
        file.known = true;
        followed.insert(file.data.id, file);
    }
    let (mut files, mut damage) = (FileSet::default(), Vec::new());
    let newest = followed.keys().next_back().copied();
    for file in followed.values() {
        files.insert(file.data.clone());
        let before = damage.len();
        damage.extend_from_slice(&file.damage);
        // In the newest file a writer may be about to write there.
        if Some(file.data.id) != newest {
            damage.extend_from_slice(&file.tail);
        }
        file.data.usage.damaged.fetch_or(damage.len() > before, Ordering::AcqRel);
    }
    (files, damage)
}

fn count_found(file: &File) {
    let (usage, found) = (&file.data.usage, file.found);
    usage.length.store(file.end, Ordering::Release);
    // Those that are live are counted so when the keydir tells which they are.
    usage.dead_records.fetch_add(found.values, Ordering::AcqRel);
    usage.tombstone_records.fetch_add(found.tombstones, Ordering::AcqRel);
    usage.tombstone_bytes.fetch_add(found.tombstone_bytes, Ordering::AcqRel);
    usage.damaged_bytes.fetch_add(found.damaged_bytes, Ordering::AcqRel);
}

/// A record that was read from the file is live.
fn revive(usage: &Usage, size: u32) {
    usage.dead_records.fetch_sub(1, Ordering::AcqRel);
    usage.add_live(size);
}

/// Puts an entry into the keydir if it is newer than what is there.
fn put_in<'a>(
    keydir: &Keydir,
    key: &[u8],
    location: Location,
    usage: &impl Fn(Location) -> Option<&'a Arc<Usage>>,
) -> Result<()> {
    let old = keydir.get(key);
    if old >= Some(location) {
        return Ok(());
    }
    keydir.insert(key, location)?;
    let live = |location: &Location| !location.is_tombstone();
    if let Some(old) = old.filter(live)
        && let Some(usage) = usage(old)
    {
        usage.remove_live(old.size);
    }
    if let Some(usage) = usage(location).filter(|_| live(&location)) {
        revive(usage, location.size);
    }
    Ok(())
}

/// Whether the keydir may hold entries that point at the file.
fn may_be_pointed_at(usage: &Usage) -> bool {
    usage.live_bytes() > 0 || usage.tombstone_bytes() > 0
}
