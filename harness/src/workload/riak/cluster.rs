//! One engine made of many: an instance for each partition of the ring, and every record in as many
//! of them as it has copies.
//!
//! - Writes go to every copy, the first one first; one that fails half-way leaves some changed.
//! - A get reads the first copy.
//! - A fold visits the first copy of each record, and compares all others with it on the way: the
//!   copies of one rank, taken over all partitions, must be the same records as those of any other.

use std::ops::ControlFlow;

use engines::engine::Visitor;
use engines::{
    Batch, Capabilities, Description, Direction, Engine, Error, KeyRange, Operation, Result, Stats,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::ring::Ring;
use crate::workload::job::Opener;

/// The setting by which results tell how many instances there are.
pub(crate) const INSTANCES: &str = "instances";

/// The instances of one engine on a ring.
pub(super) struct Cluster {
    ring: Ring,
    /// By partition.
    instances: Vec<Box<dyn Engine>>,
    engine: &'static str,
}

impl Cluster {
    /// Opens an instance for each partition, each with its part of the memory budget.
    ///
    /// # Errors
    /// What the first instance says, and [`Error::Unavailable`] with what a later one says: an
    /// engine may be unable to be there so often in one process.
    pub(super) fn open(ring: Ring, opener: &Opener<'_>) -> Result<Self> {
        let size = ring.size.get();
        let first = opener(&folder(0), size.into())?;
        let engine = first.description().engine;
        let mut instances = vec![first];
        for partition in 1..size {
            let opened = opener(&folder(partition), size.into());
            instances.push(opened.map_err(|error| Error::Unavailable {
                engine,
                reason: format!("instance {} of {size} did not open: {error}", partition + 1),
                remedy: "a smaller --ring-size may do".to_owned(),
            })?);
        }
        Ok(Self { ring, instances, engine })
    }

    fn instance(&self, partition: u32) -> Result<&dyn Engine> {
        // There is one for each partition of the ring, which makes the numbers.
        self.instances
            .get(partition as usize)
            .map(AsRef::as_ref)
            .ok_or_else(|| Error::InvalidArgument(format!("the ring has no partition {partition}")))
    }

    fn holders(&self, key: &[u8]) -> impl Iterator<Item = Result<&dyn Engine>> {
        self.ring.holders(key).map(|partition| self.instance(partition))
    }

    /// Says so unless all ranks hold the same.
    fn compare(&self, ranks: &[Rank]) -> Result<()> {
        let Some((first, others)) = ranks.split_first() else { return Ok(()) };
        let different = (2..).zip(others).find(|(_, rank)| *rank != first);
        different.map_or(Ok(()), |(number, rank)| {
            let problem = format!(
                "copies number {number} are not those number 1: {} and {} records",
                rank.records, first.records
            );
            Err(Error::corruption(format!("{} on the ring", self.engine), 0, problem))
        })
    }
}

/// All copies of one rank: how many, and a sum of hashes, which asks for no order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Rank {
    records: u64,
    hashes: u64,
}

impl Rank {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.records += 1;
        let hash = xxh3_64_with_seed(value, xxh3_64_with_seed(key, 0));
        self.hashes = self.hashes.wrapping_add(hash);
    }
}

/// The folder of a partition.
fn folder(partition: u32) -> String {
    format!("partition-{partition:04}")
}

impl Engine for Cluster {
    /// The settings are those of one instance.
    fn description(&self) -> Description {
        let mut told = match self.instances.first() {
            Some(first) => first.description(),
            None => Description {
                engine: self.engine,
                version: String::new(),
                durability: String::new(),
                settings: Vec::new(),
            },
        };
        told.settings.push((INSTANCES, self.instances.len().to_string()));
        told
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            ordered_scan: false,
            scan_sorts: false,
            atomic_batch: false,
            snapshot_scan: false,
            persistent: self.instances.iter().all(|one| one.capabilities().persistent),
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.holders(key).try_for_each(|holder| holder?.put(key, value))
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.holders(key).try_for_each(|holder| holder?.delete(key))
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.instance(self.ring.first(key))?.get(key, read)
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        batch.iter().try_for_each(|operation| match operation {
            Operation::Put { key, value } => self.put(key, value),
            Operation::Delete { key } => self.delete(key),
        })
    }

