//! `enginelab suite`.

use std::fs;

use scraper::{Html, Selector};

use crate::support::{enginelab, is_empty, refused};

#[test]
fn a_suite_writes_every_result_and_a_page_over_them_and_goes_on_with_what_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    fs::create_dir(&data).unwrap();
    let into = directory.path().join("deep/results");
    let into_text = into.display().to_string();
    let run = |only: &str| {
        let flags = ["--quick", "--only", only, "--", "--engines", "bitcask,lsm", "--dir"];
        let mut command = enginelab(&[&["suite", &into_text], &flags[..]].concat());
        let output = command.arg(&data).assert().success().get_output().stdout.clone();
        assert_eq!(output, format!("{}\n", into.join("index.html").display()).into_bytes());
    };
    run("insert,riak-small,ycsb-a");
    for name in ["insert", "riak-small", "ycsb-a"] {
        for extension in ["json", "md", "html", "csv"] {
            assert!(into.join(format!("{name}.{extension}")).is_file(), "{name}.{extension}");
        }
    }
    let before = fs::read(into.join("insert.json")).unwrap();
    run("insert,ycsb-c");
    assert_eq!(fs::read(into.join("insert.json")).unwrap(), before, "it ran again");
    check_page(&fs::read_to_string(into.join("index.html")).unwrap(), &["insert", "ycsb-c"]);
    assert!(is_empty(&data), "data is left");
    // What was measured at other settings is not gone on with, and nothing else runs before that
    // is known.
    let flags = ["--quick", "--only", "vpork-30,ycsb-c", "--", "--engines", "bitcask,lsm"];
    let mut command = enginelab(&[&["suite", &into_text], &flags[..], &["--seed", "7"]].concat());
    command.arg("--dir").arg(&data);
    let said = refused(command);
    assert!(said.contains("ycsb-c: cannot resume: seed was 42 there, and is 7 here"), "{said}");
    assert!(!into.join("vpork-30.json").exists());
}

fn check_page(page: &str, names: &[&str]) {
    let page = Html::parse_document(page);
    assert!(page.errors.is_empty(), "{:?}", page.errors);
    let select = |selector: &str| {
        let selector = Selector::parse(selector).unwrap();
        page.select(&selector).map(|found| found.text().collect::<String>()).collect::<Vec<_>>()
    };
    for name in names {
        assert_eq!(select(&format!("a[href=\"{name}.html\"]")).len(), 1, "{name}");
    }
    assert_eq!(select("#costs table").len(), 4);
    assert_eq!(select("#costs table:first-of-type thead th"), {
        let once: Vec<&str> = std::iter::once("engine").chain(names.iter().copied()).collect();
        once.repeat(4)
    });
    // The best of each column has 1.00, and nobody less.
    let absent = select("#not-run tbody th");
    assert_eq!(absent.len(), 13 - names.len());
    assert!(names.iter().all(|name| !absent.iter().any(|absent| absent == name)), "{absent:?}");
    let why = select("#not-run tbody td:nth-child(2)");
    assert!(why.iter().all(|why| why == "not among --only"), "{why:?}");
    let commands = select("#not-run tbody td:last-child");
    assert!(commands.iter().any(|command| command.starts_with("enginelab compare settee ")));
    let cells = select("#costs td");
    assert_eq!(cells.len(), 4 * 2 * names.len());
    assert!(cells.iter().all(|cell| cell.parse::<f64>().unwrap() >= 1.0), "{cells:?}");
    assert!(cells.iter().filter(|cell| *cell == "1.00").count() >= 4 * names.len());
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let into = directory.path().join("results");
    let into_text = into.display().to_string();
    for (arguments, expected) in [
        (&["--only", "nothing"][..], "there is no such comparison; there are insert, riak-small"),
        (&["--", "--engines"], "insert: a value is required for '--engines"),
        (&["--", "--nonsense"], "unexpected argument '--nonsense'"),
        (&["--", "--engines", "bitcask,bitcsak"], "insert: no engine is called \"bitcsak\""),
        (&["--", "--engines", "bitcask,bitcask"], "insert: bitcask is named twice"),
        (&["--", "--engines", "bitcask", "--pair", "bitcask,lsm"], "lsm, which does not run"),
        (&["--", "--dir", "/no/such"], "insert: there is no directory /no/such"),
        // Known to some of them alone.
        (&["--", "--items", "7"], "vpork-30: unexpected argument '--items'"),
        (&["--", "--threads", "0"], "invalid value '0' for '--threads"),
        (&["--", "--out", "r.json"], "insert: the argument '--out <FILE>' cannot be used"),
    ] {
        let said = refused(enginelab(&[&["suite", &into_text], arguments].concat()));
        assert!(said.contains(expected), "{said}");
        assert!(!into.exists());
    }
    assert!(refused(enginelab(&["suite"])).contains("<DIR>"));
    let list = ["suite", "--list", "--only", "settee", "--", "--seed", "7"];
    enginelab(&list).assert().success().stdout("settee  settee --seed 7\n");
    // A flag after -- is in place of the comparison's own, wherever that has it.
    for (name, flags, expected) in [
        ("riak-small", &["--engines", "lsm"][..], "riak --items 500 --engines lsm"),
        ("riak-small", &["--engines=lsm"], "riak --items 500 --engines=lsm"),
        (
            "riak-large",
            &["--items", "9", "--seed=1"],
            "riak --engines bitcask,lsm,leveldb,rocksdb --items 9 --seed=1",
        ),
        ("vpork-100", &["--threads", "3"], "vpork --iterations 20 --threads 3"),
        (
            "ycsb-c",
            &["-p", "recordcount=5"],
            "ycsb --core c -p recordcount=1000 -p operationcount=1000 -p recordcount=5",
        ),
    ] {
        let list = ["suite", &into_text, "--list", "--quick", "--only", name, "--"];
        let expected = format!("{name}  {expected}\n");
        enginelab(&[&list, flags].concat()).assert().success().stdout(expected);
    }
    assert!(!into.exists());
}

/// Both would write the same files.
#[test]
#[cfg(unix)]
fn two_suites_are_not_at_work_in_one_directory() {
    let directory = tempfile::tempdir().unwrap();
    let into = directory.path().join("results");
    let (into_text, data) = (into.to_str().unwrap(), directory.path().to_str().unwrap());
    let arguments = ["suite", into_text, "--quick", "--only", "settee", "--"];
    let arguments = [&arguments[..], &["--engines", "memory", "--dir", data]].concat();
    fs::create_dir(&into).unwrap();
    let other = fs::File::open(&into).unwrap();
    other.lock().unwrap();
    let said = refused(enginelab(&arguments));
    assert!(said.contains(&format!("{into_text}: another suite is at work there")), "{said}");
    assert!(is_empty(&into));
    drop(other);
    enginelab(&arguments).assert().success();
}
