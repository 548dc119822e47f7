//! Error consistency, as Python calls it.

use std::ffi::CString;

use numpy::{Element, PyArray1, PyArrayDyn, prelude::*};
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;

use super::arrays::{Flags, Scores, counts, new_matrix, new_vector, with_scores};
use super::raised::{PyResult, Raised};
use super::running::{VERY_LONG, interruptible};
use crate::consistency::{Layout, Measure};
use crate::error::{Error, Result};
use crate::error_sets::{Columns, ErrorSets};
use crate::parallel::Interrupt;
use crate::{chance, memory, simd::Real};

/// From this many samples of all sets, or pairs times words, on Ctrl-C is looked for.
const LONG: usize = VERY_LONG << 3;

/// The error sets as bits, made by `with` on the way.
fn error_sets<R: Send>(
    py: Python<'_>,
    object: &Bound<'_, PyAny>,
    n_samples: Option<i64>,
    with: impl FnOnce(ErrorSets, &Interrupt) -> Result<R> + Send,
) -> PyResult<R> {
    let Some(n_samples) = n_samples else {
        let (flags, [n, width]) = Flags::matrix(object, "error_sets", "(n_sets, n_samples)")?;
        let long = n.saturating_mul(width) > LONG;
        // what comes behind is compiled once and not for each type of flags
        let run = |new: &(dyn Fn(&Interrupt) -> Result<ErrorSets> + Sync)| {
            interruptible(py, long, |stop| with(new(stop)?, stop))
        };
        return match &flags {
            Flags::Bytes(bytes, _) => {
                let bytes = bytes.slice();
                run(&|stop| ErrorSets::new(bytes, n, width, stop))
            }
            Flags::Other(values) => {
                with_scores!(values, |values| run(&|stop| ErrorSets::new(values, n, width, stop)))
            }
        };
    };
    let n_samples = usize::try_from(n_samples)
        .map_err(|_| Raised::value_error(format_args!("n_samples must not be negative; got {n_samples}")))?;
    let (bytes, [n, width]) = Flags::matrix(object, "error_sets", "(n_sets, bytes)")?;
    let Flags::Bytes(bytes, 'u') = bytes else {
        return Err(Raised::type_error(format_args!(
            "error_sets must be uint8 where n_samples is given: leave n_samples out, or pack with np.packbits"
        )));
    };
    if width != n_samples.div_ceil(8) {
        return Err(Raised::value_error(format_args!(
            "error_sets must have {} bytes a row for n_samples={n_samples}; got {width}: pack with \
             np.packbits(error_sets, axis=1)",
            n_samples.div_ceil(8)
        )));
    }
    let bytes = bytes.slice();
    interruptible(py, bytes.len() > LONG, |stop| with(ErrorSets::from_packed(bytes, n, n_samples, stop)?, stop))
}

/// The samples that are compared.
fn columns(
    py: Python<'_>,
    object: &Bound<'_, PyAny>,
    n_samples: Option<i64>,
    sample_weight: Option<&Bound<'_, PyAny>>,
) -> PyResult<Columns> {
    let weights = sample_weight.map(weights).transpose()?;
    error_sets(py, object, n_samples, |sets, stop| sets.columns(weights.as_deref(), stop))
}

fn weights(object: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    let given = counts(object, "sample_weight")?;
    let mut weights = memory::room(given.slice().len(), "the weights")?;
    for (i, &weight) in given.slice().iter().enumerate() {
        weights.push(u32::try_from(weight).map_err(|_| {
            Error::range(format_args!("sample_weight[{i}] is {weight}: weights must be less than 2**32"))
        })?);
    }
    Ok(weights)
}

/// A dtype of floats.
#[derive(Clone, Copy)]
pub(super) enum Precision {
    Single,
    Double,
}

impl<'py> FromPyObject<'_, 'py> for Precision {
    type Error = Raised;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let dtype = object.py().import("numpy")?.call_method1("dtype", (object,));
        match dtype.and_then(|dtype| dtype.getattr("name")?.extract::<String>()).as_deref() {
            Ok("float32") => Ok(Self::Single),
            Ok("float64") if !object.is_none() => Ok(Self::Double),
            _ => Err(Raised::value_error(format_args!("dtype must be float32 or float64; got {}", object.repr()?))),
        }
    }
}

