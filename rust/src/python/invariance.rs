//! Training over several environments, as Python calls it.

use numpy::{IntoPyArray, PyArray1, PyArrayDyn, prelude::*};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::arrays::{Flat, Matrix, Scores};
use super::raised::{PyResult, Raised};
use super::running::interruptible;
use crate::error;
use crate::invariance::{self, Environments as Core, Mixtures, Moments, Samples, Squares, Task, evaluation};
use crate::parallel::Interrupt;

/// Data of several environments, or their population: what learners of invariance are trained on.
///
/// Made by `environments_from_samples`, `environments_from_moments` and `environments_from_mixtures`. A predictor is a row (w, b) of weights and a
/// bias, which comes last; theta holds one a row, R in all, and there are E environments of d features.
#[pyclass(frozen, module = "milfast._core")]
pub(super) struct Environments {
    core: Box<dyn Core>,
}

/// Numbers of predictors, all in a row.
type Evaluation = fn(&dyn Core, &[f64], &Interrupt) -> error::Result<Vec<f64>>;

/// A matrix of float64 with so many columns.
fn rows<'py>(object: &Bound<'py, PyAny>, name: &str, columns: usize, what: &str) -> PyResult<(Flat<'py, f64>, usize)> {
    let (values, rows, found) = Scores::matrix(object, name)?;
    if found != columns {
        return Err(Raised::value_error(format_args!("{name} must have {columns} columns, {what}; got {found}")));
    }
    Ok((values.into_f64()?, rows))
}

fn array<'py>(py: Python<'py>, values: Vec<f64>, shape: &[usize]) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    Ok(values.into_pyarray(py).reshape(shape)?)
}

impl Environments {
    pub(super) fn new(core: impl Core + 'static) -> Self {
        Self { core: Box::new(core) }
    }

    fn theta<'py>(&self, object: &Bound<'py, PyAny>, name: &str) -> PyResult<(Flat<'py, f64>, usize)> {
        rows(object, name, self.core.n_features() + 1, "the weights of the features and the bias")
    }

    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        theta: &Bound<'py, PyAny>,
        each: &[usize],
        of: Evaluation,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let (theta, n) = self.theta(theta, "theta")?;
        let theta = theta.slice();
        let values = interruptible(py, true, |stop| of(&*self.core, theta, stop))?;
        array(py, values, &[&[n], each].concat())
    }
}

#[pymethods]
impl Environments {
    /// Number of environments.
    #[getter]
    fn n_environments(&self) -> usize {
        self.core.n_environments()
    }

    /// Number of features.
    #[getter]
    fn n_features(&self) -> usize {
        self.core.n_features()
    }

