//! The one thread pool: its size, when it is used, what a fork does to it, and how work is interrupted.
//!
//! Kernels hand over a list of tasks and get the results in the order of the tasks, so nothing depends on the number of
//! threads. A process forked from one that had started the pool inherits its locks but not its threads; there the
//! kernels run on the calling thread alone until [`set_threads`] is called in that process.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::{Error, Result};
use crate::memory;

/// Environment variable that sets the number of threads.
pub const THREADS_VARIABLE: &str = "MILFAST_NUM_THREADS";
/// More threads than this are refused: to start them would take for ever, and no machine has the processors.
pub const MOST_THREADS: usize = 1024;

/// Asks running work to stop; looked at between tasks.
#[derive(Debug, Default)]
pub struct Interrupt(AtomicBool);

impl Interrupt {
    /// Ask the work to stop.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// An error if the work should stop.
    ///
    /// # Errors
    /// [`Error::interrupted`] after [`Interrupt::raise`].
    pub fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) { Err(Error::interrupted()) } else { Ok(()) }
    }
}

struct Pool {
    process: u32,
    threads: usize,
    workers: Arc<ThreadPool>,
}

/// 0 stands for "not set": the environment variable, else all processors this process may use.
static REQUESTED: AtomicUsize = AtomicUsize::new(0);
/// Process in which the number of threads was last set by hand.
static SET_IN: AtomicU32 = AtomicU32::new(0);
/// Process that first started the pool.
static STARTED_IN: AtomicU32 = AtomicU32::new(0);
static POOL: RwLock<Option<Pool>> = RwLock::new(None);

/// Number of threads that kernels may use.
///
/// # Errors
/// [`Error::range`] when `MILFAST_NUM_THREADS` is not a positive integer or above [`MOST_THREADS`].
pub fn threads() -> Result<usize> {
    static DEFAULT: OnceLock<Result<usize>> = OnceLock::new();
    match REQUESTED.load(Ordering::Relaxed) {
        0 => DEFAULT.get_or_init(default_threads).clone(),
        n => Ok(n),
    }
}

fn default_threads() -> Result<usize> {
    match std::env::var(THREADS_VARIABLE) {
        Ok(text) => match text.trim().parse::<u128>() {
            Ok(n) if n > MOST_THREADS as u128 => {
                Err(Error::range(format_args!("{THREADS_VARIABLE} must be at most {MOST_THREADS}; it is {text:?}")))
            }
            Ok(n) if n > 0 => Ok(n as usize),
            _ => Err(Error::range(format_args!("{THREADS_VARIABLE} must be a positive integer; it is {text:?}"))),
        },
        Err(_) => Ok(std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS)),
    }
}

/// Set the number of threads.
///
/// # Errors
/// [`Error::range`] when `n` is 0 or above [`MOST_THREADS`].
pub fn set_threads(n: usize) -> Result<()> {
    if n == 0 {
        return Err(Error::range(format_args!("n must be at least 1; got 0")));
    }
    if n > MOST_THREADS {
        return Err(Error::range(format_args!("n must be at most {MOST_THREADS}; got {n}")));
    }
    REQUESTED.store(n, Ordering::Relaxed);
    SET_IN.store(std::process::id(), Ordering::Relaxed);
    Ok(())
}

/// The pool, or nothing where work should stay on the calling thread.
fn pool() -> Result<Option<Arc<ThreadPool>>> {
    let wanted = threads()?;
    if wanted == 1 {
        return Ok(None);
    }
    let here = std::process::id();
    let started_in = STARTED_IN.load(Ordering::Relaxed);
    if started_in != 0 && started_in != here && SET_IN.load(Ordering::Relaxed) != here {
        return Ok(None);
    }
    // A lock held while the process forked stays locked for ever in the child, hence try_ and the way around it.
    if let Ok(current) = POOL.try_read()
        && let Some(pool) = current.as_ref()
        && pool.process == here
        && pool.threads == wanted
    {
        return Ok(Some(Arc::clone(&pool.workers)));
    }
    let Ok(mut current) = POOL.try_write() else { return Ok(None) };
    let Ok(workers) = ThreadPoolBuilder::new().num_threads(wanted).thread_name(|i| format!("milfast-{i}")).build()
    else {
        return Ok(None); // no more threads to be had: the calling thread does the work
    };
    let workers = Arc::new(workers);
    let old = current.replace(Pool { process: here, threads: wanted, workers: Arc::clone(&workers) });
    STARTED_IN.store(here, Ordering::Relaxed);
    if let Some(old) = old
        && old.process != here
    {
        std::mem::forget(old); // its threads live in another process: dropping it would wait for them
    }
    Ok(Some(workers))
}

