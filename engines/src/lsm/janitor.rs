//! Removing files that nobody needs any more, off everybody's path.
//!
//! One thread removes what it is told to, in order. A file that cannot be removed is left: the
//! next open finds that nothing refers to it and tries again.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::filename::{FileKind, FileNumber};
use super::table_cache::TableCache;
use crate::fs::FileSystem;
use crate::{Error, Result};

/// The thread, ended and waited for by [`stop`](Self::stop).
#[derive(Debug)]
pub(crate) struct Janitor {
    disposal: Disposal,
    thread: JoinHandle<()>,
}

impl Janitor {
    pub(crate) fn start(
        fs: Arc<dyn FileSystem>,
        directory: PathBuf,
        tables: Arc<TableCache>,
        disposal: Disposal,
        orders: Receiver<Order>,
    ) -> Result<Self> {
        let work = {
            let directory = directory.clone();
            move || {
                for order in orders {
                    match order {
                        Order::Table(number) => {
                            tables.evict(number);
                            remove_table(&*fs, &directory, number);
                        }
                        Order::File(kind) => drop(fs.remove(&kind.path(&directory))),
                        Order::Report(done) => drop(done.send(())),
                        Order::Stop => return,
                    }
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("lsm-janitor".into())
            .spawn(work)
            .map_err(Error::io("start a thread for", directory))?;
        Ok(Self { disposal, thread })
    }

    /// Returns when everything ordered so far is gone.
    pub(crate) fn wait(&self) {
        let (done, wait) = channel();
        self.disposal.order(Order::Report(done));
        // The other end goes when the thread does: there is nothing left to wait for then.
        let _ = wait.recv();
    }

    /// Ends the thread when everything ordered so far is gone.
    pub(crate) fn stop(self) {
        self.disposal.order(Order::Stop);
        let _ = self.thread.join();
    }
}

/// Where orders are given.
#[derive(Debug, Clone)]
pub(crate) struct Disposal(Sender<Order>);

/// What the thread is told.
#[derive(Debug)]
pub(crate) enum Order {
    Table(FileNumber),
    File(FileKind),
    Report(Sender<()>),
    Stop,
}

impl Disposal {
    pub(crate) fn new() -> (Self, Receiver<Order>) {
        let (sender, receiver) = channel();
        (Self(sender), receiver)
    }

    /// A table that no version holds any more.
    pub(crate) fn table(&self, number: FileNumber) {
        self.order(Order::Table(number));
    }

    /// Any other file.
    pub(crate) fn file(&self, kind: FileKind) {
        self.order(Order::File(kind));
    }

    fn order(&self, order: Order) {
        // After the end of the thread files stay for the next open to remove.
        let _ = self.0.send(order);
    }

    #[cfg(test)]
    pub(crate) fn nowhere() -> Self {
        Self::new().0
    }

    /// A disposal and what it was told of tables since it was last asked.
    #[cfg(test)]
    pub(crate) fn recorded() -> (Self, impl Fn() -> Vec<FileNumber>) {
        let (disposal, orders) = Self::new();
        let told = move || {
            let tables = orders.try_iter().filter_map(|order| match order {
                Order::Table(number) => Some(number),
                _ => None,
            });
            tables.collect()
        };
        (disposal, told)
    }
}

/// Tables of LevelDB before 1.14 have another suffix.
fn remove_table(fs: &dyn FileSystem, directory: &std::path::Path, number: FileNumber) {
    for kind in [FileKind::Table(number), FileKind::OldTable(number)] {
        let path = kind.path(directory);
        if fs.entry(&path).is_ok_and(|entry| entry.is_some()) {
            let _ = fs.remove(&path);
        }
    }
}
