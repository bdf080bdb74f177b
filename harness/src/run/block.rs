//! A share of a phase, made ready: operations with their keys and values as bytes, so that making
//! them costs the engine nothing.

use std::hint::black_box;
use std::ops::{ControlFlow, Range};

use engines::{Batch, Direction, Engine, KeyRange};

use super::stream_hash::StreamHash;
use crate::measure::recorder::Counts;
use crate::workload::job::Records;
use crate::workload::op::{Kind, Op};

/// Calls in order, and the bytes that they are made with.
#[derive(Default)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    calls: Vec<Call>,
    batches: Vec<Batch>,
    /// The keys of reads that are timed together, one after the other.
    grouped: Vec<Range<usize>>,
    hash: StreamHash,
}

/// One call. What `first` and `count` count depends on the kind.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) kind: Kind,
    key: Range<usize>,
    value_end: usize,
    /// How far a scan goes; the number of a batch; where grouped reads begin.
    number: u64,
    /// Operations in the call.
    pub(crate) operations: u64,
}

impl Block {
    pub(crate) fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The hash of its operations.
    pub(crate) fn hash(&self) -> StreamHash {
        self.hash
    }

    /// Replaces everything by `ops`, at most `batch` of them in a call.
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub(crate) fn fill(
        &mut self,
        records: &dyn Records,
        ops: &[Op],
        batch: u32,
    ) -> engines::Result<()> {
        self.bytes.clear();
        self.calls.clear();
        self.batches.clear();
        self.grouped.clear();
        self.hash = StreamHash::default();
        if batch <= 1 {
            for op in ops {
                self.add(records, op);
            }
            return Ok(());
        }
        let mut rest = ops;
        while let Some(first) = rest.first() {
            let class = Class::of(first.kind);
            let alike = rest.iter().take(batch as usize);
            let length = match class {
                Class::Alone => 1,
                _ => alike.take_while(|op| Class::of(op.kind) == class).count(),
            };
            let (group, after) = rest.split_at(length);
            match class {
                Class::Alone => self.add(records, first),
                Class::Write => self.add_batch(records, group)?,
                Class::Read => self.add_reads(records, group),
            }
            rest = after;
        }
        Ok(())
    }

    fn add(&mut self, records: &dyn Records, op: &Op) {
        let (key, value_end) = self.render(records, op);
        self.hash.add(op, &self.bytes[key.clone()], &self.bytes[key.end..value_end]);
        let number = op.length;
        self.calls.push(Call { kind: op.kind, key, value_end, number, operations: 1 });
    }

    fn add_batch(&mut self, records: &dyn Records, ops: &[Op]) -> engines::Result<()> {
        let mut batch = Batch::new();
        let start = self.bytes.len();
        for op in ops {
            let (key, value_end) = self.render(records, op);
            let (key, value) = (&self.bytes[key.clone()], &self.bytes[key.end..value_end]);
            self.hash.add(op, key, value);
            match op.kind.puts() {
                true => batch.put(key, value)?,
                false => batch.delete(key)?,
            }
        }
        self.calls.push(Call {
            kind: Kind::BatchWrite,
            key: start..self.bytes.len(),
            value_end: self.bytes.len(),
            number: self.batches.len() as u64,
            operations: ops.len() as u64,
        });
        self.batches.push(batch);
        Ok(())
    }

    fn add_reads(&mut self, records: &dyn Records, ops: &[Op]) {
        let (start, first) = (self.bytes.len(), self.grouped.len());
        for op in ops {
            let (key, _) = self.render(records, op);
            self.hash.add(op, &self.bytes[key.clone()], &[]);
            self.grouped.push(key);
        }
        self.calls.push(Call {
            kind: Kind::BatchRead,
            key: start..self.bytes.len(),
            value_end: self.bytes.len(),
            number: first as u64,
            operations: ops.len() as u64,
        });
    }

    /// Writes key and value; the value begins where the key ends.
    fn render(&mut self, records: &dyn Records, op: &Op) -> (Range<usize>, usize) {
        let start = self.bytes.len();
        if op.kind.has_record() {
            records.write_key(op.record, &mut self.bytes);
        }
        let end = self.bytes.len();
        if op.kind.puts() {
            records.write_value(op.record, op.version, &mut self.bytes);
        }
        (start..end, self.bytes.len())
    }

