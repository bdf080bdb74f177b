//! Going on where an interrupted comparison ended.

use crate::results::Comparison;
use crate::results::difference::Difference;
use crate::{Error, Result};

/// The earlier comparison with its runs, to be continued as `wanted` says: which must be the same
/// work on the same machine by the same program.
pub(super) fn go_on(earlier: Comparison, wanted: Comparison) -> Result<Comparison> {
    let (then, now) = (&earlier.machine, &wanted.machine);
    if let Some(found) = Difference::first(&earlier.workload, &wanted.workload) {
        same(&found.place, &found.then, &found.now)?;
    }
    same("--engines", &earlier.engines.join(","), &wanted.engines.join(","))?;
    same("enginelab's version", &then.enginelab, &now.enginelab)?;
    same("the build", &then.build, &now.build)?;
    same("the processor", &then.cpu, &now.cpu)?;
    same("the number of cores", &then.cores.to_string(), &now.cores.to_string())?;
    same("the kernel", &then.kernel, &now.kernel)?;
    same("the file system", &then.file_system.kind, &now.file_system.kind)?;
    Ok(Comparison { interrupted: false, ..earlier })
}

fn same(what: &str, then: &str, now: &str) -> Result<()> {
    if then == now {
        return Ok(());
    }
    Err(Error::Usage(format!("cannot resume: {what} was {then} there, and is {now} here")))
}