/// Apply `task` to every item and return the results in order; on the pool if `large`, else on the calling thread.
///
/// # Errors
/// [`Error::interrupted`] when interrupted between two items, the error of a task, or that of [`threads`].
pub fn map<T, R, F>(items: Vec<T>, large: bool, interrupt: &Interrupt, task: F) -> Result<Vec<R>>
where
    T: Send,
    R: Send,
    F: Fn(T) -> Result<R> + Sync + Send,
{
    let mut places = memory::room(items.len(), "the list of tasks")?;
    places.extend(items.into_iter().map(|item| Mutex::new((Some(item), None))));
    let mut results = memory::room(places.len(), "the list of results")?;
    each(places.len(), large, interrupt, &|i| {
        let mut place = places[i].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(item) = place.0.take() {
            place.1 = Some(task(item)?);
        }
        Ok(())
    })?;
    results.extend(places.into_iter().filter_map(|place| place.into_inner().unwrap_or_else(PoisonError::into_inner).1));
    Ok(results)
}

/// Call `task` with each of 0..n, as in [`map`]. It is not generic: what there is to threads is compiled once and not for
/// each kind of task, which was a fifth of all code.
fn each(n: usize, large: bool, interrupt: &Interrupt, task: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
    let step = |i| {
        interrupt.check()?;
        task(i)
    };
    let Some(pool) = (if large && n > 1 { pool()? } else { None }) else {
        return (0..n).try_for_each(step);
    };
    // Each thread takes the next task when it is done with one, so that tasks of different lengths come out even. A thread
    // that is not woken in time finds nothing left to do.
    let (next, first) = (AtomicUsize::new(0), Mutex::new(None));
    pool.install(|| {
        (0..pool.current_num_threads().min(n)).into_par_iter().with_max_len(1).for_each(|_| {
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                if i >= n {
                    return;
                }
                if let Err(error) = step(i) {
                    next.store(n, Ordering::Relaxed); // those before it have begun
                    let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                    if first.as_ref().is_none_or(|&(before, _)| i < before) {
                        *first = Some((i, error));
                    }
                }
            }
        });
    });
    let first = first.into_inner().unwrap_or_else(PoisonError::into_inner);
    first.map_or(Ok(()), |(_, error)| Err(error))
}

/// Where `n` rows are cut into tasks of `step` rows; `start` says where the part of a row begins in the output.
///
/// # Errors
/// [`Error::memory`].
pub fn cuts(n: usize, step: usize, start: impl Fn(usize) -> usize) -> Result<Vec<usize>> {
    let n_tasks = n.div_ceil(step);
    let mut cuts = memory::room(n_tasks + 1, "the list of tasks")?;
    cuts.extend((0..=n_tasks).map(|i| start((i * step).min(n))));
    Ok(cuts)
}

/// Cut `out` at `cuts` (ascending, from 0 to `out.len()`) and let `task(i, piece)` fill piece `i`, as in [`map`].
///
/// # Errors
/// As [`map`].
pub fn fill<T: Send>(
    out: &mut [T],
    cuts: &[usize],
    large: bool,
    interrupt: &Interrupt,
    task: impl Fn(usize, &mut [T]) -> Result<()> + Sync,
) -> Result<()> {
    fill_each(out, cuts, large, interrupt, &task)
}

/// The same, compiled once for each type and not for each kind of work.
fn fill_each<T: Send>(
    out: &mut [T],
    cuts: &[usize],
    large: bool,
    interrupt: &Interrupt,
    task: &(dyn Fn(usize, &mut [T]) -> Result<()> + Sync),
) -> Result<()> {
    let mut pieces = memory::room(cuts.len(), "the list of tasks")?;
    let mut rest = out;
    for (i, window) in cuts.windows(2).enumerate() {
        let (piece, tail) = rest.split_at_mut(window[1] - window[0]);
        pieces.push((i, piece));
        rest = tail;
    }
    map(pieces, large, interrupt, |(i, piece)| task(i, piece)).map(|_: Vec<()>| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_tasks() {
        let squares = map((0..1000u64).collect(), true, &Interrupt::default(), |i| Ok(i * i)).unwrap();
        assert!(squares.iter().enumerate().all(|(i, &s)| s == (i as u64).pow(2)));
    }

    #[test]
    fn an_error_is_returned_and_stops_the_rest() {
        set_threads(2).unwrap();
        let done = AtomicUsize::new(0);
        let result: Result<Vec<()>> = map((0..100_000).collect(), true, &Interrupt::default(), |i| {
            done.fetch_add(1, Ordering::Relaxed);
            if i % 50_000 == 3 { Err(Error::range(format_args!("task {i}"))) } else { Ok(()) }
        });
        let message = result.unwrap_err().to_string();
        assert!(message == "task 3" || message == "task 50003", "{message}");
        assert!(done.into_inner() < 100_000);
    }

    #[test]
    fn an_interrupt_stops_the_work() {
        let interrupt = Interrupt::default();
        interrupt.raise();
        assert_eq!(map(vec![1, 2], false, &interrupt, Ok), Err(Error::interrupted()));
    }

    #[test]
    fn the_number_of_threads_has_limits() {
        for n in [0, MOST_THREADS + 1, usize::MAX] {
            assert!(set_threads(n).is_err());
        }
    }

    #[test]
    fn pieces_are_cut_where_asked() {
        let mut out = [0usize; 6];
        fill(&mut out, &[0, 2, 2, 6], true, &Interrupt::default(), |i, piece| {
            piece.fill(i + 1);
            Ok(())
        })
        .unwrap();
        assert_eq!(out, [1, 1, 3, 3, 3, 3]);
    }
}
