//! How uncertain an AUC is, as Python asks.

use numpy::{PyArray1, PyArray2, prelude::*};
use pyo3::prelude::*;

use super::arrays::{Flat, Labels, Ranked, Scores, new_matrix, with_ranked};
use super::raised::{PyResult, Raised};
use super::running::{VERY_LONG, interruptible};
use crate::bootstrap::{self, Resample};
use crate::{delong as variances, memory};

/// Scores of one model and their labels.
fn one_model<'py>(
    scores: &Bound<'py, PyAny>,
    labels: &Bound<'py, PyAny>,
    pos_label: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Ranked<'py>, Flat<'py, bool>)> {
    let py = scores.py();
    let scores = Scores::of(scores, "scores")?;
    let labels = Labels::beside(&scores, labels, pos_label)?.decided(&scores)?;
    Ok((scores.ranked(py)?, labels))
}

/// AUC and DeLong's variance of it.
///
/// Parameters
/// ----------
/// scores : array_like, shape (n,)
/// labels : array_like, shape (n,)
/// pos_label : object, optional
///     As in `auc`.
///
/// Returns
/// -------
/// auc : float
///     NaN when a class is absent.
/// variance : float
///     NaN when a class has fewer than two members.
/// n_pos, n_neg : int
///     Class sizes.
///
/// Raises
/// ------
/// ValueError, TypeError
///     As `auc`.
///
/// References
/// ----------
/// .. [1] DeLong, DeLong & Clarke-Pearson (1988); in O(n log n) as Sun & Xu (2014).
///
/// Examples
/// --------
/// >>> from milfast._core import delong
/// >>> delong([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
/// (0.75, 0.125, 2, 2)
#[pyfunction]
#[pyo3(signature = (scores, labels, *, pos_label=None))]
pub(super) fn delong<'py>(
    py: Python<'py>,
    scores: &Bound<'py, PyAny>,
    labels: &Bound<'py, PyAny>,
    pos_label: Option<&Bound<'py, PyAny>>,
) -> PyResult<(f64, f64, u64, u64)> {
    let (scores, labels) = one_model(scores, labels, pos_label)?;
    let labels = labels.slice();
    let result = with_ranked!(scores, |scores| {
        interruptible(py, scores.len() > VERY_LONG, |stop| variances::delong(scores, labels, stop))?
    });
    Ok((result.counts.auc(), result.variance, result.counts.n_pos, result.counts.n_neg))
}

/// Scores of one model or of several, a row each, with the labels they share, and the number of rows if there are any.
fn models<'py>(
    scores: &Bound<'py, PyAny>,
    labels: &Bound<'py, PyAny>,
    pos_label: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Ranked<'py>, Flat<'py, bool>, Option<usize>)> {
    let py = scores.py();
    let (scores, of_scores) = Scores::one_or_more(scores, "scores")?;
    let (labels, shape) = Labels::of(labels, pos_label, Some(&scores))?;
    let n = of_scores[of_scores.len() - 1];
    if shape != [n] {
        return Err(Raised::value_error(format_args!(
            "labels must have shape [{n}] for scores of shape {of_scores:?}; got {shape:?}"
        )));
    }
    if of_scores.contains(&0) {
        return Err(Raised::value_error(format_args!("scores must not be empty; got shape {of_scores:?}")));
    }
    let labels = labels.decided(&scores)?;
    Ok((scores.ranked(py)?, labels, (of_scores.len() == 2).then_some(of_scores[0])))
}

