//! Logs to tables.

use bytes::Bytes;

use super::Repair;
use super::aside::Aside;
use super::tables::Found;
use crate::fs::Access;
use crate::lsm::filename::{FileKind, FileNumber};
use crate::lsm::flush::write_memtable;
use crate::lsm::log::{LogReader, OnCorruption, Tail, TornKind};
use crate::lsm::memtable::Memtable;
use crate::lsm::write::insert;
use crate::lsm::write_batch::{HEADER_BYTES, WriteBatch};
use crate::{Error, Result};

impl Repair<'_> {
    /// Writes what can be read of the logs to tables. A log that is not read whole is set aside.
    pub(super) fn convert_logs(
        &mut self,
        logs: &[FileNumber],
        aside: &mut Aside,
    ) -> Result<Vec<Found>> {
        let mut tables = Vec::new();
        let mut memtable = Memtable::new();
        for log in logs {
            let problem_count = self.report.problems.len();
            self.convert_log(*log, &mut memtable, &mut tables)?;
            if self.report.problems.len() > problem_count {
                aside.add(FileKind::Log(*log));
            }
        }
        self.write_table(&mut memtable, &mut tables)?;
        Ok(tables)
    }

    fn convert_log(
        &mut self,
        number: FileNumber,
        memtable: &mut Memtable,
        tables: &mut Vec<Found>,
    ) -> Result<()> {
        let path = self.home.path(FileKind::Log(number));
        let file = self.home.fs.open(&path, Access::Positioned)?;
        let mut reader = LogReader::new(file, &path, OnCorruption::Skip)?;
        loop {
            let record = match reader.next() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                // What the disk does not give any more is damage too.
                Err(error @ Error::Io { action: "read", .. }) => {
                    self.report.problems.push(error.to_string());
                    break;
                }
                Err(error) => return Err(error),
            };
            let batch = match WriteBatch::decode(record.bytes) {
                Ok(batch) => batch,
                Err(malformed) => {
                    let error = malformed.in_file(&path, record.offset);
                    self.report.problems.push(error.to_string());
                    continue;
                }
            };
            let operations = record.bytes.get(HEADER_BYTES..).unwrap_or_default();
            insert(memtable, batch.first_sequence(), Bytes::copy_from_slice(operations))?;
            self.report.log_record_count += 1;
            if memtable.bytes() >= self.home.options.memtable_bytes {
                self.write_table(memtable, tables)?;
            }
        }
        for skipped in reader.skipped() {
            let problem = format!("{} bytes are left out: {}", skipped.length, skipped.problem);
            let error = Error::corruption(&path, skipped.offset, problem);
            self.report.problems.push(error.to_string());
        }
        // A record that is cut short may be what a crash left. It may also be damage to a length,
        // with whole records behind it: only somebody who has the file can tell.
        if let Some(Tail::Torn(torn)) = reader.tail()
            && torn.kind != TornKind::Unwritten
        {
            let error = Error::corruption(&path, torn.offset, torn.problem.clone());
            self.report.problems.push(error.to_string());
        }
        Ok(())
    }

    fn write_table(&mut self, memtable: &mut Memtable, tables: &mut Vec<Found>) -> Result<()> {
        let memtable = std::mem::take(memtable);
        if !memtable.is_empty() {
            let number = self.take_number();
            write_memtable(self.home, &memtable, number, &[])?;
            tables.push(Found::read(self.home, FileKind::Table(number))?);
        }
        Ok(())
    }
}
