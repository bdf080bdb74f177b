//! The models against traces small enough to tell the outcome by hand.

use std::collections::HashSet;

use super::*;

fn path(name: &str) -> &Path {
    Path::new(name)
}

fn put(fs: &SimFs, name: &str, bytes: &[u8]) -> Arc<dyn WriteFile> {
    let file = fs.create(path(name), Create::New).unwrap();
    file.write_at(0, bytes).unwrap();
    file
}

/// Names and contents, as text.
fn show(fs: &SimFs) -> Vec<String> {
    let mut shown: Vec<_> = fs
        .list(path("/"))
        .unwrap()
        .into_iter()
        .map(|entry| {
            let content = fs.read(&entry.path).unwrap_or_default();
            format!("{}={}", entry.name().unwrap(), String::from_utf8_lossy(&content))
        })
        .collect();
    shown.sort();
    shown
}

fn dropped(fs: &SimFs) -> Vec<String> {
    show(&fs.trace().crash_at(usize::MAX, CrashModel::DropUnsynced))
}

#[test]
fn a_file_is_there_after_power_loss_once_it_and_its_directory_are_synced() {
    let fs = SimFs::new();
    let file = put(&fs, "/a", b"one");
    assert_eq!(dropped(&fs), [""; 0]);
    file.sync().unwrap();
    assert_eq!(dropped(&fs), [""; 0], "its name was not synced");
    fs.sync_directory(path("/")).unwrap();
    assert_eq!(dropped(&fs), ["a=one"]);
    file.write_at(3, b" two").unwrap();
    assert_eq!(dropped(&fs), ["a=one"]);
    file.truncate(1).unwrap();
    assert_eq!(dropped(&fs), ["a=one"]);
    file.sync().unwrap();
    assert_eq!(dropped(&fs), ["a=o"]);
    put(&fs, "/b", b"lost");
    fs.sync_directory(path("/")).unwrap();
    assert_eq!(dropped(&fs), ["a=o", "b="], "b's name was synced, its bytes were not");
}

#[test]
fn renames_and_removals_are_undone_until_the_directory_is_synced() {
    let fs = SimFs::new();
    for (name, bytes) in [("/old", b"old"), ("/new", b"new")] {
        put(&fs, name, bytes).sync().unwrap();
    }
    fs.sync_directory(path("/")).unwrap();
    fs.rename(path("/new"), path("/old")).unwrap();
    assert_eq!(show(&fs), ["old=new"]);
    assert_eq!(dropped(&fs), ["new=new", "old=old"]);
    fs.sync_directory(path("/")).unwrap();
    assert_eq!(dropped(&fs), ["old=new"]);
    fs.remove(path("/old")).unwrap();
    assert_eq!(dropped(&fs), ["old=new"]);
    fs.sync_directory(path("/")).unwrap();
    assert_eq!(dropped(&fs), [""; 0]);
}

#[test]
fn a_directory_that_was_not_synced_into_its_parent_takes_everything_along() {
    let fs = SimFs::new();
    fs.create_directory(path("/a/b")).unwrap();
    put(&fs, "/a/b/file", b"bytes").sync().unwrap();
    fs.sync_directory(path("/a/b")).unwrap();
    fs.sync_directory(path("/")).unwrap();
    let crashed = fs.trace().crash_at(usize::MAX, CrashModel::DropUnsynced);
    assert!(crashed.entry(path("/a")).unwrap().is_some_and(|entry| entry.is_directory));
    assert!(crashed.entry(path("/a/b")).unwrap().is_none());
    fs.sync_directory(path("/a")).unwrap();
    let crashed = fs.trace().crash_at(usize::MAX, CrashModel::DropUnsynced);
    assert_eq!(crashed.read(path("/a/b/file")).unwrap(), b"bytes");
}

#[test]
fn directories_created_durably_outlive_power_loss_at_once() {
    for directory in ["/a/b", "relative", "two/levels"] {
        let fs = SimFs::new();
        crate::fs::create_directory_durably(&fs, path(directory)).unwrap();
        crate::fs::create_directory_durably(&fs, path(directory)).unwrap();
        let crashed = fs.trace().crash_at(usize::MAX, CrashModel::DropUnsynced);
        assert!(crashed.entry(path(directory)).unwrap().is_some(), "{directory}");
    }
}

