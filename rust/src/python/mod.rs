//! The Python face of the kernels, and the only place that mentions pyo3.

mod arrays;
mod running;

use pyo3::prelude::*;

/// The compiled kernels of milfast. Use them through `milfast`.
#[pymodule]
mod _core {
    use std::ffi::CString;

    use numpy::{PyArray1, PyArray2, prelude::*};
    use pyo3::exceptions::{PyOverflowError, PyRuntimeWarning, PyTypeError, PyValueError};
    use pyo3::prelude::*;

    use super::arrays::{Flat, Labels, Matrix, Scores, counts, new_matrix, offset_array, with_labels, with_scores};
    use super::running::interruptible;
    use crate::auc::RowLabels;
    use crate::bags::Bags;
    use crate::parallel::Interrupt;
    use crate::sampling::{Choice, Component, Draw, Recipe};
    use crate::{auc as areas, delong as variances, gram, labels as classes, memory, parallel, sampling, simd};

    /// From this many scores on the GIL is released, and Ctrl-C is looked for.
    const LONG: usize = 2048;
    const VERY_LONG: usize = 1 << 20;

    fn warn_undefined(py: Python<'_>, message: &str) -> PyResult<()> {
        let message = CString::new(message).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &message, 1)
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
    fn auc<'py>(
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
        let weights = weights.as_ref().map(Flat::slice);
        let value = with_scores!(scores, |scores| with_labels!(labels, |labels| {
            if max_fpr.is_none() && weights.is_none() {
                if scores.len() < LONG {
                    areas::pair_counts(scores, labels, &Interrupt::default())?.auc()
                } else {
                    interruptible(py, scores.len() > VERY_LONG, |stop| areas::pair_counts(scores, labels, stop))?.auc()
                }
            } else {
                interruptible(py, scores.len() > VERY_LONG, |stop| match (max_fpr, weights) {
                    (Some(limit), weights) => areas::partial(scores, labels, weights, limit, standardize, stop),
                    (None, Some(weights)) => areas::weighted(scores, labels, weights, stop),
                    (None, None) => unreachable!(),
                })?
            }
        }));
        if value.is_nan() {
            let what = if scores.len() == 0 { "there are no scores" } else { "one class is absent or has no weight" };
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
    fn auc_many<'py>(
        py: Python<'py>,
        scores: &Bound<'py, PyAny>,
        labels: &Bound<'py, PyAny>,
        pos_label: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (scores, rows, columns) = Scores::matrix(scores, "scores")?;
        let (labels, shape) = Labels::of(labels, pos_label, Some(&scores))?;
        let shared = shape == [columns];
        if !shared && shape != [rows, columns] {
            return Err(PyValueError::new_err(format!(
                "labels must have shape ({columns},) or ({rows}, {columns}) for these scores; got {shape:?}"
            )));
        }
        let values = if columns == 0 {
            memory::filled(f64::NAN, rows, "the AUC of each row")?
        } else {
            with_scores!(scores, |scores| with_labels!(labels, |labels| {
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
    fn auc_from_counts(py: Python<'_>, pos: &Bound<'_, PyAny>, neg: &Bound<'_, PyAny>) -> PyResult<f64> {
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
    fn binary_labels<'py>(
        py: Python<'py>,
        labels: &Bound<'py, PyAny>,
        pos_label: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let (labels, shape) = Labels::of(labels, pos_label, None)?;
        if shape.len() != 1 {
            return Err(PyValueError::new_err(format!("labels must be one-dimensional; got shape {shape:?}")));
        }
        Ok(PyArray1::from_vec(py, with_labels!(labels, |labels| classes::binary(labels)?)))
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
    fn delong<'py>(
        py: Python<'py>,
        scores: &Bound<'py, PyAny>,
        labels: &Bound<'py, PyAny>,
        pos_label: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(f64, f64, u64, u64)> {
        let scores = Scores::of(scores, "scores")?;
        let labels = Labels::beside(&scores, labels, pos_label)?;
        let result = with_scores!(scores, |scores| with_labels!(labels, |labels| {
            interruptible(py, scores.len() > VERY_LONG, |stop| variances::delong(scores, labels, stop))?
        }));
        Ok((result.counts.auc(), result.variance, result.counts.n_pos, result.counts.n_neg))
    }

    /// Gaussian kernel matrix: exp(-gamma |x - y|^2) for all pairs of rows.
    ///
    /// Computed from exact differences, so the diagonal of `rbf_gram(X)` is exactly 1 and the matrix exactly symmetric.
    ///
    /// Parameters
    /// ----------
    /// X : array_like, shape (n, n_features)
    /// Y : array_like, shape (m, n_features), optional
    ///     `X` when left out.
    /// gamma : float
    ///     Positive.
    ///
    /// Returns
    /// -------
    /// ndarray, shape (n, m)
    ///     float32 when both inputs are float32, else float64.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     When shapes disagree, `gamma` is not positive or a value is not finite.
    /// TypeError
    ///     When an argument cannot be read as numbers.
    ///
    /// Examples
    /// --------
    /// >>> import milfast as mf
    /// >>> mf.rbf_gram([[0.0], [1.0]], gamma=1.0).round(4)
    /// array([[1.    , 0.3679],
    ///        [0.3679, 1.    ]])
    #[pyfunction]
    #[pyo3(signature = (X, Y=None, *, gamma))]
    #[allow(non_snake_case)]
    fn rbf_gram<'py>(
        py: Python<'py>,
        X: &Bound<'py, PyAny>,
        Y: Option<&Bound<'py, PyAny>>,
        gamma: f64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (x, [rows, d]) = Matrix::of(X, "X")?;
        let other = Y.map(|y| Matrix::of(y, "Y")).transpose()?;
        if let Some((_, [_, width])) = other
            && width != d
        {
            return Err(PyValueError::new_err(format!("X and Y must have as many columns; got {d} and {width}")));
        }
        let columns = other.as_ref().map_or(rows, |(_, [n, _])| *n);
        let long = rows.saturating_mul(columns).saturating_mul(d) > VERY_LONG << 3;
        macro_rules! fill {
            ($type:ty, $x:expr, $y:expr) => {{
                let (x, y) = ($x, $y);
                let out = new_matrix::<$type>(py, rows, columns)?;
                let mut view = out.readwrite();
                let target = view.as_slice_mut()?;
                interruptible(py, long, |stop| gram::rbf_gram(x, y, d, gamma, target, stop))?;
                drop(view);
                Ok(out.into_any())
            }};
        }
        match (x, other.map(|(y, _)| y)) {
            (Matrix::F32(x), None) => fill!(f32, x.slice(), None),
            (Matrix::F32(x), Some(Matrix::F32(y))) => fill!(f32, x.slice(), Some(y.slice())),
            (x, y) => {
                let (x, y) = (x.into_f64()?, y.map(Matrix::into_f64).transpose()?);
                let (x, y) = (x.slice(), y.as_ref().map(Flat::slice));
                fill!(f64, x, y)
            }
        }
    }

    /// Sums of the Gaussian kernel over all instance pairs of two bags, for all pairs of bags.
    ///
    /// Parameters
    /// ----------
    /// instances : array_like, shape (n_instances, n_features)
    /// offsets : ndarray of int64, shape (n_bags + 1,)
    /// other_instances, other_offsets : optional
    ///     The bags of the columns; those of the rows when left out.
    /// gamma : float
    ///     Positive.
    ///
    /// Returns
    /// -------
    /// ndarray of float64, shape (n_bags, number of other bags)
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     When shapes or offsets disagree, `gamma` is not positive or a value is not finite.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> from milfast._core import rbf_bag_sums
    /// >>> rbf_bag_sums([[0.0], [0.0], [1.0]], np.array([0, 2, 3]), gamma=1.0).round(4)
    /// array([[4.    , 0.7358],
    ///        [0.7358, 1.    ]])
    #[pyfunction]
    #[pyo3(signature = (instances, offsets, other_instances=None, other_offsets=None, *, gamma))]
    fn rbf_bag_sums<'py>(
        py: Python<'py>,
        instances: &Bound<'py, PyAny>,
        offsets: &Bound<'py, PyAny>,
        other_instances: Option<&Bound<'py, PyAny>>,
        other_offsets: Option<&Bound<'py, PyAny>>,
        gamma: f64,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (x, [_, d]) = Matrix::of(instances, "instances")?;
        let cuts = offset_array(offsets, "offsets")?;
        let other = match (other_instances, other_offsets) {
            (Some(instances), Some(cuts)) => {
                let (y, [_, width]) = Matrix::of(instances, "other_instances")?;
                if width != d {
                    return Err(PyValueError::new_err(format!(
                        "instances and other_instances must have as many features; got {d} and {width}"
                    )));
                }
                Some((y, offset_array(cuts, "other_offsets")?))
            }
            (None, None) => None,
            _ => return Err(PyTypeError::new_err("other_instances and other_offsets go together")),
        };
        macro_rules! sums {
            ($x:expr, $y:expr) => {{
                let a = Bags::new($x, d, cuts.slice())?;
                let b = match $y {
                    // The message starts with the name of the argument: offsets.
                    Some((y, cuts)) => {
                        Some(Bags::new(y, d, cuts).map_err(|error| PyValueError::new_err(format!("other_{error}")))?)
                    }
                    None => None,
                };
                let columns = b.as_ref().unwrap_or(&a);
                let long = a.n_instances().saturating_mul(columns.n_instances()).saturating_mul(d) > VERY_LONG << 3;
                let out = new_matrix::<f64>(py, a.len(), columns.len())?;
                let mut view = out.readwrite();
                let target = view.as_slice_mut()?;
                interruptible(py, long, |stop| gram::rbf_bag_sums(&a, b.as_ref(), gamma, target, stop))?;
                drop(view);
                Ok(out)
            }};
        }
        match (x, other) {
            (Matrix::F32(x), None) => sums!(x.slice(), None::<(&[f32], &[i64])>),
            (Matrix::F32(x), Some((Matrix::F32(y), cuts))) => sums!(x.slice(), Some((y.slice(), cuts.slice()))),
            (x, other) => {
                let x = x.into_f64()?;
                let other = match other {
                    Some((y, cuts)) => Some((y.into_f64()?, cuts)),
                    None => None,
                };
                sums!(x.slice(), other.as_ref().map(|(y, cuts)| (y.slice(), cuts.slice())))
            }
        }
    }

    /// Sum of the Gaussian kernel over all instance pairs inside each bag.
    ///
    /// Parameters
    /// ----------
    /// instances : array_like, shape (n_instances, n_features)
    /// offsets : ndarray of int64, shape (n_bags + 1,)
    /// gamma : float
    ///     Positive.
    ///
    /// Returns
    /// -------
    /// ndarray of float64, shape (n_bags,)
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     As `rbf_bag_sums`.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> from milfast._core import rbf_bag_diagonal
    /// >>> rbf_bag_diagonal([[0.0], [0.0], [1.0]], np.array([0, 2, 3]), gamma=1.0)
    /// array([4., 1.])
    #[pyfunction]
    #[pyo3(signature = (instances, offsets, *, gamma))]
    fn rbf_bag_diagonal<'py>(
        py: Python<'py>,
        instances: &Bound<'py, PyAny>,
        offsets: &Bound<'py, PyAny>,
        gamma: f64,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (x, [_, d]) = Matrix::of(instances, "instances")?;
        let cuts = offset_array(offsets, "offsets")?;
        let sums = match &x {
            Matrix::F32(x) => {
                let bags = Bags::new(x.slice(), d, cuts.slice())?;
                interruptible(py, true, |stop| gram::rbf_bag_diagonal(&bags, gamma, stop))?
            }
            Matrix::F64(x) => {
                let bags = Bags::new(x.slice(), d, cuts.slice())?;
                interruptible(py, true, |stop| gram::rbf_bag_diagonal(&bags, gamma, stop))?
            }
        };
        Ok(PyArray1::from_vec(py, sums))
    }

    /// A draw as Python hands it over: counts, components, weights, choice, probability.
    type DrawTuple = (Vec<(u32, u32)>, Vec<u16>, Vec<f64>, String, f64);

    fn draws(role: &str, given: Vec<DrawTuple>) -> PyResult<Vec<Draw>> {
        given
            .into_iter()
            .enumerate()
            .map(|(i, (counts, components, weights, choice, probability))| {
                let choice = match choice.as_str() {
                    "each" => Choice::Each,
                    "bag" => Choice::Bag,
                    "balanced" => Choice::Balanced,
                    "instance" => Choice::Instance,
                    other => {
                        return Err(PyValueError::new_err(format!(
                            "{role}[{i}]: choice must be each, bag, balanced or instance; got {other:?}"
                        )));
                    }
                };
                Ok(Draw { counts, components, weights, choice, probability })
            })
            .collect()
    }

    /// Draw bags from a recipe. `milfast.sample_bags` is the way to call it.
    ///
    /// Parameters
    /// ----------
    /// means : array_like of float, shape (n_components, n_features)
    /// deviations : list of float, length n_components
    /// negative, positive : list of tuple
    ///     Draws: (count ranges, components, weights, choice, probability).
    /// filler : int
    ///     Component that fills bags up.
    /// size : tuple of int, or None
    ///     Range of the bag size.
    /// pad_to : int
    ///     Smallest bag size.
    /// n_negative, n_positive : int
    /// shuffled : bool
    ///     False puts the negatives first.
    /// seed : int
    /// single : bool
    ///     True gives float32, False float64; float32 is the float64 sample rounded.
    ///
    /// Returns
    /// -------
    /// instances : ndarray, shape (n_instances, n_features)
    /// offsets : ndarray of int64, shape (n_bags + 1,)
    /// labels : ndarray of int64, shape (n_bags,)
    /// kinds : ndarray of int16, shape (n_instances,)
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     When the recipe contradicts itself.
    #[pyfunction]
    #[pyo3(signature = (*, means, deviations, negative, positive, filler, size, pad_to, n_negative, n_positive,
                        shuffled, seed, single))]
    #[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools, clippy::type_complexity)]
    fn sample_bags<'py>(
        py: Python<'py>,
        means: &Bound<'py, PyAny>,
        deviations: Vec<f64>,
        negative: Vec<DrawTuple>,
        positive: Vec<DrawTuple>,
        filler: u16,
        size: Option<(u32, u32)>,
        pad_to: u32,
        n_negative: usize,
        n_positive: usize,
        shuffled: bool,
        seed: u64,
        single: bool,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i16>>)>
    {
        let (means, [n, d]) = Matrix::of(means, "means")?;
        if n != deviations.len() {
            return Err(PyValueError::new_err(format!("means has {n} rows, deviations {} entries", deviations.len())));
        }
        let means = means.into_f64()?;
        let mut components = memory::room(n, "the components")?;
        for (mean, deviation) in means.slice().chunks_exact(d).zip(deviations) {
            components.push(Component { mean: memory::collect(mean.iter().copied(), "the components")?, deviation });
        }
        let recipe = Recipe {
            components,
            negative: draws("negative", negative)?,
            positive: draws("positive", positive)?,
            filler,
            size,
            pad_to,
        };
        let most = sampling::largest_bag(&recipe).saturating_mul(n_negative.saturating_add(n_positive) as u128);
        let long = n_negative.saturating_add(n_positive) > LONG || most > VERY_LONG as u128;
        let plan =
            interruptible(py, long, |stop| sampling::plan(&recipe, n_negative, n_positive, shuffled, seed, stop))?;
        macro_rules! features {
            ($type:ty) => {{
                let out = new_matrix::<$type>(py, plan.kinds.len(), d)?;
                let mut view = out.readwrite();
                let target = view.as_slice_mut()?;
                interruptible(py, target.len() > VERY_LONG, |stop| {
                    sampling::features(&recipe, &plan, seed, target, stop)
                })?;
                drop(view);
                out.into_any()
            }};
        }
        let instances = if single { features!(f32) } else { features!(f64) };
        let labels = memory::collect(plan.labels.iter().map(|&l| i64::from(l)), "the labels")?;
        let kinds = memory::collect(plan.kinds.iter().map(|&k| k as i16), "the kinds of the instances")?;
        Ok((
            instances,
            PyArray1::from_vec(py, plan.offsets),
            PyArray1::from_vec(py, labels),
            PyArray1::from_vec(py, kinds),
        ))
    }

    /// Set how many threads the kernels may use, in this process.
    ///
    /// The environment variable MILFAST_NUM_THREADS sets it from outside. Results do not depend on it.
    ///
    /// Parameters
    /// ----------
    /// n : int
    ///     From 1 to 1024.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     When `n` is less than 1 or more than 1024.
    ///
    /// Examples
    /// --------
    /// >>> import milfast as mf
    /// >>> before = mf.get_num_threads()
    /// >>> mf.set_num_threads(1)
    /// >>> mf.get_num_threads()
    /// 1
    /// >>> mf.set_num_threads(before)
    #[pyfunction]
    fn set_num_threads(py: Python<'_>, n: &Bound<'_, PyAny>) -> PyResult<()> {
        let number = match n.extract::<i64>() {
            Err(error) if error.is_instance_of::<PyOverflowError>(py) => {
                // beyond 64 bits only the sign matters
                if n.lt(0)? { i64::MIN } else { i64::MAX }
            }
            number => number?,
        };
        if number < 1 {
            return Err(PyValueError::new_err(format!("n must be at least 1; got {n}")));
        }
        Ok(parallel::set_threads(number as usize)?)
    }

    /// How many threads the kernels may use.
    ///
    /// Returns
    /// -------
    /// int
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     When MILFAST_NUM_THREADS is not a positive integer, or is more than 1024.
    ///
    /// Examples
    /// --------
    /// >>> import milfast as mf
    /// >>> mf.get_num_threads() >= 1
    /// True
    #[pyfunction]
    fn get_num_threads() -> PyResult<usize> {
        Ok(parallel::threads()?)
    }

    /// Instruction set in use: 'baseline', 'avx2' or 'avx512'. Results do not depend on it.
    ///
    /// Returns
    /// -------
    /// str
    ///
    /// Examples
    /// --------
    /// >>> from milfast._core import simd_level
    /// >>> simd_level() in ("baseline", "avx2", "avx512")
    /// True
    #[pyfunction]
    fn simd_level() -> &'static str {
        match simd::level() {
            simd::Level::Baseline => "baseline",
            simd::Level::Avx2 => "avx2",
            simd::Level::Avx512 => "avx512",
        }
    }
}
