//! Work spread over all processors.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Result;

/// Does job 0 to `count` - 1, each once, on as many threads as there are processors; returns what
/// they return, in order.
///
/// # Errors
/// The first error, by the number of the job. Jobs that were not begun by then are not done.
///
/// # Panics
/// If a job panics.
pub(super) fn in_parallel<T: Send>(
    count: usize,
    job: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return done;
            }
            let result = job(number);
            if result.is_err() {
                next.store(count, Ordering::Relaxed);
            }
            done.push((number, result));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(count);
    let mut done = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        for other in others {
            match other.join() {
                Ok(others_done) => done.extend(others_done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn every_job_is_done_once_and_results_are_in_order() {
        for count in [0, 1, 2, 1_000] {
            assert_eq!(in_parallel(count, Ok).unwrap(), (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_error_ends_it() {
        let calls = AtomicUsize::new(0);
        let error = in_parallel(1_000_000, |number| {
            calls.fetch_add(1, Ordering::Relaxed);
            if number == 3 { Err(Error::InvalidArgument("three".to_owned())) } else { Ok(()) }
        });
        assert!(matches!(error, Err(Error::InvalidArgument(three)) if three == "three"));
        assert!(calls.load(Ordering::Relaxed) < 1_000_000);
    }
}