#[test]
fn a_handle_outlives_the_name_and_links_share_the_bytes() {
    let fs = SimFs::new();
    let file = put(&fs, "/a", b"1");
    let reader = fs.open(path("/a"), Access::Positioned).unwrap();
    fs.hard_link(path("/a"), path("/b")).unwrap();
    fs.remove(path("/a")).unwrap();
    file.write_at(1, b"2").unwrap();
    assert_eq!(reader.read_at(0, 2, &mut Vec::new()).unwrap(), b"12");
    assert_eq!(show(&fs), ["b=12"]);
    // A file of the same name is another file.
    put(&fs, "/a", b"new");
    file.write_at(2, b"3").unwrap();
    assert_eq!(show(&fs), ["a=new", "b=123"]);
}

#[test]
fn every_cut_of_keep_all_and_of_a_torn_write() {
    let fs = SimFs::new();
    let file = put(&fs, "/a", b"abcd");
    file.write_at(4, b"efgh").unwrap();
    fs.rename(path("/a"), path("/b")).unwrap();
    let trace = fs.trace();
    assert_eq!(trace.len(), 4);
    let all: Vec<_> =
        trace.images(CrashModel::KeepAll).map(|image| show(&image.disk).concat()).collect();
    assert_eq!(all, ["", "a=", "a=abcd", "a=abcdefgh", "b=abcdefgh"]);
    let mut torn = HashSet::new();
    for seed in 0..100 {
        let images: Vec<_> = trace.images(CrashModel::TornWrite { seed }).collect();
        for (cut, image) in images.iter().enumerate() {
            let shown = show(&image.disk).concat();
            match cut {
                2 | 3 => {
                    let whole = &all[cut];
                    assert!(whole.starts_with(&shown) && whole != &shown, "{shown}");
                    assert!(shown.len() >= all[cut - 1].len(), "{shown}");
                    torn.insert(shown);
                }
                _ => assert_eq!(shown, all[cut]),
            }
        }
    }
    assert_eq!(torn.len(), 8, "every prefix comes up: {torn:?}");
}

#[test]
fn images_one_after_the_other_are_those_made_from_the_start() {
    let fs = SimFs::new();
    for round in 0..20u8 {
        let name = format!("/{}", round % 5);
        let file = fs.create(path(&name), Create::Replace).unwrap();
        file.write_at(u64::from(round) * 100, &vec![round; 5000]).unwrap();
        if round % 3 == 0 {
            file.sync().unwrap();
        }
        if round % 4 == 0 {
            fs.sync_directory(path("/")).unwrap();
        }
    }
    let trace = fs.trace();
    let models = [
        CrashModel::KeepAll,
        CrashModel::DropUnsynced,
        CrashModel::TornWrite { seed: 1 },
        CrashModel::RandomSubset { seed: 1 },
    ];
    for model in models {
        let mut before = None;
        for image in trace.images(model) {
            let shown = show(&image.disk);
            assert_eq!(shown, show(&trace.crash_at(image.cut, model)), "{model:?} {}", image.cut);
            assert!(!image.unchanged || before.as_ref() == Some(&shown), "{model:?} {}", image.cut);
            before = Some(shown);
        }
    }
}

#[test]
fn a_random_subset_leaves_pages_lengths_and_names_of_their_own_times_but_all_that_was_synced() {
    let fs = SimFs::new();
    let page = |letter: u8| vec![letter; 4096];
    let file = put(&fs, "/a", &page(b's'));
    file.sync().unwrap();
    fs.sync_directory(path("/")).unwrap();
    file.write_at(4096, &[page(b'1'), page(b'1')].concat()).unwrap();
    file.write_at(8192, &page(b'2')).unwrap();
    put(&fs, "/b", b"");
    put(&fs, "/c", b"");
    let trace = fs.trace();
    let (mut contents, mut listings) = (HashSet::new(), HashSet::new());
    for seed in 0..2000 {
        let crashed = trace.crash_at(trace.len(), CrashModel::RandomSubset { seed });
        let content = crashed.read(path("/a")).expect("it was synced");
        assert!(content.len() == 4096 || content.len() == 3 * 4096);
        assert!(content.chunks(4096).all(|page| page.iter().all(|byte| *byte == page[0])));
        let letters: Vec<u8> =
            content.chunks(4096).map(|page| if page[0] == 0 { b'0' } else { page[0] }).collect();
        assert_eq!(letters[0], b's', "it was synced");
        contents.insert(String::from_utf8(letters).unwrap());
        listings.insert(crashed.list(path("/")).unwrap().len());
        assert_eq!(
            crashed.trace().crash_at(0, CrashModel::DropUnsynced).read(path("/a")).unwrap(),
            content,
            "what is left after a crash is durable"
        );
    }
    let mut contents: Vec<_> = contents.into_iter().collect();
    contents.sort();
    assert_eq!(contents, ["s", "s00", "s01", "s02", "s10", "s11", "s12"]);
    assert_eq!(listings.len(), 3, "b and c each come and go");
}

