//! Kernels between instances and between bags, as Python calls them.

use numpy::{PyArray1, PyArray2, prelude::*};
use pyo3::prelude::*;

use super::arrays::{Flat, Matrix, new_matrix, offset_array};
use super::raised::{PyResult, Raised};
use super::running::{VERY_LONG, interruptible};
use crate::bag_gram::{self, SetKernel};
use crate::bags::Bags;
use crate::gram::{self, InstanceKernel};

/// Gaussian kernel matrix: exp(-gamma |x - y|^2) for all pairs of rows.
///
/// The diagonal of `rbf_gram(X)` is exactly 1 and the matrix exactly symmetric.
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
pub(super) fn rbf_gram<'py>(
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
        return Err(Raised::value_error(format_args!("X and Y must have as many columns; got {d} and {width}")));
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

pub(super) fn instance_kernel(name: &str, gamma: f64, degree: u32, coef0: f64) -> PyResult<InstanceKernel> {
    match name {
        "rbf" => Ok(InstanceKernel::Rbf { gamma }),
        // with these it is x.y to the last bit
        "linear" => Ok(InstanceKernel::Poly { gamma: 1.0, degree: 1, coef0: 0.0 }),
        "poly" => Ok(InstanceKernel::Poly { gamma, degree, coef0 }),
        _ => Err(Raised::value_error(format_args!("kernel must be rbf, linear or poly; got {name:?}"))),
    }
}

/// Kernel between bags, for all pairs of bags. `milfast.bag_gram` is the way to call it.
///
/// Parameters
/// ----------
/// instances : array_like, shape (n_instances, n_features)
/// offsets : ndarray of int64, shape (n_bags + 1,)
/// other_instances, other_offsets : optional
///     The bags of the columns; those of the rows when left out.
/// kernel : {"rbf", "linear", "poly"}
/// gamma, degree, coef0
///     Of the instance kernel.
/// set_kernel : {"nsk", "match", "soft-match"}
/// sharpness : float
///     Of "soft-match".
///
/// Returns
/// -------
/// ndarray of float64, shape (n_bags, number of other bags)
///     Computed in float32 when all instances are float32, except for what is added up over a bag.
///
/// Raises
/// ------
/// ValueError
///     When shapes or offsets disagree, an option is unknown, a number is out of range or a value is not finite.
///
/// Examples
/// --------
/// >>> import numpy as np
/// >>> from milfast._core import bag_kernel
/// >>> bag_kernel([[0.0], [0.0], [1.0]], np.array([0, 2, 3]), gamma=1.0).round(4)
/// array([[4.    , 0.7358],
///        [0.7358, 1.    ]])
#[pyfunction]
#[pyo3(signature = (instances, offsets, other_instances=None, other_offsets=None, *, kernel="rbf", gamma=1.0,
                    degree=3, coef0=1.0, set_kernel="nsk", sharpness=1.0))]
#[allow(clippy::too_many_arguments)]
pub(super) fn bag_kernel<'py>(
    py: Python<'py>,
    instances: &Bound<'py, PyAny>,
    offsets: &Bound<'py, PyAny>,
    other_instances: Option<&Bound<'py, PyAny>>,
    other_offsets: Option<&Bound<'py, PyAny>>,
    kernel: &str,
    gamma: f64,
    degree: u32,
    coef0: f64,
    set_kernel: &str,
    sharpness: f64,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let kernel = instance_kernel(kernel, gamma, degree, coef0)?;
    let set_kernel = match set_kernel {
        "nsk" => SetKernel::Sum,
        "match" => SetKernel::Match,
        "soft-match" => SetKernel::SoftMatch { sharpness },
        _ => {
            return Err(Raised::value_error(format_args!(
                "set_kernel must be nsk, match or soft-match; got {set_kernel:?}"
            )));
        }
    };
    let (x, [_, d]) = Matrix::of(instances, "instances")?;
    let cuts = offset_array(offsets, "offsets")?;
    let other = match (other_instances, other_offsets) {
        (Some(instances), Some(cuts)) => {
            let (y, [_, width]) = Matrix::of(instances, "other_instances")?;
            if width != d {
                return Err(Raised::value_error(format_args!(
                    "instances and other_instances must have as many features; got {d} and {width}"
                )));
            }
            Some((y, offset_array(cuts, "other_offsets")?))
        }
        (None, None) => None,
        _ => return Err(Raised::type_error(format_args!("other_instances and other_offsets go together"))),
    };
    macro_rules! sums {
        ($x:expr, $y:expr) => {{
            let a = Bags::new($x, d, cuts.slice())?;
            let b = match $y {
                // The message starts with the name of the argument: offsets.
                Some((y, cuts)) => {
                    Some(Bags::new(y, d, cuts).map_err(|error| Raised::value_error(format_args!("other_{error}")))?)
                }
                None => None,
            };
            let columns = b.as_ref().unwrap_or(&a);
            let long = a.n_instances().saturating_mul(columns.n_instances()).saturating_mul(d) > VERY_LONG << 3;
            let out = new_matrix::<f64>(py, a.len(), columns.len())?;
            let mut view = out.readwrite();
            let target = view.as_slice_mut()?;
            interruptible(py, long, |stop| bag_gram::bag_gram(&a, b.as_ref(), kernel, set_kernel, target, stop))?;
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

/// Sum of an instance kernel over all pairs inside each bag.
///
/// Parameters
/// ----------
/// instances : array_like, shape (n_instances, n_features)
/// offsets : ndarray of int64, shape (n_bags + 1,)
/// kernel, gamma, degree, coef0
///     As in `bag_kernel`.
///
/// Returns
/// -------
/// ndarray of float64, shape (n_bags,)
///
/// Raises
/// ------
/// ValueError
///     As `bag_kernel`.
///
/// Examples
/// --------
/// >>> import numpy as np
/// >>> from milfast._core import bag_kernel_diagonal
/// >>> bag_kernel_diagonal([[0.0], [0.0], [1.0]], np.array([0, 2, 3]), gamma=1.0)
/// array([4., 1.])
#[pyfunction]
#[pyo3(signature = (instances, offsets, *, kernel="rbf", gamma=1.0, degree=3, coef0=1.0))]
pub(super) fn bag_kernel_diagonal<'py>(
    py: Python<'py>,
    instances: &Bound<'py, PyAny>,
    offsets: &Bound<'py, PyAny>,
    kernel: &str,
    gamma: f64,
    degree: u32,
    coef0: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let kernel = instance_kernel(kernel, gamma, degree, coef0)?;
    let (x, [_, d]) = Matrix::of(instances, "instances")?;
    let cuts = offset_array(offsets, "offsets")?;
    let sums = match &x {
        Matrix::F32(x) => {
            let bags = Bags::new(x.slice(), d, cuts.slice())?;
            interruptible(py, true, |stop| bag_gram::bag_diagonal(&bags, kernel, stop))?
        }
        Matrix::F64(x) => {
            let bags = Bags::new(x.slice(), d, cuts.slice())?;
            interruptible(py, true, |stop| bag_gram::bag_diagonal(&bags, kernel, stop))?
        }
    };
    Ok(PyArray1::from_vec(py, sums))
}
