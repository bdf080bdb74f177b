//! Random operations, reopenings among them, compared with the engine `memory`.

use engines::{Batch, Direction, Durability, Engine, KeyRange, registry};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{assert_holds, for_every_store, open_at, scanned};
use crate::records::{folded, seed};

#[test]
fn random_operations_leave_what_they_leave_in_memory() {
    let seed = seed();
    for_every_store(|engine| {
        let level = Durability::ALL[usize::try_from(seed % 3).unwrap()];
        let level = if (engine.durability)(level).is_some() { level } else { Durability::Process };
        // Levels that wait for the device are slow.
        let steps = if level == Durability::Power { 300 } else { 1_500 };
        println!("{}: {steps} steps at {level}, ENGINELAB_SEED={seed}", engine.name);
        run(engine, level, steps, &mut ChaCha8Rng::seed_from_u64(seed));
    });
}

fn run(engine: &registry::Registration, level: Durability, steps: u32, random: &mut ChaCha8Rng) {
    let directory = tempfile::tempdir().unwrap();
    let model_directory = tempfile::tempdir().unwrap();
    let memory = registry::find("memory").unwrap();
    let model = open_at(memory, model_directory.path(), level);
    let mut store = open_at(engine, directory.path(), level);
    for step in 0..steps {
        let at = format!("{}, step {step}", engine.name);
        match random.random_range(0..1_000) {
            0..450 => {
                let (key, value) = (key(random), value(random));
                store.put(&key, &value).unwrap();
                model.put(&key, &value).unwrap();
            }
            450..600 => {
                let key = key(random);
                store.delete(&key).unwrap();
                model.delete(&key).unwrap();
            }
            600..700 => {
                let batch = batch(random);
                store.write(&batch).unwrap();
                model.write(&batch).unwrap();
            }
            700..900 => {
                let key = key(random);
                assert!(store.get_vec(&key).unwrap() == model.get_vec(&key).unwrap(), "{at}");
            }
            900..980 => compare_scan(&at, &*store, &*model, random),
            980..985 => store.sync().unwrap(),
            985..988 => store.compact().unwrap(),
            988..990 => store.quiesce().unwrap(),
            _ => {
                if random.random() {
                    store.close().unwrap();
                } else {
                    drop(store);
                }
                store = open_at(engine, directory.path(), level);
                assert_holds(&at, &*store, &folded(&*model));
            }
        }
    }
    assert_holds(engine.name, &*store, &folded(&*model));
}

fn compare_scan(at: &str, store: &dyn Engine, model: &dyn Engine, random: &mut ChaCha8Rng) {
    if !store.capabilities().ordered_scan {
        return;
    }
    let (one, other) = (key(random), key(random));
    let range = match random.random_range(0..3) {
        0 => KeyRange::all(),
        1 => KeyRange::from(&one),
        _ => KeyRange::between(&one, &other),
    };
    let direction = if random.random() { Direction::Forward } else { Direction::Backward };
    let limit = random.random_range(1..60);
    let found = scanned(store, range, direction, limit);
    assert!(found == scanned(model, range, direction, limit), "{at}: {range:?} {direction:?}");
}

/// Few keys, so that they meet again.
fn key(random: &mut ChaCha8Rng) -> Vec<u8> {
    let number: u16 = random.random_range(0..300);
    match number % 3 {
        0 => number.to_be_bytes().to_vec(),
        1 => format!("key {number}").into_bytes(),
        _ => vec![b'k'; usize::from(number)],
    }
}

fn value(random: &mut ChaCha8Rng) -> Vec<u8> {
    let length = match random.random_range(0..20) {
        0 => 0,
        1 => random.random_range(10_000..100_000),
        _ => random.random_range(1..3_000),
    };
    let mut value = vec![0; length];
    random.fill(value.as_mut_slice());
    value
}

fn batch(random: &mut ChaCha8Rng) -> Batch {
    let mut batch = Batch::new();
    for _ in 0..random.random_range(0..20) {
        let key = key(random);
        if random.random_range(0..3) == 0 {
            batch.delete(&key).unwrap();
        } else {
            batch.put(&key, &value(random)).unwrap();
        }
    }
    batch
}