#[test]
fn the_mode_is_durable_with_the_next_sync_of_the_file() {
    let fs = SimFs::new();
    let file = put(&fs, "/a", b"");
    file.sync().unwrap();
    fs.sync_directory(path("/")).unwrap();
    fs.set_mode(path("/a"), 0o601).unwrap();
    let mode = |fs: &SimFs| fs.entry(path("/a")).unwrap().unwrap().mode;
    let crash = |model| mode(&fs.trace().crash_at(usize::MAX, model));
    assert_eq!(crash(CrashModel::KeepAll), 0o100_601);
    assert_eq!(crash(CrashModel::DropUnsynced), 0o100_644);
    file.sync().unwrap();
    assert_eq!(crash(CrashModel::DropUnsynced), 0o100_601);
}

#[test]
fn locks_exclude_within_a_disk_and_end_with_the_guard_or_the_crash() {
    let fs = SimFs::new();
    let guard = fs.lock(path("/LOCK")).unwrap().expect("free");
    guard.write_content(b"longer").unwrap();
    guard.write_content(b"1").unwrap();
    assert_eq!(fs.read(path("/LOCK")).unwrap(), b"1");
    assert!(fs.clone().lock(path("/LOCK")).unwrap().is_none());
    let crashed = fs.trace().crash_at(usize::MAX, CrashModel::KeepAll);
    assert!(crashed.lock(path("/LOCK")).unwrap().is_some());
    drop(guard);
    assert!(fs.lock(path("/LOCK")).unwrap().is_some());
    assert_eq!(fs.read(path("/LOCK")).unwrap(), b"1", "the file stays");
}

#[test]
fn the_wrong_calls_are_refused_as_by_the_real_system() {
    let directory = tempfile::tempdir().unwrap();
    let refusals = |fs: &dyn FileSystem, root: &Path| {
        let at = |name: &str| root.join(name);
        fs.create(&at("file"), Create::New).unwrap().write_at(0, b"12345").unwrap();
        fs.create_directory(&at("directory")).unwrap();
        let reader = fs.open(&at("file"), Access::Mapped).unwrap();
        let results = [
            fs.create(&at("file"), Create::New).err(),
            fs.create(&at("directory"), Create::New).err(),
            fs.create(&at("missing/file"), Create::New).err(),
            fs.open(&at("missing"), Access::Positioned).err(),
            fs.open_for_write(&at("missing")).err(),
            fs.open_for_write(&at("directory")).err(),
            fs.rename(&at("missing"), &at("to")).err(),
            fs.rename(&at("file"), &at("directory")).err(),
            fs.hard_link(&at("file"), &at("directory")).err(),
            fs.hard_link(&at("missing"), &at("to")).err(),
            fs.remove(&at("missing")).err(),
            fs.remove(&at("missing/file")).err(),
            fs.set_mode(&at("missing"), 0).err(),
            fs.list(&at("missing")).err(),
            fs.list(&at("file")).err(),
            fs.sync_directory(&at("missing")).err(),
            reader.read_at(1, 5, &mut Vec::new()).err(),
            reader.read_at(u64::MAX, 1, &mut Vec::new()).err(),
            reader.read_at(1, usize::MAX, &mut Vec::new()).err(),
        ];
        results.map(|error| match error.expect("refused") {
            Error::Io { source, .. } => format!("{:?}", source.kind()),
            error => format!("corruption: {}", error.is_corruption()),
        })
    };
    let fs = SimFs::new();
    fs.create_directory(path("/root")).unwrap();
    let before = fs.mark();
    let simulated = refusals(&fs, path("/root"));
    assert_eq!(simulated, refusals(&crate::fs::RealFs, directory.path()));
    assert_eq!(fs.mark(), before + 3, "what is refused is not recorded");
    assert!(fs.entry(path("/root/missing")).unwrap().is_none());
    fs.create_directory(path("/root/file/below")).unwrap_err();
}

const ONCE: FaultPoint = FaultPoint {
    after: 1,
    scope: FaultScope::Mutating,
    kind: FaultKind::Io,
    sticky: false,
    short_write: true,
};

