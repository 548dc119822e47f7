//! How a kernel runs under Python: without the GIL, and stopping on Ctrl-C.

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use super::raised::PyResult;
use crate::error::{Error, Result};
use crate::parallel::Interrupt;

/// From this much work (scores, numbers drawn) on Ctrl-C is looked for.
pub(crate) const VERY_LONG: usize = 1 << 20;

/// How often the calling thread looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(20);

/// Run work that may take long: it gets a thread of its own while this one looks for Ctrl-C. Where no thread can be
/// started, this one does the work.
pub(crate) fn interruptible<R: Send>(
    py: Python<'_>,
    long: bool,
    work: impl FnOnce(&Interrupt) -> Result<R> + Send,
) -> PyResult<R> {
    let (mut work, mut result) = (Some(work), Err(Error::interrupted()));
    run(py, long, &mut |interrupt| {
        if let Some(work) = work.take() {
            result = work(interrupt);
        }
    })?;
    Ok(result?)
}

/// The same, compiled once and not for each kind of work.
fn run(py: Python<'_>, long: bool, work: &mut (dyn FnMut(&Interrupt) + Send)) -> PyResult<()> {
    let interrupt = Interrupt::default();
    if !long {
        py.detach(|| work(&interrupt));
        return Ok(());
    }
    let work = Mutex::new(work); // a thread that does not start must not take the work with it
    let work = || work.lock().unwrap_or_else(PoisonError::into_inner)(&interrupt);
    py.detach(|| {
        thread::scope(|scope| {
            let (send, receive) = channel();
            let worker = thread::Builder::new().spawn_scoped(scope, move || {
                work();
                let _ = send.send(()); // wakes the waiting thread at once; on a panic the closed channel does
            });
            let Ok(worker) = worker else {
                work();
                return Ok(());
            };
            let mut signal = None;
            while signal.is_none() && receive.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                #[allow(clippy::redundant_closure_for_method_calls)] // the method alone does not compile
                if let Err(error) = Python::attach(|py| py.check_signals()) {
                    interrupt.raise();
                    signal = Some(error);
                }
            }
            worker.join().unwrap_or_else(|panic| resume_unwind(panic));
            signal.map_or(Ok(()), |error| Err(error.into()))
        })
    })
}
