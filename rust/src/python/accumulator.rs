//! Accumulators of the AUC, as Python holds them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::PyArray1;
use pyo3::prelude::*;

use super::arrays::{Labels, Scores, counts, with_scores};
use super::raised::{PyResult, Raised};
use super::running::{VERY_LONG, interruptible};
use crate::accumulator::{Accumulator as Core, Bin, Bins, Kept, SEVERAL, score_of};
use crate::memory;
use crate::scores::Score;

/// Number, only value (NaN for several), negatives and positives of each bin.
type HeldBins<'py> =
    (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>);

/// Counts behind `milfast.AUCAccumulator`, which is the way to use them.
#[pyclass(frozen, module = "milfast._core")]
pub(super) struct Accumulator {
    // Not the borrow flag of pyo3, which would turn two threads that update at once into an error.
    core: Mutex<Core>,
}

impl Accumulator {
    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Accumulator {
    /// Bins between a power of two and the next; None keeps the scores.
    #[new]
    #[pyo3(signature = (bins))]
    fn new(bins: Option<usize>) -> PyResult<Self> {
        let core = match bins {
            Some(bins) => Core::Bins(Bins::new(bins)?),
            None => Core::Kept(Kept::default()),
        };
        Ok(Self { core: Mutex::new(core) })
    }

    /// Take scores and labels in: all, or on an error none.
    #[pyo3(signature = (scores, labels, *, pos_label=None))]
    fn update<'py>(
        &self,
        py: Python<'py>,
        scores: &Bound<'py, PyAny>,
        labels: &Bound<'py, PyAny>,
        pos_label: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let scores = Scores::of(scores, "scores")?;
        let labels = Labels::beside(&scores, labels, pos_label)?;
        let labels = labels.decided(&scores)?;
        let labels = labels.slice();
        with_scores!(scores, |scores| {
            interruptible(py, scores.len() > VERY_LONG, |stop| self.lock().update(scores, labels, stop))
        })
    }

    /// Take in what another accumulator has.
    fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        // The other is copied first: nobody holds two locks, and an accumulator may be merged into itself.
        Ok(py.detach(|| {
            let other = other.lock().clone();
            self.lock().merge(&other)
        })?)
    }

    /// Estimate and bounds of the AUC, and class sizes.
    fn bounds(&self, py: Python<'_>) -> PyResult<(f64, f64, f64, u64, u64)> {
        let long = matches!(&*self.lock(), Core::Kept(kept) if kept.scores.len() > VERY_LONG);
        let bounds = interruptible(py, long, |stop| self.lock().bounds(stop))?;
        let counts = bounds.middle;
        Ok((counts.auc(), bounds.low.auc(), bounds.high.auc(), counts.n_pos, counts.n_neg))
    }

    /// The bins that hold scores; nothing where the scores are kept.
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Option<HeldBins<'py>>> {
        const WHAT: &str = "the state of the accumulator";
        let core = self.lock();
        let Core::Bins(bins) = &*core else { return Ok(None) };
        let n = bins.held().count();
        let (mut numbers, mut values) = (memory::room(n, WHAT)?, memory::room(n, WHAT)?);
        let (mut neg, mut pos) = (memory::room(n, WHAT)?, memory::room(n, WHAT)?);
        for (number, bin) in bins.held() {
            numbers.push(number);
            values.push(if bin.key == SEVERAL { f64::NAN } else { score_of(bin.key) });
            neg.push(bin.counts[0]);
            pos.push(bin.counts[1]);
        }
        drop(core);
        Ok(Some((
            PyArray1::from_vec(py, numbers),
            PyArray1::from_vec(py, values),
            PyArray1::from_vec(py, neg),
            PyArray1::from_vec(py, pos),
        )))
    }

    /// The scores and labels; nothing where they are counted by bin.
    #[allow(clippy::type_complexity)]
    fn kept<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<bool>>)>> {
        const WHAT: &str = "the state of the accumulator";
        let core = self.lock();
        let Core::Kept(kept) = &*core else { return Ok(None) };
        let scores = memory::collect(kept.scores.iter().copied(), WHAT)?;
        let labels = memory::collect(kept.labels.iter().copied(), WHAT)?;
        drop(core);
        Ok(Some((PyArray1::from_vec(py, scores), PyArray1::from_vec(py, labels))))
    }

    /// Add bins as `held` gives them: all, or on an error none.
    fn restore<'py>(
        &self,
        numbers: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
        neg: &Bound<'py, PyAny>,
        pos: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let values = Scores::of(values, "values")?.into_f64()?;
        let (numbers, neg, pos) = (counts(numbers, "numbers")?, counts(neg, "neg")?, counts(pos, "pos")?);
        let (values, numbers, neg, pos) = (values.slice(), numbers.slice(), neg.slice(), pos.slice());
        let n = numbers.len();
        if [values.len(), neg.len(), pos.len()] != [n; 3] {
            return Err(Raised::value_error(format_args!("numbers, values, neg and pos must have the same length")));
        }
        let mut core = self.lock();
        let Core::Bins(bins) = &mut *core else {
            return Err(Raised::value_error(format_args!("an exact accumulator has no bins: update it with scores")));
        };
        let mut apart = Bins::new(bins.per_octave())?;
        for i in 0..n {
            let key = if values[i].is_nan() { SEVERAL } else { values[i].key() };
            apart.restore(numbers[i], Bin { key, counts: [neg[i], pos[i]] })?;
        }
        Ok(bins.merge(&apart)?)
    }
}
