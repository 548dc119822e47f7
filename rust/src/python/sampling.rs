//! Bags from a recipe, as Python asks for them.

use numpy::{PyArray1, prelude::*};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::arrays::{Matrix, new_matrix};
use super::raised::{PyResult, Raised};
use super::running::{VERY_LONG, interruptible};
use crate::sampling::{Choice, Component, Draw, Recipe};
use crate::{memory, sampling};

/// From this many bags on Ctrl-C is looked for while they are planned.
const LONG: usize = 2048;

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
                    return Err(Raised::value_error(format_args!(
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
/// name : str
///     Name of the recipe, for messages.
/// concepts : list of int or None, length n_components, optional
///     Number of the concept whose presence an instance of the component shows. Where there are any, a bag must be
///     positive if and only if every concept is present.
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
///     When the recipe contradicts itself, or a bag does what `concepts` rules out.
#[pyfunction]
#[pyo3(signature = (*, means, deviations, negative, positive, filler, size, pad_to, n_negative, n_positive,
                    shuffled, seed, single, name="", concepts=None))]
#[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools, clippy::type_complexity)]
pub(super) fn sample_bags<'py>(
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
    name: &str,
    concepts: Option<Vec<Option<u16>>>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i16>>)> {
    let (means, [n, d]) = Matrix::of(means, "means")?;
    if n != deviations.len() {
        return Err(Raised::value_error(format_args!("means has {n} rows, deviations {} entries", deviations.len())));
    }
    let concepts = concepts.unwrap_or_else(|| vec![None; n]);
    if n != concepts.len() {
        return Err(Raised::value_error(format_args!("means has {n} rows, concepts {} entries", concepts.len())));
    }
    let means = means.into_f64()?;
    let mut components = memory::room(n, "the components")?;
    for ((mean, deviation), concept) in means.slice().chunks_exact(d).zip(deviations).zip(concepts) {
        let mean = memory::collect(mean.iter().copied(), "the components")?;
        components.push(Component { mean, deviation, concept });
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
    let plan = interruptible(py, long, |stop| sampling::plan(&recipe, n_negative, n_positive, shuffled, seed, stop))?;
    if let Some(bag) = plan.contradiction {
        let (role, holds) = if plan.labels[bag] { ("positive", "lacks a") } else { ("negative", "holds every") };
        return Err(Raised::value_error(format_args!(
            "recipe {} contradicts itself: its {role} bag {bag} {holds} concept, but a bag is positive if and only if \
             every concept is present",
            PyString::new(py, name).repr()?
        )));
    }
    macro_rules! features {
        ($type:ty) => {{
            let out = new_matrix::<$type>(py, plan.kinds.len(), d)?;
            let mut view = out.readwrite();
            let target = view.as_slice_mut()?;
            interruptible(py, target.len() > VERY_LONG, |stop| sampling::features(&recipe, &plan, seed, target, stop))?;
            drop(view);
            out.into_any()
        }};
    }
    let instances = if single { features!(f32) } else { features!(f64) };
    let labels = memory::collect(plan.labels.iter().map(|&l| i64::from(l)), "the labels")?;
    let kinds = plan.kinds.into_iter().map(|k| k as i16).collect(); // in the memory of the kinds
    Ok((instances, PyArray1::from_vec(py, plan.offsets), PyArray1::from_vec(py, labels), PyArray1::from_vec(py, kinds)))
}