    /// "regression" or "classification".
    #[getter]
    fn task(&self) -> &'static str {
        match self.core.task() {
            Task::Regression => "regression",
            Task::Classification => "classification",
        }
    }

    fn __repr__(&self) -> String {
        format!(
            "Environments(n_environments={}, n_features={}, task={:?})",
            self.n_environments(),
            self.n_features(),
            self.task()
        )
    }

    /// Mean loss in each environment: squared error, or logistic loss.
    ///
    /// Parameters
    /// ----------
    /// theta : array_like, shape (R, d + 1)
    ///
    /// Returns
    /// -------
    /// ndarray of float64, shape (R, E)
    ///     NaN where a parameter is not finite.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     When theta has another number of columns.
    fn risks<'py>(&self, py: Python<'py>, theta: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        self.evaluate(py, theta, &[self.core.n_environments()], evaluation::risks)
    }

    /// Mean squared error, or the share of rows of the wrong class, in each environment. A positive logit says class 1.
    ///
    /// Parameters
    /// ----------
    /// theta : array_like, shape (R, d + 1)
    ///
    /// Returns
    /// -------
    /// ndarray of float64, shape (R, E)
    ///     NaN where a parameter is not finite.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     When theta has another number of columns.
    fn errors<'py>(&self, py: Python<'py>, theta: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        self.evaluate(py, theta, &[self.core.n_environments()], evaluation::errors)
    }

    /// Gradient of the mean loss in each environment.
    ///
    /// Parameters
    /// ----------
    /// theta : array_like, shape (R, d + 1)
    ///
    /// Returns
    /// -------
    /// ndarray of float64, shape (R, E, d + 1)
    ///     NaN where a parameter is not finite.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     When theta has another number of columns.
    fn gradients<'py>(&self, py: Python<'py>, theta: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        self.evaluate(py, theta, &[self.core.n_environments(), self.core.n_features() + 1], evaluation::gradients)
    }

    /// What the optimiser gets at the first step from theta, before weight decay: the gradient of the objective, and for
    /// the AND-mask the masked mean of normalised gradients.
    ///
    /// Parameters
    /// ----------
    /// learner : str
    ///     One of `invariance_learners`.
    /// parameters : array_like, shape (R, P)
    ///     Values of the learner's parameters, in the order of `invariance_learners`.
    /// theta : array_like, shape (R, d + 1)
    ///
    /// Returns
    /// -------
    /// ndarray of float64, shape (R, d + 1)
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     When shapes disagree, a value is not finite or out of range, or the learner is unknown.
    fn objective_gradient<'py>(
        &self,
        py: Python<'py>,
        learner: &str,
        parameters: &Bound<'py, PyAny>,
        theta: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let (theta, n) = self.theta(theta, "theta")?;
        let (objective, parameters) = chosen(learner, parameters, "theta", n)?;
        let (theta, parameters) = (theta.slice(), parameters.slice());
        let values = interruptible(py, true, |stop| {
            invariance::objective_gradient(&*self.core, objective, parameters, theta, stop)
        })?;
        array(py, values, &[n, self.core.n_features() + 1])
    }

    /// Train a learner, once for each row of its parameters.
    ///
    /// Runs pass over the data together, and are shared out to threads; what becomes of a run depends neither on the
    /// others nor on the number of threads. A run whose parameters are no longer finite stops there.
    /// For classes that happens a step after they are too large for float32, in which logits are computed.
    ///
    /// Parameters
    /// ----------
    /// learner : str
    ///     One of `invariance_learners`.
    /// parameters : array_like, shape (R, P)
    ///     Values of the learner's parameters, in the order of `invariance_learners`.
    /// initial : array_like, shape (R, d + 1)
    ///     Where the runs start.
    /// n_steps : int
    ///
    /// Returns
    /// -------
    /// dict
    ///     "theta", shape (R, d + 1); "diverged", booleans, shape (R,); "step", integers, shape (R,): steps that were
    ///     made, all of them unless a run diverged.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     When shapes disagree, a value is not finite or out of range, or the learner is unknown.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> from milfast._core import environments_from_samples
    /// >>> x = np.array([[0.0], [1.0], [2.0]], dtype=np.float32)
    /// >>> data = environments_from_samples([x, 2 * x], [1 + x[:, 0], 1 + 2 * x[:, 0]], "regression")
    /// >>> run = data.train("erm", [[0.1, 0.0]], [[0.0, 0.0]], 2000)
    /// >>> run["theta"].round(3), run["diverged"], run["step"]
    /// (array([[1., 1.]]), array([False]), array([2000]))
    fn train<'py>(
        &self,
        py: Python<'py>,
        learner: &str,
        parameters: &Bound<'py, PyAny>,
        initial: &Bound<'py, PyAny>,
        n_steps: u64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (initial, n) = self.theta(initial, "initial")?;
        let (objective, parameters) = chosen(learner, parameters, "initial", n)?;
        let (initial, parameters) = (initial.slice(), parameters.slice());
        if n_steps > i64::MAX as u64 {
            return Err(Raised::value_error(format_args!("n_steps must be below 2**63; got {n_steps}")));
        }
        let trained = interruptible(py, true, |stop| {
            invariance::train(&*self.core, objective, parameters, initial, n_steps, stop)
        })?;
        let out = PyDict::new(py);
        out.set_item("theta", array(py, trained.theta, &[n, self.core.n_features() + 1])?)?;
        out.set_item("diverged", PyArray1::from_vec(py, trained.diverged))?;
        let steps: Vec<i64> = trained.steps.into_iter().map(|step| step as i64).collect();
        out.set_item("step", PyArray1::from_vec(py, steps))?;
        Ok(out)
    }
}

