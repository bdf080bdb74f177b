//! Reads every record back and compares it with the generator, which derives what must be there
//! from the record's number, or the number from the record's key.

use std::ops::{ControlFlow, Range};

use engines::{Engine, Error};

use crate::results::Verified;
use crate::run::rounds::{Clocked, Rounds, Worker};
use crate::workload::insert::{Oracle, Records};

/// Gets every record by its key, in the order of insertion; an engine without `get` is folded
/// over instead.
pub(crate) fn read_back(
    engine: &dyn Engine,
    oracle: &Oracle,
    rounds: Rounds,
    progress: impl Fn(u64) + Sync,
) -> engines::Result<(Clocked, Verified)> {
    let reader =
        || Reader { engine, oracle, records: Records::default(), found: Verified::default() };
    match rounds.run(reader, progress) {
        Ok((clocked, readers)) => {
            let mut verified = Verified::default();
            readers.iter().for_each(|reader| verified.merge(reader.found));
            Ok((clocked, verified))
        }
        Err(Error::Unsupported { .. }) => by_fold(engine, oracle, rounds.items),
        Err(error) => Err(error),
    }
}

/// The records that are there beyond those that were read back: never written, or there twice.
/// `None` if the engine cannot be folded over.
pub(crate) fn count_extra(
    engine: &dyn Engine,
    verified: &Verified,
) -> engines::Result<Option<u64>> {
    let mut count = 0u64;
    let counted = engine.fold(&mut |_, _| {
        count += 1;
        ControlFlow::Continue(())
    });
    match counted {
        Ok(()) => Ok(Some(count.saturating_sub(verified.read_back + verified.wrong))),
        Err(Error::Unsupported { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

struct Reader<'a> {
    engine: &'a dyn Engine,
    oracle: &'a Oracle,
    records: Records,
    found: Verified,
}

impl Worker for Reader<'_> {
    fn prepare(&mut self, range: Range<u64>) -> engines::Result<()> {
        self.records.fill(self.oracle, range);
        Ok(())
    }

    fn work(&mut self) -> engines::Result<()> {
        for (key, expected) in self.records.iter() {
            let mut equal = false;
            if !self.engine.get(key, &mut |value| equal = value == expected)? {
                self.found.lost += 1;
            } else if equal {
                self.found.read_back += 1;
            } else {
                self.found.wrong += 1;
            }
        }
        Ok(())
    }
}

fn by_fold(
    engine: &dyn Engine,
    oracle: &Oracle,
    items: u64,
) -> engines::Result<(Clocked, Verified)> {
    let began = std::time::Instant::now();
    let mut seen = Bits::new(items);
    let mut verified = Verified { extra: Some(0), ..Verified::default() };
    let mut expected = Vec::new();
    engine.fold(&mut |key, value| {
        let number = oracle.index_of(key).filter(|&number| number < items);
        match number {
            Some(number) if seen.set(number) => {
                expected.clear();
                oracle.write_value(number, &mut expected);
                let counter = match value == expected {
                    true => &mut verified.read_back,
                    false => &mut verified.wrong,
                };
                *counter += 1;
            }
            _ => verified.extra = verified.extra.map(|extra| extra + 1),
        }
        ControlFlow::Continue(())
    })?;
    verified.lost = items - verified.read_back - verified.wrong;
    let wall = began.elapsed();
    Ok((Clocked { running: wall, wall }, verified))
}

/// One bit for each record.
struct Bits(Vec<u64>);

impl Bits {
    fn new(count: u64) -> Self {
        let words = usize::try_from(count.div_ceil(64)).unwrap_or(usize::MAX);
        Self(vec![0; words])
    }

    /// Sets a bit; false if it was set already.
    fn set(&mut self, number: u64) -> bool {
        let word = usize::try_from(number / 64).ok().and_then(|at| self.0.get_mut(at));
        let Some(word) = word else { return false };
        let bit = 1 << (number % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}
