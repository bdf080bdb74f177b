//! Engines that did not do the same are not compared in silence.

use harness::results::{Comparison, Phase, Run, Traffic};

use super::{ITEMS, comparison};

/// The comparison with operations in `load`, the same for all.
fn with_traffic() -> Comparison {
    let mut comparison = comparison();
    for run in &mut comparison.runs {
        let hash = "xxh3-sum:0123".to_owned();
        load(run).traffic = Some(Traffic { operations: ITEMS, hash, ..Traffic::default() });
    }
    comparison
}

fn load(run: &mut Run) -> &mut Phase {
    run.phases.iter_mut().find(|phase| phase.name == "load").unwrap()
}

/// Whatever else differs between the runs: an engine that left another phase out, or one that time
/// ended, is held to the phases that it went through.
#[test]
fn engines_that_did_other_things_are_not_compared_in_silence() {
    let known = with_traffic().problems();
    type Change = fn(&mut Run);
    let changes: [(Change, bool); 6] = [
        (|_| (), false),
        (|run| load(run).traffic.as_mut().unwrap().hash = "xxh3-sum:ffff".into(), true),
        (|run| load(run).traffic.as_mut().unwrap().operations -= 1, true),
        (|run| run.phases.retain(|phase| phase.name != "load"), false),
        (
            |run| {
                let traffic = load(run).traffic.as_mut().unwrap();
                (traffic.operations, traffic.time_limited) = (7, true);
                traffic.hash = "xxh3-sum:ffff".into();
            },
            false,
        ),
        (|run| load(run).traffic = None, false),
    ];
    for (at, (change, is_told)) in changes.into_iter().enumerate() {
        for is_left_out in [false, true] {
            let mut comparison = with_traffic();
            let run = &mut comparison.runs[1];
            change(run);
            run.operations.as_mut().unwrap().count -= 1;
            if is_left_out {
                run.left_out.insert("scans".into(), "lsm has no ordered scan".into());
            }
            let mut told = comparison.problems();
            told.retain(|problem| !known.contains(problem));
            let expected = "lsm, run 1: did not execute the operations that bitcask did in load";
            let expected = if is_told { vec![expected.to_owned()] } else { Vec::new() };
            assert_eq!(told, expected, "change {at}, {is_left_out}");
        }
    }
}