/// The learner of a name, and values of its parameters for `n` runs.
fn chosen<'py>(
    learner: &str,
    parameters: &Bound<'py, PyAny>,
    beside: &str,
    n: usize,
) -> PyResult<(&'static dyn invariance::Objective, Flat<'py, f64>)> {
    let objective = invariance::learner(learner)?;
    let names = [&["lr", "weight_decay"], objective.parameters()].concat();
    let (values, found) = rows(parameters, "parameters", names.len(), &names.join(", "))?;
    if found != n {
        return Err(Raised::value_error(format_args!(
            "parameters and {beside} must have as many rows, one a run; got {found} and {n}"
        )));
    }
    Ok((objective, values))
}

/// Learners that `Environments.train` knows, and the names of their parameters in order.
///
/// Returns
/// -------
/// dict
///
/// Examples
/// --------
/// >>> from milfast._core import invariance_learners
/// >>> invariance_learners()["irmv1"]
/// ('lr', 'weight_decay', 'penalty_weight')
#[pyfunction]
pub(super) fn invariance_learners(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    for learner in invariance::learners() {
        let names = [&["lr", "weight_decay"], learner.parameters()].concat();
        out.set_item(learner.name(), PyTuple::new(py, names)?)?;
    }
    Ok(out)
}

fn task_of(task: &str) -> PyResult<Task> {
    match task {
        "regression" => Ok(Task::Regression),
        "classification" => Ok(Task::Classification),
        _ => Err(Raised::value_error(format_args!("task must be regression or classification; got {task:?}"))),
    }
}

/// Environments of which there are rows.
///
/// Parameters
/// ----------
/// X : sequence of array_like, each of shape (n_e, d)
///     For classes they are kept in float32.
/// y : sequence of array_like, each of shape (n_e,)
///     Targets, or classes 0 and 1.
/// task : {"regression", "classification"}
///     For regression only second moments are kept, in float64.
/// squares : bool
///     For regression whether some moments of the fourth order are kept too, (d + 1) (d + 2)^2 an environment: fishr
///     needs them. For classes all is there anyway.
///
/// Returns
/// -------
/// Environments
///
/// Raises
/// ------
/// ValueError
///     When shapes disagree, a value is not finite or a class is not 0 or 1.
/// TypeError
///     When an argument cannot be read as numbers.
///
/// Examples
/// --------
/// >>> from milfast._core import environments_from_samples
/// >>> data = environments_from_samples([[[0.0], [1.0]]], [[0, 1]], "classification")
/// >>> data.errors([[1.0, -0.5], [1.0, 0.5]])
/// array([[0. ],
///        [0.5]])
#[pyfunction]
#[pyo3(signature = (X, y, task, *, squares=false))]
#[allow(non_snake_case)]
pub(super) fn environments_from_samples(
    py: Python<'_>,
    X: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
    task: &str,
    squares: bool,
) -> PyResult<Environments> {
    let task = task_of(task)?;
    let list = |object: &Bound<'_, PyAny>, name: &str| -> PyResult<Vec<Py<PyAny>>> {
        let items = object
            .try_iter()
            .map_err(|_| Raised::type_error(format_args!("{name} must be a list, one entry an environment")))?;
        items.map(|item| Ok(item?.unbind())).collect()
    };
    let (xs, ys) = (list(X, "X")?, list(y, "y")?);
    if xs.len() != ys.len() {
        return Err(Raised::value_error(format_args!(
            "X and y must have as many entries, one an environment; got {} and {}",
            xs.len(),
            ys.len()
        )));
    }
    let (mut features, mut targets, mut d) = (Vec::new(), Vec::new(), None);
    for (e, (x, y)) in xs.iter().zip(&ys).enumerate() {
        let (x, [n, width]) = Matrix::of(x.bind(py), &format!("X[{e}]"))?;
        let first = *d.get_or_insert(width);
        if width != first {
            return Err(Raised::value_error(format_args!(
                "X[{e}] must have as many columns as X[0]; got {width} and {first}"
            )));
        }
        let y = Scores::of(y.bind(py), &format!("y[{e}]"))?.into_f64()?;
        if y.slice().len() != n {
            return Err(Raised::value_error(format_args!(
                "X[{e}] and y[{e}] must have as many rows; got {n} and {}",
                y.slice().len()
            )));
        }
        features.push(x);
        targets.push(y);
    }
    let Some(d) = d else {
        return Err(Raised::value_error(format_args!("X must have at least one entry: there is no environment")));
    };
    match task {
        Task::Regression => {
            let features = features.into_iter().map(Matrix::into_f64).collect::<error::Result<Vec<_>>>()?;
            let data: Vec<_> = features.iter().zip(&targets).map(|(x, y)| (x.slice(), y.slice())).collect();
            if squares {
                return Ok(Environments::new(interruptible(py, true, |stop| Squares::of_samples(d, &data, stop))?));
            }
            Ok(Environments::new(interruptible(py, true, |stop| Moments::of_samples(d, &data, stop))?))
        }
        Task::Classification => {
            let features = features.into_iter().map(Matrix::into_f32).collect::<error::Result<Vec<_>>>()?;
            let data: Vec<_> = features.iter().zip(&targets).map(|(x, y)| (x.slice(), y.slice())).collect();
            Ok(Environments::new(interruptible(py, true, |_| Samples::new(d, &data))?))
        }
    }
}

