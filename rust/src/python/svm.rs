//! The solver of support vector machines, as Python calls it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{PyArray1, prelude::*};
use pyo3::prelude::*;

use super::arrays::{Flat, Matrix, Scores, new_vector, offset_array};
use super::gram::instance_kernel;
use super::raised::{PyResult, Raised};
use super::running::{VERY_LONG, interruptible};
use crate::kernel_rows::{self, KernelRows as Core};
use crate::memory;
use crate::smo::{self, ALONE, Combinations, Problem};

fn values<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Flat<'py, f64>> {
    Ok(Scores::of(object, name)?.into_f64()?)
}

/// Values, scores, intercept, objective, gap and steps.
type Solved<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, f64, f64, f64, u64);

/// A kernel matrix between instances, of which rows are computed when the solver wants them, or a whole one.
///
/// Parameters
/// ----------
/// matrix : array_like
///     Instances, shape (n, n_features), or with kernel="precomputed" a symmetric kernel matrix, shape (n, n).
/// kernel : {"rbf", "linear", "poly", "precomputed"}
/// gamma, degree, coef0
///     Of the instance kernel.
/// cache_bytes : int
///     Rows that take about so many bytes are kept.
#[pyclass(frozen, module = "milfast._core")]
pub(super) struct KernelRows {
    core: Mutex<Core>,
    n: usize,
}

impl KernelRows {
    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl KernelRows {
    #[new]
    #[pyo3(signature = (matrix, *, kernel="rbf", gamma=1.0, degree=3, coef0=1.0, cache_bytes=500_000_000))]
    fn new(
        py: Python<'_>,
        matrix: &Bound<'_, PyAny>,
        kernel: &str,
        gamma: f64,
        degree: u32,
        coef0: f64,
        cache_bytes: usize,
    ) -> PyResult<Self> {
        let (x, [n, d]) = Matrix::of(matrix, if kernel == "precomputed" { "matrix" } else { "instances" })?;
        let x = x.into_f64()?;
        let x = x.slice();
        let core = if kernel == "precomputed" {
            py.detach(|| Core::of_matrix(x, n))?
        } else {
            let kernel = instance_kernel(kernel, gamma, degree, coef0)?;
            let copy = memory::collect(x.iter().copied(), "a copy of the instances")?;
            interruptible(py, true, |stop| Core::of_instances(copy, d, kernel, cache_bytes, stop))?
        };
        Ok(Self { n: core.len(), core: Mutex::new(core) })
    }

    fn __len__(&self) -> usize {
        self.n
    }

    /// Minimise 1/2 b'Kb + linear'b over lower <= b <= upper with sum(b) = 0.
    ///
    /// Parameters
    /// ----------
    /// lower, upper, linear : array_like, shape (n,)
    /// starts, members, weights : array_like, optional
    ///     Variable i stands for the sum of the instances members[starts[i]:starts[i + 1]] times their weights.
    /// groups : ndarray of int64, shape (n,), optional
    ///     Group of each variable that shares a slack, and -1 for others.
    /// limits : array_like, shape (n_groups,), optional
    ///     The most that the absolute values of a group may sum up to.
    /// start : array_like, shape (n,), optional
    /// tol : float
    ///     Largest violation of optimality that is left.
    /// max_steps : int
    ///
    /// Returns
    /// -------
    /// values, scores : ndarray of float64, shape (n,)
    ///     Scores are those of the variables, without intercept.
    /// intercept, objective, gap : float
    /// steps : int
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     When the parts do not fit together.
    #[pyo3(signature = (lower, upper, linear, *, starts=None, members=None, weights=None, groups=None, limits=None,
                        start=None, tol=1e-3, max_steps=100_000_000))]
    #[allow(clippy::too_many_arguments)]
    fn solve<'py>(
        &self,
        py: Python<'py>,
        lower: &Bound<'py, PyAny>,
        upper: &Bound<'py, PyAny>,
        linear: &Bound<'py, PyAny>,
        starts: Option<&Bound<'py, PyAny>>,
        members: Option<&Bound<'py, PyAny>>,
        weights: Option<&Bound<'py, PyAny>>,
        groups: Option<&Bound<'py, PyAny>>,
        limits: Option<&Bound<'py, PyAny>>,
        start: Option<&Bound<'py, PyAny>>,
        tol: f64,
        max_steps: u64,
    ) -> PyResult<Solved<'py>> {
        let (lower, upper, linear) = (values(lower, "lower")?, values(upper, "upper")?, values(linear, "linear")?);
        let start = start.map(|start| values(start, "start")).transpose()?;
        let combined = match (starts, members, weights) {
            (Some(starts), Some(members), Some(weights)) => {
                let (starts, members) = (offset_array(starts, "starts")?, offset_array(members, "members")?);
                Some((starts, members, values(weights, "weights")?))
            }
            (None, None, None) => None,
            _ => {
                return Err(Raised::value_error(format_args!(
                    "starts, members and weights go together: give all or none"
                )));
            }
        };
        let grouped = match (groups, limits) {
            (Some(groups), Some(limits)) => {
                let (groups, limits) = (offset_array(groups, "groups")?, values(limits, "limits")?);
                let most = limits.slice().len() as i64;
                if let Some(i) = groups.slice().iter().position(|g| !(-1..most).contains(g)) {
                    let group = groups.slice()[i];
                    return Err(Raised::value_error(format_args!(
                        "groups[{i}] is {group}: it must be from 0 to {} or, for none, -1",
                        most - 1
                    )));
                }
                Some((groups.map(|g| u32::try_from(g).unwrap_or(ALONE))?, limits))
            }
            (None, None) => None,
            _ => return Err(Raised::value_error(format_args!("groups and limits go together: give both or none"))),
        };
        let problem = Problem {
            lower: lower.slice(),
            upper: upper.slice(),
            linear: linear.slice(),
            combinations: combined.as_ref().map(|(starts, members, weights)| Combinations {
                starts: starts.slice(),
                members: members.slice(),
                weights: weights.slice(),
            }),
            groups: grouped.as_ref().map(|(groups, limits)| (groups.slice(), limits.slice())),
            start: start.as_ref().map(Flat::slice),
            tolerance: tol,
            most_steps: max_steps,
        };
        let solution = interruptible(py, true, |stop| smo::solve(&mut self.lock(), problem, stop))?;
        Ok((
            PyArray1::from_vec(py, solution.values),
            PyArray1::from_vec(py, solution.scores),
            solution.intercept,
            solution.objective,
            solution.gap,
            solution.steps,
        ))
    }

    /// The kernel matrix times a vector.
    ///
    /// Parameters
    /// ----------
    /// coefficients : array_like, shape (n,)
    ///
    /// Returns
    /// -------
    /// ndarray of float64, shape (n,)
    fn times<'py>(&self, py: Python<'py>, coefficients: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let coefficients = values(coefficients, "coefficients")?;
        let coefficients = coefficients.slice();
        let sums = interruptible(py, true, |stop| self.lock().times(coefficients, stop))?;
        Ok(PyArray1::from_vec(py, sums))
    }
}