    fn scan(&self, _: KeyRange<'_>, _: Direction, _: &mut Visitor<'_>) -> Result<()> {
        Err(Error::Unsupported { engine: self.engine, operation: "ordered scan of a ring".into() })
    }

    /// A record in a partition that is none of its own is visited too: nobody wrote it there.
    ///
    /// # Errors
    /// [`Error::Corruption`] if the copies are not the same, unless `visit` broke before all had
    /// been seen.
    fn fold(&self, visit: &mut Visitor<'_>) -> Result<()> {
        let mut ranks = vec![Rank::default(); self.ring.copies.get() as usize];
        let mut flow = ControlFlow::Continue(());
        for (partition, instance) in (0..).zip(&self.instances) {
            instance.fold(&mut |key, value| {
                let copy = self.ring.copy_in(partition, key);
                if let Some(rank) = copy.and_then(|copy| ranks.get_mut(copy as usize)) {
                    rank.add(key, value);
                }
                if copy.is_none_or(|copy| copy == 0) {
                    flow = visit(key, value);
                }
                flow
            })?;
            if flow.is_break() {
                return Ok(());
            }
        }
        self.compare(&ranks)
    }

    fn sync(&self) -> Result<()> {
        self.instances.iter().try_for_each(|one| one.sync())
    }

    fn quiesce(&self) -> Result<()> {
        self.instances.iter().try_for_each(|one| one.quiesce())
    }

    fn compact(&self) -> Result<()> {
        self.instances.iter().try_for_each(|one| one.compact())
    }

    /// Sums over all instances; a record counts once, however many copies it has.
    fn stats(&self) -> Result<Stats> {
        let all = self.instances.iter().map(|one| one.stats()).collect::<Result<Vec<Stats>>>()?;
        let sum = |of: fn(&Stats) -> Option<u64>| all.iter().map(of).sum::<Option<u64>>();
        Ok(Stats {
            live_records: sum(|one| one.live_records)
                .map(|records| records / u64::from(self.ring.copies.get())),
            disk_bytes: sum(|one| one.disk_bytes),
            dead_bytes: sum(|one| one.dead_bytes),
            memory_bytes: sum(|one| one.memory_bytes),
            file_count: sum(|one| one.file_count),
            compaction_count: sum(|one| one.compaction_count),
            compaction_written_bytes: sum(|one| one.compaction_written_bytes),
            longest_stall_us: all.iter().filter_map(|one| one.longest_stall_us).max(),
            details: Vec::new(),
        })
    }

