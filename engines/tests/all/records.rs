//! What stores hold, as the tests compare it, and where random tests have their numbers from.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use engines::{Direction, Engine, KeyRange};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Key -> value, in order.
pub(crate) type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// Everything the engine holds, by its fold; no key may come twice.
pub(crate) fn folded(engine: &dyn Engine) -> Records {
    let mut found = Records::new();
    engine
        .fold(&mut |key, value| {
            let previous = found.insert(key.to_vec(), value.to_vec());
            assert!(previous.is_none(), "the fold visited {key:?} twice");
            ControlFlow::Continue(())
        })
        .unwrap();
    found
}

/// What a scan visits, in its order; stops after `limit` records.
pub(crate) fn scanned(
    engine: &dyn Engine,
    range: KeyRange<'_>,
    direction: Direction,
    limit: usize,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    engine
        .scan(range, direction, &mut |key, value| {
            found.push((key.to_vec(), value.to_vec()));
            if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
        .unwrap();
    found
}

/// The seed of this run, printed: another one every time, unless `ENGINELAB_SEED` gives it.
pub(crate) fn seed() -> u64 {
    let seed = std::env::var("ENGINELAB_SEED")
        .map_or_else(|_| rand::rng().next_u64(), |seed| seed.parse().unwrap());
    println!("ENGINELAB_SEED={seed}");
    seed
}

/// The numbers of that [`seed`].
pub(crate) fn seeded() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed())
}
