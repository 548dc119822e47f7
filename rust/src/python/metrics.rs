//! The AUC, as Python calls it.

use std::ffi::CString;

use numpy::PyArray1;
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;

use super::arrays::{Flat, Labels, Ranked, Scores, counts, with_labels, with_ranked};
use super::raised::{PyResult, Raised};
use super::running::{VERY_LONG, interruptible};
use crate::auc::RowLabels;
use crate::parallel::Interrupt;
use crate::{auc as areas, labels as classes, memory};

/// From this many scores on the GIL is released.
const LONG: usize = 2048;

fn warn_undefined(py: Python<'_>, message: &str) -> PyResult<()> {
    let message = CString::new(message).unwrap_or_default();
    Ok(PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &message, 1)?)
}

/// Area under the ROC curve: the chance that a positive scores above a negative, ties counting half.
///
/// The value is one division of two exact integers: it does not depend on the order of the scores, and no score is
/// rounded (integers are compared as integers, float32 as float32). Ties are equal values, nothing else.
///
/// Parameters
/// ----------
/// scores : array_like, shape (n,)
///     Larger means more likely positive. Any real dtype up to 64 bits; infinities are allowed.
/// labels : array_like, shape (n,)
///     {0, 1}, {-1, 1} or bool; anything else two-valued needs `pos_label`.
/// sample_weight : array_like of float, shape (n,), optional
///     Weights of the scores, not negative.
/// max_fpr : float, optional
///     Take the curve up to this false positive rate only.
/// standardize : bool, default True
///     With `max_fpr`: rescale so that chance gives 0.5 and perfection 1 [2]_. False gives the area itself, at most
///     `max_fpr`.
/// pos_label : object, optional
///     The label of the positive class.
///
/// Returns
/// -------
/// float
///     In [0, 1]; NaN, with a RuntimeWarning, when a class is absent or has no weight.
///
/// Raises
/// ------
/// ValueError
///     When lengths differ, a score or weight is NaN, a weight is negative, or labels are not two-valued.
/// TypeError
///     When an argument cannot be read as numbers, or is a tensor off the CPU.
///
/// References
/// ----------
/// .. [1] Hanley & McNeil (1982), The meaning and use of the area under a receiver operating characteristic curve.
/// .. [2] McClish (1989), Analyzing a portion of the ROC curve.
///
/// Examples
/// --------
/// >>> import milfast as mf
/// >>> mf.auc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
/// 0.75
/// >>> mf.auc([3, 1, 2], ["ill", "well", "ill"], pos_label="ill")
/// 1.0
#[pyfunction]
#[pyo3(signature = (scores, labels, *, sample_weight=None, max_fpr=None, standardize=true, pos_label=None))]
pub(super) fn auc<'py>(
    py: Python<'py>,
    scores: &Bound<'py, PyAny>,
    labels: &Bound<'py, PyAny>,
    sample_weight: Option<&Bound<'py, PyAny>>,
    max_fpr: Option<f64>,
    standardize: bool,
    pos_label: Option<&Bound<'py, PyAny>>,
) -> PyResult<f64> {
    let scores = Scores::of(scores, "scores")?;
    let labels = Labels::beside(&scores, labels, pos_label)?;
    let weights = match sample_weight {
        Some(weights) => Some(Scores::of(weights, "sample_weight")?.into_f64()?),
        None => None,
    };
    let (weights, n) = (weights.as_ref().map(Flat::slice), scores.len());
    let value = if max_fpr.is_none() && weights.is_none() {
        with_ranked!(scores.ranked(py)?, |scores| with_labels!(labels, |labels| {
            if n < LONG {
                areas::pair_counts(scores, labels, &Interrupt::default())?.auc()
            } else {
                interruptible(py, n > VERY_LONG, |stop| areas::pair_counts(scores, labels, stop))?.auc()
            }
        }))
    } else {
        let labels = labels.decided(&scores)?;
        let labels = labels.slice();
        with_ranked!(scores.ranked(py)?, |scores| {
            interruptible(py, n > VERY_LONG, |stop| match (max_fpr, weights) {
                (Some(limit), weights) => areas::partial(scores, labels, weights, limit, standardize, stop),
                (None, Some(weights)) => areas::weighted(scores, labels, weights, stop),
                (None, None) => unreachable!(),
            })?
        })
    };
    if value.is_nan() {
        let what = if n == 0 { "there are no scores" } else { "one class is absent or has no weight" };
        warn_undefined(py, &format!("the AUC is undefined (NaN): {what}"))?;
    }
    Ok(value)
}

