//! The kernels of milfast.
//!
//! Apart from [`python`], nothing here knows Python: functions take slices and return values or an [`error::Error`].
//! They promise: counts are exact integers; the same seed gives the same bits for any number of threads and on any
//! dispatch path; no input makes them panic; long work can be interrupted.

pub mod accumulator;
pub mod auc;
pub mod bag_gram;
pub mod bags;
pub mod bootstrap;
pub mod chance;
pub mod consistency;
pub mod delong;
mod each;
pub mod error;
pub mod error_sets;
pub mod gram;
pub mod invariance;
pub mod kernel_rows;
pub mod labels;
pub mod memory;
mod pairs;
pub mod parallel;
#[cfg(feature = "python")]
mod python;
pub mod rng;
pub mod sampling;
pub mod scores;
pub mod simd;
pub mod smo;
mod sort;
mod tiles;