/// AUCs of several models on the same labels, and DeLong's covariance matrix of them.
///
/// Parameters
/// ----------
/// scores : array_like, shape (n_models, n)
///     Those of one model may have shape (n,).
/// labels : array_like, shape (n,)
/// pos_label : object, optional
///     As in `auc`.
///
/// Returns
/// -------
/// aucs : ndarray of float64, shape (n_models,)
///     NaN when a class is absent.
/// covariance : ndarray of float64, shape (n_models, n_models)
///     NaN when a class has fewer than two members.
/// n_pos, n_neg : int
///     Class sizes.
///
/// Raises
/// ------
/// ValueError, TypeError
///     As `auc_many`; when there are no scores, or 2**31 or more.
///
/// References
/// ----------
/// .. [1] DeLong, DeLong & Clarke-Pearson (1988); in O(n log n) as Sun & Xu (2014).
///
/// Examples
/// --------
/// >>> from milfast._core import delong_covariance
/// >>> aucs, covariance, n_pos, n_neg = delong_covariance([[0.1, 0.4, 0.35, 0.8], [4, 1, 2, 3]], [0, 0, 1, 1])
/// >>> aucs
/// array([0.75, 0.5 ])
/// >>> covariance
/// array([[ 0.125, -0.125],
///        [-0.125,  0.25 ]])
#[pyfunction]
#[pyo3(signature = (scores, labels, *, pos_label=None))]
#[allow(clippy::type_complexity)]
pub(super) fn delong_covariance<'py>(
    py: Python<'py>,
    scores: &Bound<'py, PyAny>,
    labels: &Bound<'py, PyAny>,
    pos_label: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray2<f64>>, u64, u64)> {
    let (scores, labels, rows) = models(scores, labels, pos_label)?;
    let labels = labels.slice();
    let rows = rows.unwrap_or(1);
    let result = with_ranked!(scores, |scores| {
        interruptible(py, scores.len() > VERY_LONG, |stop| variances::covariance(scores, labels, stop))?
    });
    let aucs = memory::collect(result.counts.iter().map(|counts| counts.auc()), "the AUC of each model")?;
    let covariance = new_matrix::<f64>(py, rows, rows)?;
    covariance.readwrite().as_slice_mut()?.copy_from_slice(&result.matrix);
    let (n_pos, n_neg) = result.counts.first().map_or((0, 0), |counts| (counts.n_pos, counts.n_neg));
    Ok((PyArray1::from_vec(py, aucs), covariance, n_pos, n_neg))
}

/// Placements of all scores among those of the other class: their means are the AUC, their variances DeLong's.
///
/// Parameters
/// ----------
/// scores : array_like, shape (n,)
/// labels : array_like, shape (n,)
/// pos_label : object, optional
///     As in `auc`.
///
/// Returns
/// -------
/// of_pos : ndarray of float64, shape (n_pos,)
///     For each positive the share of negatives below it, ties counting half; NaN when there are none.
/// of_neg : ndarray of float64, shape (n_neg,)
///     For each negative the share of positives above it.
///
/// Raises
/// ------
/// ValueError, TypeError
///     As `auc`; when there are 2**31 scores or more.
///
/// Examples
/// --------
/// >>> from milfast._core import placements
/// >>> placements([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
/// (array([0.5, 1. ]), array([1. , 0.5]))
#[pyfunction]
#[pyo3(signature = (scores, labels, *, pos_label=None))]
#[allow(clippy::type_complexity)]
pub(super) fn placements<'py>(
    py: Python<'py>,
    scores: &Bound<'py, PyAny>,
    labels: &Bound<'py, PyAny>,
    pos_label: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>)> {
    let (scores, labels) = one_model(scores, labels, pos_label)?;
    let labels = labels.slice();
    let placed = with_ranked!(scores, |scores| {
        interruptible(py, scores.len() > VERY_LONG, |stop| variances::placements(scores, labels, stop))?
    });
    let shares = |doubled: &[u32], n: u64| {
        memory::collect(doubled.iter().map(|&d| f64::from(d) / (2 * n) as f64), "the placements of the scores")
    };
    let of_pos = shares(&placed.of_pos, placed.counts.n_neg)?;
    let of_neg = shares(&placed.of_neg, placed.counts.n_pos)?;
    Ok((PyArray1::from_vec(py, of_pos), PyArray1::from_vec(py, of_neg)))
}