fn measure(name: &str) -> PyResult<Measure> {
    let found = Measure::ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, measure)| *measure).ok_or_else(|| {
        let names: Vec<&str> = Measure::ALL.iter().map(|(name, _)| *name).collect();
        Raised::value_error(format_args!("measure must be one of {}; got '{name}'", names.join(", ")))
    })
}

/// A new array for pairs, filled by `fill`.
fn pairs<'py, T: Element + Send>(
    py: Python<'py>,
    columns: &Columns,
    layout: Layout,
    fill: impl FnOnce(&mut [T], &Interrupt) -> Result<()> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let (n, long) = (columns.n_sets(), columns.work() > LONG);
    let out = match layout {
        Layout::Square => new_matrix::<T>(py, n, n)?.into_any(),
        Layout::Condensed => new_vector::<T>(py, layout.len(n).unwrap_or(usize::MAX))?.into_any(),
    };
    let mut view = out.cast::<PyArrayDyn<T>>()?.readwrite();
    let target = view.as_slice_mut()?;
    interruptible(py, long, |stop| fill(target, stop))?;
    drop(view);
    Ok(out)
}

fn layout(condensed: bool) -> Layout {
    if condensed { Layout::Condensed } else { Layout::Square }
}

fn values<'py, T: Real + Element>(
    py: Python<'py>,
    columns: &Columns,
    measure: Measure,
    layout: Layout,
) -> PyResult<Bound<'py, PyAny>> {
    let out = pairs::<T>(py, columns, layout, |out, stop| columns.agreement(measure, layout, out, stop))?;
    let undefined = columns.undefined(measure);
    if undefined > 0 {
        let name = Measure::ALL.iter().find(|(_, known)| *known == measure).map_or("", |(name, _)| name);
        let message = format!(
            "{name} is undefined (NaN) for {undefined} of the pairs of error sets: 0 / 0, where sets are empty or full"
        );
        let message = CString::new(message).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &message, 1)?;
    }
    Ok(out)
}

/// Error consistency of all pairs of error sets: intersection over union, the Jaccard index.
///
/// Parameters
/// ----------
/// error_sets : array_like of bool or of 0 and 1, shape (n_sets, n_samples)
///     One row a model or run: True (or 1) where it errs. Not copied when it is bool or uint8 in row-major order.
/// n_samples : int, optional
///     Says that `error_sets` holds bits, uint8 as of ``np.packbits(error_sets, axis=1)``, of that many samples.
///
/// Returns
/// -------
/// ndarray of float64, shape (n_sets, n_sets)
///     Symmetric, with 1 on the diagonal. NaN where both sets are empty, as in [1]_: there is no error on which to be
///     consistent. A RuntimeWarning tells how many pairs that are.
///
/// Raises
/// ------
/// ValueError
///     When a value is neither 0 nor 1, a shape does not fit, or an option is unknown.
/// TypeError
///     When an argument cannot be read as numbers.
///
/// See Also
/// --------
/// milfast.consistency.agreement_matrix : other measures, and the upper triangle only.
/// milfast.consistency.summary : mean and standard deviation, without the matrix.
///
/// References
/// ----------
/// .. [1] Levman, Ewenson, Apaloo, Berger & Tyrrell (2023), Error consistency for machine learning evaluation and
///    validation with application to biomedical diagnostics.
///
/// Examples
/// --------
/// >>> import milfast as mf
/// >>> mf.jaccard_matrix([[1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0]]).round(3)
/// array([[1.   , 0.5  , 0.333],
///        [0.5  , 1.   , 0.   ],
///        [0.333, 0.   , 1.   ]])
#[pyfunction]
#[pyo3(signature = (error_sets, *, n_samples=None))]
pub(super) fn jaccard_matrix<'py>(
    py: Python<'py>,
    error_sets: &Bound<'py, PyAny>,
    n_samples: Option<i64>,
) -> PyResult<Bound<'py, PyAny>> {
    let columns = columns(py, error_sets, n_samples, None)?;
    values::<f64>(py, &columns, Measure::Jaccard, Layout::Square)
}