/// A regression of which second moments are known: those of rows, or of a population.
///
/// Parameters
/// ----------
/// S : array_like, shape (E, d + 1, d + 1)
///     Means of the products of (x, 1) with itself: symmetric, and 1 in the last corner.
/// c : array_like, shape (E, d + 1)
///     Means of (x, 1) y.
/// v : array_like, shape (E,)
///     Means of y squared.
/// n : array_like, shape (E,)
///     Weights of the environments where rows are pooled: numbers of rows, or 1 for all in a population.
/// normal : bool
///     Whether features and target are normal together in each environment. Then moments of higher order, which fishr
///     needs, are known too.
///
/// Returns
/// -------
/// Environments
///
/// Raises
/// ------
/// ValueError
///     When shapes disagree, a value is not finite, a matrix is not symmetric or a weight is not positive.
///
/// Examples
/// --------
/// >>> from milfast._core import environments_from_moments
/// >>> data = environments_from_moments([[[1.0, 0.0], [0.0, 1.0]]], [[2.0, 0.0]], [5.0], [1.0])
/// >>> data.risks([[2.0, 0.0], [0.0, 0.0]])
/// array([[1.],
///        [5.]])
#[pyfunction]
#[pyo3(signature = (S, c, v, n, *, normal=false))]
#[allow(non_snake_case)]
pub(super) fn environments_from_moments<'py>(
    py: Python<'py>,
    S: &Bound<'py, PyAny>,
    c: &Bound<'py, PyAny>,
    v: &Bound<'py, PyAny>,
    n: &Bound<'py, PyAny>,
    normal: bool,
) -> PyResult<Environments> {
    let (cross, environments, width) = Scores::matrix(c, "c")?;
    if width < 2 {
        return Err(Raised::value_error(format_args!(
            "c must have a column a feature and one for the bias; got {width}"
        )));
    }
    let shape: Vec<usize> = py.import("numpy")?.call_method1("shape", (S,))?.extract()?;
    if shape != [environments, width, width] {
        return Err(Raised::value_error(format_args!(
            "S must have shape ({environments}, {width}, {width}) as c has ({environments}, {width}); got {shape:?}"
        )));
    }
    let flat = py.import("numpy")?.call_method1("reshape", (S, -1))?;
    let inputs = Scores::of(&flat, "S")?.into_f64()?;
    let (squares, weights) = (Scores::of(v, "v")?.into_f64()?, Scores::of(n, "n")?.into_f64()?);
    for (name, values) in [("v", &squares), ("n", &weights)] {
        if values.slice().len() != environments {
            return Err(Raised::value_error(format_args!(
                "{name} must have {environments} entries, one an environment; got {}",
                values.slice().len()
            )));
        }
    }
    let cross = cross.into_f64()?;
    let owned = |values: &Flat<'py, f64>| values.slice().to_vec();
    let (inputs, squares, weights) = (owned(&inputs), owned(&squares), owned(&weights));
    if normal {
        return Ok(Environments::new(Squares::of_normal(width - 1, inputs, cross.slice(), squares, weights)?));
    }
    Ok(Environments::new(Moments::new(width - 1, inputs, cross.slice(), squares, weights)?))
}

