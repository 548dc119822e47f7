//! The Python face of the kernels, and the only place that mentions pyo3.

mod accumulator;
mod arrays;
mod consistency;
mod gram;
mod invariance;
mod machine;
mod metrics;
mod raised;
mod running;
mod sampling;
mod svm;
mod variances;

use pyo3::prelude::*;

/// The compiled kernels of milfast. Use them through `milfast`.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::accumulator::Accumulator;
    #[pymodule_export]
    use super::consistency::{
        agreement_matrix, agreement_summary, chance_levels, intersections, jaccard_matrix, sample_counts,
    };
    #[pymodule_export]
    use super::gram::{bag_kernel, bag_kernel_diagonal, rbf_gram};
    #[pymodule_export]
    use super::invariance::{
        Environments, environments_from_mixtures, environments_from_moments, environments_from_samples,
        invariance_learners,
    };
    #[pymodule_export]
    use super::machine::{get_num_threads, set_num_threads, simd_level};
    #[pymodule_export]
    use super::metrics::{auc, auc_from_counts, auc_many, binary_labels};
    #[pymodule_export]
    use super::sampling::sample_bags;
    #[pymodule_export]
    use super::svm::{KernelRows, kernel_sums};
    #[pymodule_export]
    use super::variances::{auc_jackknife, bootstrap_auc, delong, delong_covariance, placements};
}