/// How far error sets agree, for all pairs of them.
///
/// With n samples, a and b of them in the two sets and i in both:
///
/// - ``jaccard``: i / (a + b - i), the error consistency of [1]_.
/// - ``dice``: 2 i / (a + b).
/// - ``kappa``: Cohen's kappa, 2 (n i - a b) / (a (n - b) + b (n - a)), the error consistency of [2]_.
/// - ``double-fault``: i / n.
/// - ``phi``: correlation, (n i - a b) / sqrt(a (n - a) b (n - b)).
/// - ``yule-q``: with c = n - a - b + i, (c i - (a - i) (b - i)) / (c i + (a - i) (b - i)).
/// - ``agreement``: (n - a - b + 2 i) / n, where both err or neither does.
///
/// Where this is 0 / 0 it is NaN, and a RuntimeWarning tells for how many pairs: both sets are empty (jaccard, dice),
/// both empty or both full (kappa), either one empty or full (phi, yule-q), or there is no sample.
///
/// Parameters
/// ----------
/// error_sets : array_like of bool or of 0 and 1, shape (n_sets, n_samples)
///     One row a model or run: True (or 1) where it errs. Not copied when it is bool or uint8 in row-major order.
/// measure : {"jaccard", "dice", "kappa", "double-fault", "phi", "yule-q", "agreement"}
/// condensed : bool, default False
///     True gives the pairs above the diagonal only, row after row, as `scipy.spatial.distance.squareform` reads them.
/// dtype : {"float64", "float32"}, or what numpy takes for one of them
///     float32 is the float64 value rounded.
/// sample_weight : array_like of int, shape (n_samples,), optional
///     How many times each sample counts, below 2**32: how often a bootstrap drew it, say.
/// n_samples : int, optional
///     Says that `error_sets` holds bits, uint8 as of ``np.packbits(error_sets, axis=1)``, of that many samples.
///
/// Returns
/// -------
/// ndarray, shape (n_sets, n_sets) or (n_sets * (n_sets - 1) / 2,)
///     Symmetric; the diagonal compares each set with itself.
///
/// Raises
/// ------
/// ValueError
///     When a value is neither 0 nor 1, a shape does not fit, or an option is unknown.
/// TypeError
///     When an argument cannot be read as numbers.
///
/// References
/// ----------
/// .. [1] Levman, Ewenson, Apaloo, Berger & Tyrrell (2023), Error consistency for machine learning evaluation and
///    validation with application to biomedical diagnostics.
/// .. [2] Geirhos, Meding & Wichmann (2020), Beyond accuracy: quantifying trial-by-trial behaviour of CNNs and humans by
///    measuring error consistency.
///
/// Examples
/// --------
/// >>> from milfast.consistency import agreement_matrix
/// >>> errors = [[1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0]]
/// >>> agreement_matrix(errors, "kappa", condensed=True)
/// array([ 0.5,  0. , -0.5])
/// >>> agreement_matrix(errors, "agreement", condensed=True, sample_weight=[2, 1, 1, 0])
/// array([0.75, 0.25, 0.  ])
#[pyfunction]
#[pyo3(
    signature = (error_sets, measure="jaccard", *, condensed=false, dtype=Precision::Double, sample_weight=None,
                 n_samples=None),
    text_signature = "(error_sets, measure='jaccard', *, condensed=False, dtype='float64', sample_weight=None, \
                      n_samples=None)"
)]
pub(super) fn agreement_matrix<'py>(
    py: Python<'py>,
    error_sets: &Bound<'py, PyAny>,
    measure: &str,
    condensed: bool,
    dtype: Precision,
    sample_weight: Option<&Bound<'py, PyAny>>,
    n_samples: Option<i64>,
) -> PyResult<Bound<'py, PyAny>> {
    let (measure, layout) = (self::measure(measure)?, layout(condensed));
    let columns = columns(py, error_sets, n_samples, sample_weight)?;
    match dtype {
        Precision::Single => values::<f32>(py, &columns, measure, layout),
        Precision::Double => values::<f64>(py, &columns, measure, layout),
    }
}