#[test]
fn a_fault_strikes_once_or_for_good_and_a_short_write_leaves_half() {
    let fs = SimFs::new();
    let file = put(&fs, "/a", b"");
    fs.fail_at(ONCE);
    file.write_at(0, b"ab").unwrap();
    let error = file.write_at(2, b"cdef").unwrap_err();
    assert!(matches!(error, Error::Io { action: "write", .. }), "{error}");
    assert_eq!(show(&fs), ["a=abcd"]);
    file.write_at(4, b"!").unwrap();
    assert_eq!(show(&fs), ["a=abcd!"]);

    let full = FaultPoint { after: 0, scope: FaultScope::TakesSpace, sticky: true, ..ONCE };
    fs.fail_at(FaultPoint { kind: FaultKind::NoSpace, short_write: false, ..full });
    for _ in 0..3 {
        let Error::Io { source, .. } = file.write_at(5, b"more").unwrap_err() else {
            panic!("an I/O error")
        };
        assert_eq!(source.kind(), ErrorKind::StorageFull);
        fs.create(path("/b"), Create::New).unwrap_err();
    }
    file.sync().unwrap();
    fs.rename(path("/a"), path("/c")).unwrap();
    assert_eq!(show(&fs), ["c=abcd!"]);
    assert_eq!(fs.fault_count(), 7);
    fs.clear_faults();
    file.write_at(5, b"more").unwrap();
}

#[test]
fn any_call_can_fail_reads_too() {
    let fs = SimFs::new();
    put(&fs, "/a", b"x");
    let reader = fs.open(path("/a"), Access::Positioned).unwrap();
    fs.fail_at(FaultPoint { after: 0, scope: FaultScope::Any, sticky: true, ..ONCE });
    reader.read_at(0, 1, &mut Vec::new()).unwrap_err();
    reader.length().unwrap_err();
    fs.list(path("/")).unwrap_err();
    fs.entry(path("/a")).unwrap_err();
    fs.open(path("/a"), Access::Positioned).unwrap_err();
    fs.open_for_write(path("/a")).unwrap_err();
    fs.remove(path("/a")).unwrap_err();
    fs.clear_faults();
    assert_eq!(show(&fs), ["a=x"]);
}

#[test]
fn a_sync_that_succeeds_after_a_failed_one_does_not_save_what_that_one_gave_up() {
    let fs = SimFs::new();
    let file = put(&fs, "/a", &vec![b's'; 8192]);
    file.sync().unwrap();
    fs.sync_directory(path("/")).unwrap();
    file.write_at(0, b"first page").unwrap();
    file.write_at(4096, b"second page").unwrap();
    fs.fail_at(FaultPoint { after: 0, scope: FaultScope::Sync, ..ONCE });
    file.sync().unwrap_err();
    file.write_at(4096 + 7, b"PAGE").unwrap();
    file.sync().unwrap();
    let seen = fs.read(path("/a")).unwrap();
    assert!(seen.starts_with(b"first page") && seen[4096..].starts_with(b"second PAGE"));
    let crashed = fs.trace().crash_at(usize::MAX, CrashModel::DropUnsynced);
    let left = crashed.read(path("/a")).unwrap();
    assert!(left.starts_with(b"ssssssssss"), "given up");
    assert!(left[4096..].starts_with(b"second PAGE"), "written again");
}

#[test]
fn a_file_replaced_through_the_helper_is_old_or_new_at_every_cut_under_every_model() {
    let fs = SimFs::new();
    let replace = |content: &[u8]| {
        crate::fs::replace_file(&fs, path("/CURRENT"), path("/temporary"), content).unwrap();
    };
    replace(b"old");
    let start = fs.mark();
    replace(b"new");
    let trace = fs.trace();
    let models = [CrashModel::KeepAll, CrashModel::DropUnsynced, CrashModel::TornWrite { seed: 0 }]
        .into_iter()
        .chain((0..50).map(|seed| CrashModel::RandomSubset { seed }));
    for model in models {
        for image in trace.images(model).skip(start) {
            let content = image.disk.read(path("/CURRENT")).unwrap();
            assert!(content == b"old" || content == b"new", "{model:?} at {}", image.cut);
            assert!(image.cut < trace.len() || content == b"new", "{model:?} at {}", image.cut);
        }
    }
}

#[test]
fn a_wild_offset_is_refused_before_memory_is_taken() {
    let fs = SimFs::new();
    let file = put(&fs, "/a", b"x");
    file.write_at(u64::MAX, b"y").unwrap_err();
    file.write_at(1 << 40, b"y").unwrap_err();
    file.truncate(1 << 40).unwrap_err();
    assert_eq!(show(&fs), ["a=x"]);
}