    /// Makes a call. Values that are read are touched, every line of them: an engine that lends
    /// memory it has not looked at yet pays for that here, as it would with any reader.
    pub(crate) fn execute(&self, engine: &dyn Engine, call: &Call) -> engines::Result<Counts> {
        let key = &self.bytes[call.key.clone()];
        let value = &self.bytes[call.key.end..call.value_end];
        let mut counts = Counts { operations: call.operations, ..Counts::default() };
        match call.kind {
            Kind::Insert | Kind::Update => {
                engine.put(key, value)?;
                counts.written_bytes = (key.len() + value.len()) as u64;
            }
            Kind::Delete => {
                engine.delete(key)?;
                counts.written_bytes = key.len() as u64;
            }
            Kind::Read => read(engine, key, &mut counts)?,
            Kind::UpdateField | Kind::ReadModifyWrite => {
                read(engine, key, &mut counts)?;
                engine.put(key, value)?;
                counts.written_bytes = (key.len() + value.len()) as u64;
            }
            Kind::Scan => scan(engine, key, Direction::Forward, call.number, &mut counts)?,
            Kind::ScanBack => scan(engine, key, Direction::Backward, call.number, &mut counts)?,
            Kind::ScanAll => engine.fold(&mut |key, value| {
                visit(key, value, &mut counts);
                ControlFlow::Continue(())
            })?,
            Kind::BatchWrite => {
                if let Some(batch) = self.batches.get(to_usize(call.number)) {
                    engine.write(batch)?;
                }
                counts.written_bytes = key.len() as u64;
            }
            Kind::BatchRead => {
                let first = to_usize(call.number);
                let keys = self.grouped.iter().skip(first).take(to_usize(call.operations));
                for key in keys {
                    read(engine, &self.bytes[key.clone()], &mut counts)?;
                }
            }
            Kind::Sync => engine.sync()?,
            Kind::Seek => seek(engine, key, &mut counts)?,
        }
        Ok(counts)
    }
}

/// What may share a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Write,
    Read,
    Alone,
}

impl Class {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Insert | Kind::Update | Kind::Delete => Self::Write,
            Kind::Read => Self::Read,
            _ => Self::Alone,
        }
    }
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn read(engine: &dyn Engine, key: &[u8], counts: &mut Counts) -> engines::Result<()> {
    let mut bytes = 0;
    let found = engine.get(key, &mut |value| {
        touch(value);
        bytes = value.len() as u64;
    })?;
    counts.read_bytes += bytes;
    counts.not_found += u64::from(!found);
    Ok(())
}