    /// Closes all of them, whatever the others say.
    fn close(self: Box<Self>) -> Result<()> {
        let mut outcome = Ok(());
        for instance in self.instances {
            outcome = outcome.and(instance.close());
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use engines::{OpenOptions, registry};
    use tempfile::TempDir;

    use super::*;

    const KEYS: [&str; 5] = ["0", "1", "3", "4", "longer"];

    fn open(engine: &str, directory: &TempDir, size: u32, copies: u32) -> Cluster {
        let ring = Ring { size: size.try_into().unwrap(), copies: copies.try_into().unwrap() };
        let opener = |folder: &str, parts: u64| {
            assert_eq!(parts, u64::from(size));
            let options = OpenOptions::new().memory_bytes((64 << 20) / parts);
            registry::find(engine)?.open(&directory.path().join(folder), &options)
        };
        Cluster::open(ring, &opener).unwrap()
    }

    fn folded(engine: &dyn Engine) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
        let (mut found, mut visits) = (BTreeMap::new(), 0);
        engine.fold(&mut |key, value| {
            visits += 1;
            found.insert(key.to_vec(), value.to_vec());
            ControlFlow::Continue(())
        })?;
        assert_eq!(found.len(), visits, "nothing is visited twice");
        Ok(found)
    }

    /// Against a map, through a reopening; and every copy is where the ring says.
    #[test]
    fn many_instances_are_one_engine() {
        let directory = TempDir::new().unwrap();
        let cluster = open("bitcask", &directory, 8, 3);
        let mut model = BTreeMap::new();
        for (number, key) in KEYS.iter().cycle().take(12).enumerate() {
            let value = format!("value {number}").into_bytes();
            cluster.put(key.as_bytes(), &value).unwrap();
            model.insert(key.as_bytes().to_vec(), value);
        }
        cluster.delete(b"3").unwrap();
        let mut batch = Batch::new();
        batch.put(b"in a batch", b"1").unwrap();
        batch.delete(b"4").unwrap();
        cluster.write(&batch).unwrap();
        model.insert(b"in a batch".to_vec(), b"1".to_vec());
        model.remove(b"3".as_slice());
        model.remove(b"4".as_slice());
        cluster.sync().unwrap();
        cluster.compact().unwrap();
        assert_eq!(cluster.stats().unwrap().live_records, Some(model.len() as u64));
        Box::new(cluster).close().unwrap();

        let cluster = open("bitcask", &directory, 8, 3);
        assert_eq!(folded(&cluster).unwrap(), model);
        for key in KEYS.iter().map(|key| key.as_bytes()) {
            assert_eq!(cluster.get_vec(key).unwrap().as_ref(), model.get(key));
            for (partition, instance) in (0..).zip(&cluster.instances) {
                let expected = cluster.ring.copy_in(partition, key).and(model.get(key));
                assert_eq!(instance.get_vec(key).unwrap().as_ref(), expected);
            }
        }
        let refused = cluster.scan(KeyRange::all(), Direction::Forward, &mut |_, _| unreachable!());
        assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
        assert!(!cluster.capabilities().ordered_scan);
        let mut visits = 0;
        let mut once = |_: &[u8], _: &[u8]| {
            visits += 1;
            ControlFlow::Break(())
        };
        cluster.fold(&mut once).unwrap();
        assert_eq!(visits, 1);
    }

    /// A copy that is lost, changed or exchanged for another is corruption; a stray one is visited.
    #[test]
    fn a_copy_that_differs_is_found() {
        let directory = TempDir::new().unwrap();
        let filled = || {
            let cluster = open("memory", &directory, 8, 3);
            KEYS.iter().for_each(|key| cluster.put(key.as_bytes(), b"value").unwrap());
            cluster
        };
        let harm = |how: &dyn Fn(&Cluster, u32, u32)| {
            let cluster = filled();
            let holders: Vec<u32> = cluster.ring.holders(b"1").collect();
            how(&cluster, holders[1], holders[2]);
            folded(&cluster)
        };
        assert_eq!(harm(&|_, _, _| ()).unwrap().len(), KEYS.len());
        let lost = harm(&|cluster, second, _| {
            cluster.instance(second).unwrap().delete(b"1").unwrap();
        });
        let told = lost.unwrap_err();
        assert!(told.is_corruption() && told.to_string().contains("4 and 5 records"), "{told}");
        let changed = harm(&|cluster, _, third| {
            cluster.instance(third).unwrap().put(b"1", b"other").unwrap();
        });
        assert!(changed.unwrap_err().to_string().contains("copies number 3"));
        let stray = harm(&|cluster, _, _| {
            let is_beyond = |at: &u32| cluster.ring.copy_in(*at, b"nobody's").is_none();
            let beyond = (0..8).find(is_beyond).unwrap();
            cluster.instance(beyond).unwrap().put(b"nobody's", b"stray").unwrap();
        });
        assert_eq!(stray.unwrap().len(), KEYS.len() + 1);
    }

    /// The first instance's refusal is the engine's own word; a later one's tells its number.
    #[test]
    fn an_engine_that_cannot_be_there_so_often_says_which_instance_it_was() {
        let ring = Ring { size: 4.try_into().unwrap(), copies: 1.try_into().unwrap() };
        let told = |at: &'static str| {
            let opener = |folder: &str, _: u64| match folder == at {
                true => Err(Error::Unsupported { engine: "memory", operation: "so many".into() }),
                false => {
                    let directory = TempDir::new().unwrap();
                    registry::find("memory")?.open(directory.path(), &OpenOptions::new())
                }
            };
            Cluster::open(ring, &opener).err().unwrap()
        };
        assert!(matches!(told("partition-0000"), Error::Unsupported { .. }));
        let third = told("partition-0002").to_string();
        assert!(third.contains("instance 3 of 4 did not open: memory has no so many"), "{third}");
    }
}