/// Sum over the rows y of `Y` of coefficient times k(x, y), for each row x of `X`. No kernel matrix is built.
///
/// Parameters
/// ----------
/// X : array_like, shape (n, n_features)
/// Y : array_like, shape (m, n_features)
/// coefficients : array_like, shape (m,)
/// kernel : {"rbf", "linear", "poly"}
/// gamma, degree, coef0
///     Of the kernel.
///
/// Returns
/// -------
/// ndarray of float64, shape (n,)
///
/// Raises
/// ------
/// ValueError
///     When shapes disagree, a parameter is out of range or a value is not finite.
///
/// Examples
/// --------
/// >>> from milfast._core import kernel_sums
/// >>> kernel_sums([[0.0], [1.0]], [[0.0], [1.0]], [2.0, -1.0], gamma=1.0).round(4)
/// array([ 1.6321, -0.2642])
#[pyfunction]
#[pyo3(signature = (X, Y, coefficients, *, kernel="rbf", gamma=1.0, degree=3, coef0=1.0))]
#[allow(non_snake_case, clippy::too_many_arguments)]
pub(super) fn kernel_sums<'py>(
    py: Python<'py>,
    X: &Bound<'py, PyAny>,
    Y: &Bound<'py, PyAny>,
    coefficients: &Bound<'py, PyAny>,
    kernel: &str,
    gamma: f64,
    degree: u32,
    coef0: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let kernel = instance_kernel(kernel, gamma, degree, coef0)?;
    let ((x, [rows, d]), (y, [columns, width])) = (Matrix::of(X, "X")?, Matrix::of(Y, "Y")?);
    if width != d {
        return Err(Raised::value_error(format_args!("X and Y must have as many columns; got {d} and {width}")));
    }
    let coefficients = values(coefficients, "coefficients")?;
    let coefficients = coefficients.slice();
    if coefficients.len() != columns {
        return Err(Raised::value_error(format_args!(
            "Y and coefficients must go together: Y has {columns} rows, coefficients has {} entries",
            coefficients.len()
        )));
    }
    let (x, y) = (x.into_f64()?, y.into_f64()?);
    let (x, y) = (x.slice(), y.slice());
    let long = rows.saturating_mul(columns).saturating_mul(d) > VERY_LONG << 3;
    let out = new_vector::<f64>(py, rows)?;
    let mut view = out.readwrite();
    let target = view.as_slice_mut()?;
    interruptible(py, long, |stop| kernel_rows::weighted_sums(x, y, d, coefficients, kernel, target, stop))?;
    drop(view);
    Ok(out)
}