/// The AUC without each score in turn, from the placements.
///
/// Parameters
/// ----------
/// scores : array_like, shape (n,)
/// labels : array_like, shape (n,)
/// pos_label : object, optional
///     As in `auc`.
///
/// Returns
/// -------
/// ndarray of float64, shape (n,)
///     NaN where a class would be left without a member.
///
/// Raises
/// ------
/// ValueError, TypeError
///     As `auc`; when there are 2**31 scores or more.
///
/// Examples
/// --------
/// >>> from milfast._core import auc_jackknife
/// >>> auc_jackknife([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
/// array([0.5, 1. , 1. , 0.5])
#[pyfunction]
#[pyo3(signature = (scores, labels, *, pos_label=None))]
pub(super) fn auc_jackknife<'py>(
    py: Python<'py>,
    scores: &Bound<'py, PyAny>,
    labels: &Bound<'py, PyAny>,
    pos_label: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (scores, labels) = one_model(scores, labels, pos_label)?;
    let labels = labels.slice();
    let values = with_ranked!(scores, |scores| {
        interruptible(py, scores.len() > VERY_LONG, |stop| variances::jackknife(scores, labels, stop))?
    });
    Ok(PyArray1::from_vec(py, values))
}

/// AUCs of bootstrap resamples, the same resamples for all models.
///
/// Scores are sorted once. A resample depends on `random_state`, its number and the labels alone: several calls with
/// the same labels are paired, and a longer run starts with the replicates of a shorter one.
///
/// Parameters
/// ----------
/// scores : array_like, shape (n,) or (n_models, n)
/// labels : array_like, shape (n,)
/// n_replicates : int
/// stratified : bool, default True
///     Draw as many of each class as there are. False draws from all scores.
/// random_state : int
///     From 0 to 2**64 - 1.
/// pos_label : object, optional
///     As in `auc`.
///
/// Returns
/// -------
/// ndarray of float64, shape (n_replicates,) or (n_models, n_replicates)
///     NaN where a resample that is not stratified holds one class only.
///
/// Raises
/// ------
/// ValueError, TypeError
///     As `auc`; when a class is absent, `n_replicates` is negative, or there are 2**32 scores or more.
///
/// Examples
/// --------
/// >>> from milfast._core import bootstrap_auc
/// >>> replicates = bootstrap_auc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], 500, random_state=0)
/// >>> sorted({float(value) for value in replicates})
/// [0.0, 0.5, 0.75, 1.0]
#[pyfunction]
#[pyo3(signature = (scores, labels, n_replicates, *, stratified=true, random_state, pos_label=None))]
pub(super) fn bootstrap_auc<'py>(
    py: Python<'py>,
    scores: &Bound<'py, PyAny>,
    labels: &Bound<'py, PyAny>,
    n_replicates: i64,
    stratified: bool,
    random_state: u64,
    pos_label: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Ok(n_replicates) = usize::try_from(n_replicates) else {
        return Err(Raised::value_error(format_args!("n_replicates must not be negative; got {n_replicates}")));
    };
    let (scores, labels, rows) = models(scores, labels, pos_label)?;
    let labels = labels.slice();
    let resample = if stratified { Resample::Stratified } else { Resample::Plain };
    let values = with_ranked!(scores, |scores| {
        let long = scores.len().saturating_mul(n_replicates.max(1)) > VERY_LONG;
        interruptible(py, long, |stop| {
            bootstrap::replicates(scores, labels, n_replicates, resample, random_state, stop)
        })?
    });
    let Some(rows) = rows else { return Ok(PyArray1::from_vec(py, values).into_any()) };
    let out = new_matrix::<f64>(py, rows, n_replicates)?;
    let mut view = out.readwrite();
    let target = view.as_slice_mut()?;
    for (replicate, values) in values.chunks_exact(rows).enumerate() {
        for (row, &value) in values.iter().enumerate() {
            target[row * n_replicates + replicate] = value;
        }
    }
    drop(view);
    Ok(out.into_any())
}
