//! What an engine does with directories: its own, another's, none, one in use.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use engines::{Durability, Error, OpenOptions};

use super::{for_every_store, open};

type Snapshot = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// Every file and folder below a directory, with the content of the files.
fn snapshot(directory: &Path) -> Snapshot {
    let mut found = Snapshot::new();
    let mut folders = vec![directory.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path.clone());
                found.insert(path, None);
            } else {
                let content = fs::read(&path).unwrap();
                found.insert(path, Some(content));
            }
        }
    }
    found
}

#[test]
fn the_data_of_another_engine_is_refused_and_left_as_it_is() {
    for_every_store(|owner| {
        let directory = tempfile::tempdir().unwrap();
        let store = open(owner, directory.path());
        store.put(b"key", b"value").unwrap();
        store.close().unwrap();
        assert!((owner.recognizes)(directory.path()), "{} forgets its own", owner.name);
        let before = snapshot(directory.path());
        for_every_store(|other| {
            if (other.recognizes)(directory.path()) {
                let exchanged = ["lsm", "leveldb"];
                assert!(
                    other.name == owner.name
                        || (exchanged.contains(&other.name) && exchanged.contains(&owner.name)),
                    "{} takes a directory of {} for its own",
                    other.name,
                    owner.name
                );
                return;
            }
            match other.open(directory.path(), &OpenOptions::new()) {
                Err(Error::ForeignDirectory { wanted, .. }) => assert_eq!(wanted, other.name),
                Err(error) => panic!("{} in {}'s: {error}", other.name, owner.name),
                Ok(_) => panic!("{} opened a directory of {}", other.name, owner.name),
            }
        });
        assert!(snapshot(directory.path()) == before, "a directory of {} changed", owner.name);
    });
}

/// Whoever opens one of our engines without the registry is kept from the same mistake.
#[test]
fn our_engines_refuse_the_data_of_another_without_the_registry_too() {
    use engines::bitcask::{self, Bitcask};
    use engines::lsm::{self, Lsm};

    for_every_store(|owner| {
        let directory = tempfile::tempdir().unwrap();
        let store = open(owner, directory.path());
        store.put(b"key", b"value").unwrap();
        store.close().unwrap();
        let before = snapshot(directory.path());
        let refused = |outcome: Result<(), Error>, wanted| match outcome {
            Err(Error::ForeignDirectory { wanted: told, .. }) => assert_eq!(told, wanted),
            other => panic!("{wanted} in {}'s: {other:?}", owner.name),
        };
        if owner.name != "bitcask" {
            let opened = Bitcask::open(directory.path(), bitcask::Options::default());
            refused(opened.map(drop), "bitcask");
        }
        if !["lsm", "leveldb"].contains(&owner.name) {
            refused(Lsm::open(directory.path(), lsm::Options::default()).map(drop), "lsm");
        }
        assert!(snapshot(directory.path()) == before, "a directory of {} changed", owner.name);
    });
}

#[test]
fn nothing_is_created_unless_asked_for() {
    for_every_store(|engine| {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("missing");
        for place in [missing.as_path(), directory.path()] {
            match engine.open(place, &OpenOptions::new().create(false)).map(drop) {
                Err(Error::NotADatabase { .. } | Error::Io { .. }) => {}
                other => panic!("{} in {}: {other:?}", engine.name, place.display()),
            }
        }
        assert!(snapshot(directory.path()).is_empty(), "{} left something", engine.name);

        let place = directory.path().join("deep/down");
        let store = open(engine, &place);
        store.put(b"key", b"value").unwrap();
        store.close().unwrap();
        let store = engine.open(&place, &OpenOptions::new().create(false)).unwrap();
        assert_eq!(store.get_vec(b"key").unwrap().unwrap(), b"value", "{}", engine.name);
    });
}

#[test]
fn a_directory_in_use_is_refused_until_it_is_closed() {
    for_every_store(|engine| {
        let directory = tempfile::tempdir().unwrap();
        let store = open(engine, directory.path());
        store.put(b"key", b"value").unwrap();
        match engine.open(directory.path(), &OpenOptions::new()) {
            Err(Error::Locked { .. }) => {}
            Err(error) => panic!("{}: {error}", engine.name),
            // SQLite is made to be shared.
            Ok(second) if engine.name == "sqlite" => {
                assert_eq!(second.get_vec(b"key").unwrap().unwrap(), b"value");
            }
            Ok(_) => panic!("{} opened twice", engine.name),
        }
        store.put(b"key", b"still ours").unwrap();
        store.close().unwrap();
        let store = open(engine, directory.path());
        assert_eq!(store.get_vec(b"key").unwrap().unwrap(), b"still ours", "{}", engine.name);
    });
}

#[test]
fn a_description_tells_version_settings_and_durability() {
    for_every_store(|engine| {
        for level in Durability::ALL {
            let Some(mapping) = (engine.durability)(level) else { continue };
            let directory = tempfile::tempdir().unwrap();
            let store = super::open_at(engine, directory.path(), level);
            let description = store.description();
            assert_eq!(description.engine, engine.name);
            assert_eq!(description.durability, mapping, "{}", engine.name);
            assert!(
                description.version.contains(|letter: char| letter.is_ascii_digit()),
                "{}: version {:?}",
                engine.name,
                description.version
            );
            assert!(!description.settings.is_empty(), "{}", engine.name);
            println!("{description:#?}");
        }
    });
}

#[test]
fn a_level_that_an_engine_lacks_is_a_typed_error() {
    for_every_store(|engine| {
        for level in Durability::ALL {
            if (engine.durability)(level).is_some() {
                continue;
            }
            let directory = tempfile::tempdir().unwrap();
            let opened = engine.open(directory.path(), &OpenOptions::new().durability(level));
            assert!(matches!(opened, Err(Error::Unsupported { .. })), "{}", engine.name);
        }
    });
}

#[cfg(feature = "system")]
const CHILD: &str = "ENGINELAB_CONFORMANCE_LIBRARIES";

/// A library named by the user is the one that is loaded, or none: a fallback to the system's would
/// compare the wrong build.
#[test]
#[cfg(feature = "system")]
fn a_named_library_that_is_no_such_library_makes_the_engine_unavailable() {
    let directory = tempfile::tempdir().unwrap();
    let no_library = directory.path().join("librocksdb.so");
    fs::write(&no_library, "not a library").unwrap();
    for (variable, name) in [("ENGINELAB_LEVELDB", "leveldb"), ("ENGINELAB_ROCKSDB", "rocksdb")] {
        if name == "rocksdb" && cfg!(feature = "rocksdb") {
            continue;
        }
        let test = "conformance::directory::the_child_that_tells_what_is_available";
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--ignored", "--nocapture"])
            .env(CHILD, name)
            .env(variable, &no_library)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success(), "{told}");
        assert!(told.contains(&format!("{name} is not available: {variable} is ")), "{told}");
        assert!(told.contains(no_library.to_str().unwrap()), "{told}");
    }
}

#[test]
#[cfg(feature = "system")]
#[ignore = "started by a_named_library_that_is_no_such_library_makes_the_engine_unavailable"]
fn the_child_that_tells_what_is_available() {
    let Ok(name) = std::env::var(CHILD) else { return };
    let engine = engines::registry::find(&name).unwrap();
    println!("{:?}", (engine.available)().map_err(|error| error.to_string()));
}
