//! What the report on a terminal and in Markdown says of the figures.

use harness::report::{markdown, terminal};

use super::comparison;

#[test]
fn large_figures_fit_on_100_columns() {
    let printed = terminal::render(&comparison(), &[], false);
    for line in printed.lines() {
        assert!(line.chars().count() <= 100, "{}: {line}\n{printed}", line.chars().count());
    }
}

/// Each takes two columns, which the lines have to reckon with.
#[test]
fn wide_characters_fit_on_100_columns() {
    let mut comparison = comparison();
    comparison.machine.cpu = "漢字 ".repeat(60);
    let printed = terminal::render(&comparison, &[], false);
    for line in printed.lines() {
        let wide = line.chars().filter(|character| "漢字".contains(*character)).count();
        assert!(line.chars().count() + wide <= 100, "{line}");
    }
}

#[test]
fn the_published_ratios_stand_beside_ours() {
    let comparison = comparison();
    for report in [terminal::render(&comparison, &[], false), markdown::render(&comparison, &[])] {
        for expected in [
            "Disk space: 3.003 : 1.000\n",
            "Time taken: 1.000 : 1.599\n",
            "published, 5,000 items, 5 runs: Disk space: 1.113 : 1.000; Time taken: 1.000 : 1.016\n",
            "published, 500,000 items, 1 run: Disk space: 3.003 : 1.000; Time taken: 1.000 : 1.600\n",
        ] {
            assert!(report.contains(expected), "{expected:?} is not in:\n{report}");
        }
    }
}

#[test]
fn engines_stand_in_the_order_of_their_rank_with_medians() {
    let markdown = markdown::render(&comparison(), &[]);
    let rows: Vec<Vec<&str>> = markdown
        .lines()
        .skip_while(|line| !line.starts_with("## Time"))
        .skip(4)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let engines: Vec<&str> = rows.iter().map(|row| row[1]).collect();
    assert_eq!(engines, ["bitcask", "lsm", "raw-append", "sqlite", "rocksdb"], "{markdown}");
    assert!(rows[4][2..9].iter().all(|cell| *cell == "n/a"), "{markdown}");
    // Twice the first run is the middle of one, two and three times.
    assert_eq!(rows[0][2], "2,403.3<br>1,201.7..3,605.0");
    assert_eq!((rows[0][3], rows[1][3]), ("1.00", "1.60"));
    // The failed engine and the reference point are faster, and no standard.
    assert_eq!((rows[2][3], rows[3][3]), ("0.37", "0.04"));
}

/// Runs of one, two and three times a time are too few and too far apart to say anything.
#[test]
fn what_cannot_be_ranked_is_said() {
    let mut comparison = comparison();
    let printed = terminal::render(&comparison, &[], false);
    let row = |printed: &str| {
        let table = printed.split("How sure the ratios of times are").nth(1).unwrap();
        table.lines().find(|line| line.starts_with(" lsm")).unwrap().to_owned()
    };
    assert!(row(&printed).contains("too noisy"), "{printed}");
    // 1,921.87 / 3 / 1,201.673 and its counterpart.
    assert!(row(&printed).contains("0.53..4.80"), "{printed}");
    for run in &mut comparison.runs {
        let time = if run.engine == "lsm" { 160.0 } else { 100.0 };
        run.phases[1].seconds = time + f64::from(run.repeat);
    }
    let printed = terminal::render(&comparison, &[], false);
    let lsm = row(&printed);
    // The medians are 162 and 102; the bounds 161 / 103 and 163 / 101.
    assert!(lsm.contains("1.59") && lsm.contains("1.56..1.61"), "{printed}");
    assert!(lsm.contains("+1.00") && lsm.contains("more"), "{printed}");
    comparison.runs.retain(|run| run.repeat < 3);
    let printed = terminal::render(&comparison, &[], false);
    assert!(!printed.contains("How sure"), "{printed}");
}

#[test]
fn what_is_missing_is_said() {
    for report in
        [terminal::render(&comparison(), &[], false), markdown::render(&comparison(), &[])]
    {
        let report = report.replace("\n  ", " ");
        assert!(report.contains("FAILED sqlite, run 3: records: 2 lost, 1 changed"), "{report}");
        assert!(report.contains("apt-get install librocksdb-dev"), "{report}");
        assert!(
            report.to_lowercase().contains("stopped before every run had finished"),
            "{report}"
        );
    }
}