fn scan(
    engine: &dyn Engine,
    key: &[u8],
    direction: Direction,
    length: u64,
    counts: &mut Counts,
) -> engines::Result<()> {
    use std::ops::Bound::{Included, Unbounded};
    let range = match direction {
        Direction::Forward => KeyRange { start: Included(key), end: Unbounded },
        Direction::Backward => KeyRange { start: Unbounded, end: Included(key) },
    };
    engine.scan(range, direction, &mut |key, value| {
        visit(key, value, counts);
        if counts.visited < length { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
}

fn seek(engine: &dyn Engine, wanted: &[u8], counts: &mut Counts) -> engines::Result<()> {
    let mut found = false;
    engine.scan(KeyRange::from(wanted), Direction::Forward, &mut |key, value| {
        visit(key, value, counts);
        found = key == wanted;
        ControlFlow::Break(())
    })?;
    counts.not_found += u64::from(!found);
    Ok(())
}

fn visit(key: &[u8], value: &[u8], counts: &mut Counts) {
    touch(value);
    counts.visited += 1;
    counts.read_bytes += (key.len() + value.len()) as u64;
}

/// The unit in which memory comes to the processor.
const LINE_BYTES: usize = 64;

fn touch(value: &[u8]) {
    let lines = value.iter().step_by(LINE_BYTES);
    black_box(lines.fold(0, |sum: u8, &byte| sum ^ byte));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::insert::InsertRecords;
    use crate::workload::values::{Corpus, Framing};

    fn records() -> InsertRecords {
        InsertRecords::new(Corpus::Varied, Framing::Json, 42)
    }

    fn inserts(range: Range<u64>) -> Vec<Op> {
        range.map(|record| Op::put(Kind::Insert, record, 0)).collect()
    }

    fn block(ops: &[Op], batch: u32) -> Block {
        let mut block = Block::default();
        block.fill(&records(), ops, batch).unwrap();
        block
    }

    #[test]
    fn the_hash_is_the_same_however_the_stream_is_cut() {
        let whole = block(&inserts(0..50), 1).hash();
        let mut cut = block(&inserts(30..50), 7).hash();
        cut.merge(block(&inserts(0..30), 1).hash());
        assert_eq!(cut, whole);
        assert_eq!(whole.count(), 50);
    }

    #[test]
    fn the_hash_tells_streams_apart() {
        let hash = |ops: &[Op]| block(ops, 1).hash();
        let scan = |length| Op::scan(Kind::Scan, 1, length);
        let streams = [
            hash(&inserts(0..10)),
            hash(&inserts(0..9)),
            hash(&inserts(1..11)),
            hash(&[Op::read(1)]),
            hash(&[Op::read(2)]),
            hash(&[Op::delete(1)]),
            hash(&[scan(1)]),
            hash(&[scan(2)]),
            hash(&[Op::scan(Kind::ScanBack, 1, 1)]),
            hash(&[Op::put(Kind::Update, 1, 0)]),
            hash(&[Op::put(Kind::Update, 1, 1)]),
            hash(&[Op::put(Kind::Insert, 1, 0)]),
            hash(&[Op::sync()]),
        ];
        for (at, one) in streams.iter().enumerate() {
            assert!(!streams[..at].contains(one), "stream {at} is told from none");
        }
    }

    #[test]
    fn calls_hold_every_operation_once_in_order() {
        let mut ops = inserts(0..10);
        ops.extend([Op::read(0), Op::read(1), Op::scan(Kind::Scan, 0, 3), Op::delete(9)]);
        let block = block(&ops, 4);
        let calls: Vec<_> = block.calls().iter().map(|call| (call.kind, call.operations)).collect();
        let expected = [
            (Kind::BatchWrite, 4),
            (Kind::BatchWrite, 4),
            (Kind::BatchWrite, 2),
            (Kind::BatchRead, 2),
            (Kind::Scan, 1),
            (Kind::BatchWrite, 1),
        ];
        assert_eq!(calls, expected);
        let batched: Vec<_> = block.batches.iter().flat_map(Batch::iter).collect();
        assert_eq!(batched.len(), 11);
        for (record, operation) in (0..10).zip(&batched) {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            records().write_key(record, &mut key);
            records().write_value(record, 0, &mut value);
            assert_eq!(*operation, engines::Operation::Put { key: &key, value: &value });
        }
    }

    #[test]
    fn calls_do_what_they_say_and_count_it() {
        let directory = tempfile::tempdir().unwrap();
        let memory = engines::registry::find("memory").unwrap();
        let engine = memory.open(directory.path(), &engines::OpenOptions::new()).unwrap();
        let mut ops = inserts(0..10);
        ops.extend([
            Op::read(3),
            Op::read(99),
            Op::delete(3),
            Op::read(3),
            Op::scan_all(),
            Op::put(Kind::ReadModifyWrite, 4, 1),
            Op::put(Kind::Update, 5, 1),
            Op::sync(),
        ]);
        let block = block(&ops, 1);
        let counts: Vec<Counts> = block
            .calls()
            .iter()
            .map(|call| block.execute(engine.as_ref(), call).unwrap())
            .collect();
        let (key, value) = (32, 2_656);
        let nothing = Counts { operations: 1, ..Counts::default() };
        let missing = Counts { not_found: 1, ..nothing };
        let put = Counts { written_bytes: key + value, ..nothing };
        assert!(counts[..10].iter().all(|counts| *counts == put));
        assert_eq!(counts[10], Counts { read_bytes: value, ..nothing });
        assert_eq!(counts[11], missing);
        assert_eq!(counts[12], Counts { written_bytes: key, ..nothing });
        assert_eq!(counts[13], missing);
        let nine = Counts { visited: 9, read_bytes: 9 * (key + value), ..nothing };
        assert_eq!(counts[14], nine);
        assert_eq!(counts[15], Counts { read_bytes: value, ..put });
        assert_eq!((counts[16], counts[17]), (put, nothing));
        for (record, version) in [(4, 1), (5, 1), (6, 0)] {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            records().write_key(record, &mut key);
            records().write_value(record, version, &mut value);
            assert_eq!(engine.get_vec(&key).unwrap(), Some(value), "record {record}");
        }
    }

    #[test]
    fn scans_go_as_far_as_they_should_from_where_they_should() {
        let directory = tempfile::tempdir().unwrap();
        let memory = engines::registry::find("memory").unwrap();
        let engine = memory.open(directory.path(), &engines::OpenOptions::new()).unwrap();
        let load = block(&inserts(0..20), 5);
        for call in load.calls() {
            load.execute(engine.as_ref(), call).unwrap();
        }
        let mut keys: Vec<(Vec<u8>, u64)> = (0..20)
            .map(|record| {
                let mut key = Vec::new();
                records().write_key(record, &mut key);
                (key, record)
            })
            .collect();
        keys.sort();
        let visited = |kind, place: usize| {
            let block = block(&[Op::scan(kind, keys[place].1, 8)], 1);
            block.execute(engine.as_ref(), &block.calls()[0]).unwrap().visited
        };
        assert_eq!((visited(Kind::Scan, 0), visited(Kind::Scan, 17)), (8, 3));
        assert_eq!((visited(Kind::ScanBack, 19), visited(Kind::ScanBack, 2)), (8, 3));
    }
}
