//! What the kernels run on, as Python asks and sets it.

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use super::raised::{PyResult, Raised};
use crate::{parallel, simd};

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
pub(super) fn set_num_threads(py: Python<'_>, n: &Bound<'_, PyAny>) -> PyResult<()> {
    let number = match n.extract::<i64>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => {
            // beyond 64 bits only the sign matters
            if n.lt(0)? { i64::MIN } else { i64::MAX }
        }
        number => number?,
    };
    if number < 1 {
        return Err(Raised::value_error(format_args!("n must be at least 1; got {n}")));
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
pub(super) fn get_num_threads() -> PyResult<usize> {
    Ok(parallel::threads()?)
}

/// Instruction set in use: 'baseline', 'avx2', 'avx512' or 'avx512-vpopcnt'. Results do not depend on it.
///
/// Returns
/// -------
/// str
///
/// Examples
/// --------
/// >>> from milfast._core import simd_level
/// >>> simd_level() in ("baseline", "avx2", "avx512", "avx512-vpopcnt")
/// True
#[pyfunction]
pub(super) fn simd_level() -> &'static str {
    match simd::level() {
        simd::Level::Baseline => "baseline",
        simd::Level::Avx2 => "avx2",
        simd::Level::Avx512 => "avx512",
        simd::Level::Avx512Vpopcnt => "avx512-vpopcnt",
    }
}