/// Number of samples on which both of two models err, for all pairs: the counts every measure is made of.
///
/// Parameters
/// ----------
/// error_sets : array_like of bool or of 0 and 1, shape (n_sets, n_samples)
///     One row a model or run: True (or 1) where it errs. Not copied when it is bool or uint8 in row-major order.
/// condensed : bool, default False
///     True gives the pairs above the diagonal only, row after row.
/// sample_weight : array_like of int, shape (n_samples,), optional
///     How many times each sample counts, below 2**32: how often a bootstrap drew it, say.
/// n_samples : int, optional
///     Says that `error_sets` holds bits, uint8 as of ``np.packbits(error_sets, axis=1)``, of that many samples.
///
/// Returns
/// -------
/// ndarray of uint32 (uint64 with `sample_weight`), shape (n_sets, n_sets) or (n_sets * (n_sets - 1) / 2,)
///     Exact. On the diagonal are the sizes of the sets.
///
/// Raises
/// ------
/// ValueError
///     When a value is neither 0 nor 1, a shape does not fit, or an option is unknown.
/// TypeError
///     When an argument cannot be read as numbers.
///
/// Examples
/// --------
/// >>> from milfast.consistency import intersections
/// >>> intersections([[1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0]])
/// array([[2, 1, 1],
///        [1, 1, 0],
///        [1, 0, 2]], dtype=uint32)
#[pyfunction]
#[pyo3(signature = (error_sets, *, condensed=false, sample_weight=None, n_samples=None))]
pub(super) fn intersections<'py>(
    py: Python<'py>,
    error_sets: &Bound<'py, PyAny>,
    condensed: bool,
    sample_weight: Option<&Bound<'py, PyAny>>,
    n_samples: Option<i64>,
) -> PyResult<Bound<'py, PyAny>> {
    let layout = layout(condensed);
    let columns = columns(py, error_sets, n_samples, sample_weight)?;
    if sample_weight.is_some() {
        pairs::<u64>(py, &columns, layout, |out, stop| columns.intersections(layout, out, stop))
    } else {
        pairs::<u32>(py, &columns, layout, |out, stop| columns.intersections(layout, out, stop))
    }
}

/// Summary of `agreement_matrix` over the pairs of different sets. `milfast.consistency.summary` is the way to call it.
///
/// Parameters
/// ----------
/// error_sets : array_like of bool or of 0 and 1, shape (n_sets, n_samples)
///     One row a model or run: True (or 1) where it errs. Not copied when it is bool or uint8 in row-major order.
/// measure : str
///     As in `agreement_matrix`.
/// sample_weight : array_like of int, shape (n_samples,), optional
///     How many times each sample counts, below 2**32: how often a bootstrap drew it, say.
/// n_samples : int, optional
///     Says that `error_sets` holds bits, uint8 as of ``np.packbits(error_sets, axis=1)``, of that many samples.
///
/// Returns
/// -------
/// mean, sd, minimum, maximum : float
///     Of the pairs that have a value; `sd` with n - 1. NaN where there are too few pairs.
/// n_pairs, n_undefined : int
///     Pairs that have a value, and pairs for which it is 0 / 0.
///
/// Raises
/// ------
/// ValueError
///     When a value is neither 0 nor 1, a shape does not fit, or an option is unknown.
/// TypeError
///     When an argument cannot be read as numbers.
///
/// Examples
/// --------
/// >>> from milfast._core import agreement_summary
/// >>> agreement_summary([[1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]])
/// (0.6666666666666666, 0.28867513459481287, 0.5, 1.0, 3, 0)
#[pyfunction]
#[pyo3(signature = (error_sets, measure="jaccard", *, sample_weight=None, n_samples=None))]
pub(super) fn agreement_summary(
    py: Python<'_>,
    error_sets: &Bound<'_, PyAny>,
    measure: &str,
    sample_weight: Option<&Bound<'_, PyAny>>,
    n_samples: Option<i64>,
) -> PyResult<(f64, f64, f64, f64, u64, u64)> {
    let measure = self::measure(measure)?;
    let columns = columns(py, error_sets, n_samples, sample_weight)?;
    let found = interruptible(py, columns.work() > LONG, |stop| columns.summary(measure, stop))?;
    Ok((found.mean, found.sd, found.min, found.max, found.defined, found.undefined))
}

