//! Blocks against a model, and against damage.

use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::Result;
use crate::lsm::iterator::InternalIterator;
use crate::lsm::key::{EntryKind, Sequence, compare, push_internal_key};
use crate::lsm::testing::BlockIter;

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn origin() -> Origin {
    Origin { path: Arc::new(PathBuf::from("000005.ldb")), offset: 4711 }
}

fn build(entries: &Entries, restart_interval: usize) -> Vec<u8> {
    let mut builder = BlockBuilder::new(restart_interval);
    for (key, value) in entries {
        builder.add(key, value);
    }
    builder.finish().to_vec()
}

fn open(bytes: &[u8]) -> Result<BlockIter> {
    let block = Block::new(bytes.to_vec(), origin(), KeyFormat::Internal)?;
    Ok(BlockIter::new(Arc::new(block)))
}

fn here(iter: &BlockIter) -> Option<(Vec<u8>, Vec<u8>)> {
    iter.valid().then(|| (iter.key().to_vec(), iter.value().to_vec()))
}

/// Every move there is from every place there is, bounded: what a reader can do with a block.
fn walk(iter: &mut BlockIter, limit: usize) -> Result<Entries> {
    let mut entries = Entries::new();
    iter.seek_to_last()?;
    while iter.valid() && entries.len() <= limit {
        entries.extend(here(iter));
        iter.prev()?;
    }
    entries.reverse();
    iter.seek_to_first()?;
    for entry in &entries {
        assert_eq!(here(iter).as_ref(), Some(entry));
        iter.next()?;
    }
    assert!(!iter.valid());
    Ok(entries)
}

fn sorted_entries() -> impl Strategy<Value = Entries> {
    let user_key = prop::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), any::<u8>()], 0..5);
    let value = prop::collection::vec(any::<u8>(), 0..200);
    prop::collection::vec((user_key, 0u64..4, value), 0..40).prop_map(|entries| {
        let mut entries: Entries = entries
            .into_iter()
            .map(|(user_key, sequence, value)| {
                let mut key = Vec::new();
                push_internal_key(&mut key, &user_key, Sequence(sequence), EntryKind::Value);
                (key, value)
            })
            .collect();
        entries.sort_by(|left, right| compare(&left.0, &right.0));
        entries.dedup_by(|left, right| left.0 == right.0);
        entries
    })
}

proptest! {
    #[test]
    fn a_block_is_a_sorted_list(
        entries in sorted_entries(),
        restart_interval in 1usize..20,
        moves in prop::collection::vec((0..5, any::<Index>(), any::<bool>()), 0..40),
    ) {
        let mut iter = open(&build(&entries, restart_interval)).unwrap();
        prop_assert_eq!(&walk(&mut iter, entries.len()).unwrap(), &entries);
        let mut at = None;
        for (action, index, other_tag) in moves {
            match (action, at) {
                (0, _) => {
                    iter.seek_to_first().unwrap();
                    at = (!entries.is_empty()).then_some(0);
                }
                (1, _) => {
                    iter.seek_to_last().unwrap();
                    at = entries.len().checked_sub(1);
                }
                (2, Some(now)) => {
                    iter.next().unwrap();
                    at = (now + 1 < entries.len()).then_some(now + 1);
                }
                (3, Some(now)) => {
                    iter.prev().unwrap();
                    at = now.checked_sub(1);
                }
                _ => {
                    let mut target = Vec::new();
                    if !entries.is_empty() {
                        target.extend_from_slice(&entries[index.index(entries.len())].0);
                    }
                    if other_tag && let Some(byte) = target.last_mut() {
                        *byte = 7;
                    }
                    iter.seek(&target).unwrap();
                    at = entries.iter().position(|entry| compare(&entry.0, &target).is_ge());
                }
            }
            prop_assert_eq!(here(&iter), at.map(|at| entries[at].clone()));
        }
    }

    #[test]
    fn random_bytes_are_walked_or_refused(bytes: Vec<u8>, restart_count in 1u32..4) {
        let mut bytes = bytes;
        bytes.extend_from_slice(&restart_count.to_le_bytes());
        if let Ok(mut iter) = open(&bytes) {
            let _ = iter.seek(b"somewhere").and_then(|()| if iter.valid() { iter.prev() } else { Ok(()) });
            iter.seek_to_first().and_then(|()| {
                while iter.valid() {
                    iter.next()?;
                }
                Ok(())
            }).ok();
            let _ = iter.seek_to_last();
        }
    }
}

#[test]
fn damage_names_the_file_and_the_block() {
    let key = b"k\x01\0\0\0\0\0\0\0";
    for (bytes, problem) in [
        (&b""[..], "restart points"),
        (b"\0\0\0", "restart points"),
        (b"\x01\0\0\0", "restart points"),
        (b"\xff\xff\xff\xff", "restart points"),
        (b"abc\0\0\0\0", "restart points"),
        (b"\0\x05\0short\0\0\0\0\x01\0\0\0", "no internal key"),
        (b"\x01\x09\0k\x01\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0", "shares a prefix"),
        (b"\0\x09\x01k\x01\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0", "past the entries' end"),
        (b"\0\xff\xff\xff\xff\x0f\0\0\0\0\x01\0\0\0", "entries' end"),
        (b"\0\x80\0\0\0\0\x01\0\0\0", "entries' end"),
        (b"\0\x80\x80\x80\x80\x80\0\0\0\0\x01\0\0\0", "more than 5 bytes"),
        (b"\0\0\0\x0a\0\0\0\x01\0\0\0", "outside the entries"),
    ] {
        let error = open(bytes).and_then(|mut iter| iter.seek(key)).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("000005.ldb") && error.contains("4711"), "{error}");
        assert!(error.contains(problem) || error.contains("the bytes end"), "{bytes:?}: {error}");
    }
}

#[test]
fn a_block_with_a_flipped_byte_or_cut_short_is_walked_or_refused() {
    let entries: Entries = (0..12u64)
        .map(|number| {
            let mut key = Vec::new();
            push_internal_key(&mut key, b"prefix", Sequence(20 - number), EntryKind::Value);
            (key, vec![b'v'; usize::try_from(number).unwrap() * 20])
        })
        .collect();
    let bytes = build(&entries, 4);
    assert_eq!(walk(&mut open(&bytes).unwrap(), 12).unwrap(), entries);
    for at in 0..bytes.len() {
        // Without a checksum around it a flipped byte may pass for another key or value; it must
        // not end in a panic or an endless walk.
        for flip in [1, 0x80, 0xff] {
            let mut wrong = bytes.clone();
            wrong[at] ^= flip;
            let Ok(mut iter) = open(&wrong) else { continue };
            for (key, _) in &entries {
                let _ =
                    iter.seek(key).and_then(|()| if iter.valid() { iter.prev() } else { Ok(()) });
            }
            let mut steps = 0;
            let mut result = iter.seek_to_first();
            while result.is_ok() && iter.valid() {
                result = iter.next();
                steps += 1;
            }
            assert!(steps <= bytes.len());
        }
        if let Ok(mut iter) = open(&bytes[..at]) {
            let _ = iter.seek_to_last();
        }
    }
}