/// AUC of every row of a matrix, in one call.
///
/// Parameters
/// ----------
/// scores : array_like, shape (rows, n)
///     Scores, as in `auc`.
/// labels : array_like, shape (n,) or (rows, n)
///     Labels that all rows share, or one row of labels for each row of scores.
/// pos_label : object, optional
///     The label of the positive class.
///
/// Returns
/// -------
/// ndarray of float64, shape (rows,)
///     NaN, with one RuntimeWarning for all, where a row has one class only.
///
/// Raises
/// ------
/// ValueError, TypeError
///     As `auc`; the message names the row.
///
/// Examples
/// --------
/// >>> import milfast as mf
/// >>> mf.auc_many([[0.1, 0.4, 0.35, 0.8], [4, 3, 2, 1]], [0, 0, 1, 1])
/// array([0.75, 0.  ])
#[pyfunction]
#[pyo3(signature = (scores, labels, *, pos_label=None))]
pub(super) fn auc_many<'py>(
    py: Python<'py>,
    scores: &Bound<'py, PyAny>,
    labels: &Bound<'py, PyAny>,
    pos_label: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (scores, rows, columns) = Scores::matrix(scores, "scores")?;
    let (labels, shape) = Labels::of(labels, pos_label, Some(&scores))?;
    let shared = shape == [columns];
    if !shared && shape != [rows, columns] {
        return Err(Raised::value_error(format_args!(
            "labels must have shape ({columns},) or ({rows}, {columns}) for these scores; got {shape:?}"
        )));
    }
    let values = if columns == 0 {
        memory::filled(f64::NAN, rows, "the AUC of each row")?
    } else {
        with_ranked!(scores.ranked(py)?, |scores| with_labels!(labels, |labels| {
            let labels = if shared { RowLabels::Shared(labels) } else { RowLabels::PerRow(labels) };
            interruptible(py, scores.len() > VERY_LONG, |stop| areas::many(scores, columns, labels, stop))?
        }))
    };
    if let Some(first) = values.iter().position(|v| v.is_nan()) {
        let n = values.iter().filter(|v| v.is_nan()).count();
        warn_undefined(
            py,
            &format!("the AUC of {n} rows is undefined (NaN), first of row {first}: one class is absent"),
        )?;
    }
    Ok(PyArray1::from_vec(py, values))
}

/// AUC from the number of positives and negatives at each distinct score.
///
/// Exact for any size: counts are added up in 128 bits.
///
/// Parameters
/// ----------
/// pos, neg : array_like of int, shape (n_distinct,)
///     Number of positives and of negatives at each score, scores ascending.
///
/// Returns
/// -------
/// float
///     NaN, with a RuntimeWarning, when a class is empty.
///
/// Raises
/// ------
/// ValueError
///     When lengths differ, a count is negative, or a class has 2**63 members or more.
/// TypeError
///     When counts are not integers.
///
/// Examples
/// --------
/// >>> import milfast as mf
/// >>> mf.auc_from_counts(pos=[0, 1, 1], neg=[1, 1, 0])
/// 0.875
#[pyfunction]
pub(super) fn auc_from_counts(py: Python<'_>, pos: &Bound<'_, PyAny>, neg: &Bound<'_, PyAny>) -> PyResult<f64> {
    let (pos, neg) = (counts(pos, "pos")?, counts(neg, "neg")?);
    let value = areas::pair_counts_from_counts(pos.slice(), neg.slice())?.auc();
    if value.is_nan() {
        warn_undefined(py, "the AUC is undefined (NaN): one class is absent")?;
    }
    Ok(value)
}

/// True for each positive label: the one place that decides what a label means.
///
/// Parameters
/// ----------
/// labels : array_like
///     {0, 1}, {-1, 1} or bool; anything else two-valued needs `pos_label`.
/// pos_label : object, optional
///     The label of the positive class.
///
/// Returns
/// -------
/// ndarray of bool, shape (n,)
///
/// Raises
/// ------
/// ValueError
///     When labels are not one-dimensional or not two-valued.
/// TypeError
///     When labels cannot be read.
///
/// Examples
/// --------
/// >>> from milfast._core import binary_labels
/// >>> binary_labels([-1, 1, 1])
/// array([False,  True,  True])
#[pyfunction]
#[pyo3(signature = (labels, *, pos_label=None))]
pub(super) fn binary_labels<'py>(
    py: Python<'py>,
    labels: &Bound<'py, PyAny>,
    pos_label: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    let (labels, shape) = Labels::of(labels, pos_label, None)?;
    if shape.len() != 1 {
        return Err(Raised::value_error(format_args!("labels must be one-dimensional; got shape {shape:?}")));
    }
    Ok(PyArray1::from_vec(py, with_labels!(labels, |labels| classes::binary(labels)?)))
}