/// Mean of a measure over all ways to place two error sets of given sizes among the samples.
/// `milfast.consistency.chance_level` is the way to call it.
///
/// Parameters
/// ----------
/// n_samples : int
/// a, b : array_like of int, shape (n_pairs,)
///     Sizes of the first and of the second set of each pair.
/// measure : str
///     As in `agreement_matrix`.
///
/// Returns
/// -------
/// ndarray of float64, shape (n_pairs,)
///     NaN where the measure is 0 / 0.
///
/// Raises
/// ------
/// ValueError
///     When lengths differ, a size is above `n_samples`, a number is negative, or `measure` is unknown.
/// TypeError
///     When an argument cannot be read as integers.
///
/// Examples
/// --------
/// >>> from milfast._core import chance_levels
/// >>> chance_levels(195, [24, 0], [24, 0]).round(4)
/// array([0.0668,    nan])
#[pyfunction]
#[pyo3(signature = (n_samples, a, b, measure="jaccard"))]
pub(super) fn chance_levels<'py>(
    py: Python<'py>,
    n_samples: i64,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    measure: &str,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let measure = self::measure(measure)?;
    let n = u64::try_from(n_samples)
        .map_err(|_| Raised::value_error(format_args!("n_samples must not be negative; got {n_samples}")))?;
    let sizes = [("a", counts(a, "a")?), ("b", counts(b, "b")?)];
    let [(_, a), (_, b)] = &sizes;
    if a.slice().len() != b.slice().len() {
        let lengths = (a.slice().len(), b.slice().len());
        return Err(Raised::value_error(format_args!("a and b must have the same length; got {lengths:?}")));
    }
    for (name, sizes) in &sizes {
        if let Some(i) = sizes.slice().iter().position(|&size| size > n) {
            let size = sizes.slice()[i];
            return Err(Raised::value_error(format_args!("{name}[{i}] is {size}, more than n_samples={n}")));
        }
    }
    let (a, b) = (a.slice(), b.slice());
    let out = new_vector::<f64>(py, a.len())?;
    let mut view = out.readwrite();
    let target = view.as_slice_mut()?;
    let long = a.len() as f64 * (n as f64).sqrt() > LONG as f64;
    interruptible(py, long, |stop| chance::levels(measure, n, a, b, target, stop))?;
    drop(view);
    Ok(out)
}

/// How many error sets hold each sample: on how many runs a model errs on it.
///
/// Parameters
/// ----------
/// error_sets : array_like of bool or of 0 and 1, shape (n_sets, n_samples)
///     One row a model or run: True (or 1) where it errs. Not copied when it is bool or uint8 in row-major order.
/// n_samples : int, optional
///     Says that `error_sets` holds bits, uint8 as of ``np.packbits(error_sets, axis=1)``, of that many samples.
///
/// Returns
/// -------
/// ndarray of uint32, shape (n_samples,)
///
/// Raises
/// ------
/// ValueError
///     When a value is neither 0 nor 1, a shape does not fit, or an option is unknown.
/// TypeError
///     When an argument cannot be read as numbers.
///
/// Examples
/// --------
/// >>> from milfast.consistency import sample_counts
/// >>> sample_counts([[1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0]])
/// array([2, 2, 1, 0], dtype=uint32)
#[pyfunction]
#[pyo3(signature = (error_sets, *, n_samples=None))]
pub(super) fn sample_counts<'py>(
    py: Python<'py>,
    error_sets: &Bound<'py, PyAny>,
    n_samples: Option<i64>,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let counts = self::error_sets(py, error_sets, n_samples, |sets, stop| sets.sample_counts(stop))?;
    Ok(PyArray1::from_vec(py, counts))
}