/// An array of so many axes: its shape and values.
fn of_axes<'py, const N: usize>(
    object: &Bound<'py, PyAny>,
    name: &str,
    axes: &str,
) -> PyResult<([usize; N], Flat<'py, f64>)> {
    let numpy = object.py().import("numpy")?;
    let shape: Vec<usize> = numpy.call_method1("shape", (object,))?.extract()?;
    let shape = shape.try_into().map_err(|shape: Vec<usize>| {
        Raised::value_error(format_args!("{name} must have shape {axes}; got {} axes", shape.len()))
    })?;
    let flat = numpy.call_method1("reshape", (object, -1))?;
    Ok((shape, Scores::of(&flat, name)?.into_f64()?))
}

/// The population of a logistic problem whose features are mixtures of normal distributions.
///
/// Risks, errors and gradients are those of infinitely many rows.
///
/// Parameters
/// ----------
/// probabilities : array_like, shape (E, C)
///     Of the components of each environment; they sum up to 1.
/// labels : array_like, shape (E, C)
///     Class of each component, 0 or 1.
/// means : array_like, shape (E, C, d)
/// covariance : array_like, shape (d, d)
///     That of all components of all environments.
///
/// Returns
/// -------
/// Environments
///
/// Raises
/// ------
/// ValueError
///     When shapes disagree, a value is not finite or out of range, or the covariance is none.
/// TypeError
///     When an argument cannot be read as numbers.
///
/// Examples
/// --------
/// >>> from milfast._core import environments_from_mixtures
/// >>> classes = environments_from_mixtures([[0.5, 0.5]], [[0, 1]], [[[-1.0], [1.0]]], [[1.0]])
/// >>> classes.errors([[1.0, 0.0]]).round(4)  # Phi(-1)
/// array([[0.1587]])
#[pyfunction]
pub(super) fn environments_from_mixtures<'py>(
    py: Python<'py>,
    probabilities: &Bound<'py, PyAny>,
    labels: &Bound<'py, PyAny>,
    means: &Bound<'py, PyAny>,
    covariance: &Bound<'py, PyAny>,
) -> PyResult<Environments> {
    let ([n, components], probabilities) = of_axes(probabilities, "probabilities", "(E, C)")?;
    let (shape, labels) = of_axes(labels, "labels", "(E, C)")?;
    if shape != [n, components] {
        return Err(Raised::value_error(format_args!(
            "labels must have the shape of probabilities, ({n}, {components}); got {shape:?}"
        )));
    }
    let (shape, means) = of_axes::<3>(means, "means", "(E, C, d)")?;
    let d = shape[2];
    if shape[..2] != [n, components] || d == 0 {
        return Err(Raised::value_error(format_args!(
            "means must have shape ({n}, {components}, d), a mean for each of probabilities; got {shape:?}"
        )));
    }
    let (shape, covariance) = of_axes(covariance, "covariance", "(d, d)")?;
    if shape != [d, d] {
        return Err(Raised::value_error(format_args!(
            "covariance must have shape ({d}, {d}), as means have {d} features; got {shape:?}"
        )));
    }
    let slices = (probabilities.slice(), labels.slice(), means.slice(), covariance.slice());
    let core = interruptible(py, false, |_| Mixtures::new(slices.0, slices.1, slices.2, slices.3, n, d))?;
    Ok(Environments::new(core))
}
