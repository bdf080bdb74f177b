//! A writer in another process: this test program again, told by the environment what to do.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use engines::bitcask::{Bitcask, ReadOnlyBitcask};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::{Model, check, random_step, restless};

const DIRECTORY: &str = "ENGINES_TEST_WRITER_DIRECTORY";
const SEED: &str = "ENGINES_TEST_WRITER_SEED";
const DONE: &str = "steps are done";
const STEPS: u32 = 60;

/// Not a test of its own: the other process. For each line that it reads it does some steps.
#[test]
fn writer_process() {
    let (Ok(directory), Ok(seed)) = (std::env::var(DIRECTORY), std::env::var(SEED)) else { return };
    let mut random = ChaCha8Rng::seed_from_u64(seed.parse().unwrap());
    let store = Bitcask::open(directory, restless()).unwrap();
    let mut number = 0;
    for _ in std::io::stdin().lines() {
        for _ in 0..STEPS {
            random_step(&store, &mut Model::new(), &mut random, number);
            number += 1;
        }
        println!("\n{DONE}");
    }
}

struct Writer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
}

impl Writer {
    fn start(directory: &Path, seed: u64) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "bitcask_read_only::process::writer_process", "--nocapture"])
            .env(DIRECTORY, directory)
            .env(SEED, seed.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output }
    }

    /// Has the writer do some steps; it pauses behind them.
    fn go(&mut self) {
        writeln!(self.input.as_ref().unwrap(), "go").unwrap();
        let mut line = String::new();
        while line.trim() != DONE {
            line.clear();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the writer died");
        }
    }
}

#[test]
fn two_readers_follow_a_writer_in_another_process() {
    let seed = rand::random();
    println!("seed {seed}");
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::start(directory.path(), seed);
    // The same steps here give the model, in a database of its own.
    let shadow_directory = tempfile::tempdir().unwrap();
    let shadow = Bitcask::open(shadow_directory.path(), restless()).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut model = Model::new();
    let mut readers = Vec::new();
    for round in 0..50 {
        writer.go();
        for step in 0..STEPS {
            random_step(&shadow, &mut model, &mut random, round * STEPS + step);
        }
        if readers.len() < 2 {
            readers.push(ReadOnlyBitcask::open(directory.path()).unwrap());
        }
        let reader = &readers[round as usize % readers.len()];
        reader.refresh().unwrap();
        check(reader, &model);
    }
    // However the writer ends, what it wrote stays.
    let killed = seed % 2 == 0;
    if killed {
        writer.child.kill().unwrap();
    } else {
        drop(writer.input.take());
    }
    assert_eq!(writer.child.wait().unwrap().success(), !killed);
    for reader in &readers {
        reader.refresh().unwrap();
        check(reader, &model);
    }
    check(&ReadOnlyBitcask::open(directory.path()).unwrap(), &model);
}
