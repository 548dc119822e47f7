//! Arguments from Python: borrowed without a copy where they already have the right form, converted once where not.

use numpy::{
    Element, PyArray1, PyArray2, PyArrayDyn, PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods, prelude::*,
};
use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyException, PyMemoryError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyList, PyString};

use super::raised::{PyResult, Raised};
use super::running::{VERY_LONG, interruptible};
use crate::auc;
use crate::error::{Error, Result};
use crate::labels;
use crate::memory;
use crate::scores;

/// Values in row-major order.
pub(crate) enum Flat<'py, T: Element> {
    /// The array of the caller, or a copy of it where it is strided or not aligned.
    Borrowed(PyReadonlyArrayDyn<'py, T>),
    /// Values of another dtype, converted.
    Owned(Vec<T>),
}

impl<'py, T: Element + Copy> Flat<'py, T> {
    fn of(array: &Bound<'py, PyArrayDyn<T>>) -> PyResult<Self> {
        let read = |array: &Bound<'py, PyArrayDyn<T>>| {
            array.try_readonly().map_err(|error| Raised::value_error(format_args!("{error}")))
        };
        let view = read(array)?;
        // There is no slice of an array that is not aligned (a field of a packed record, say).
        if array.is_c_contiguous() && view.as_slice().is_ok() {
            return Ok(Self::Borrowed(view));
        }
        let copy = array.call_method1("copy", ("C",))?.cast_into::<PyArrayDyn<T>>()?;
        Ok(Self::Borrowed(read(&copy)?))
    }

    /// The values.
    pub(crate) fn slice(&self) -> &[T] {
        match self {
            Self::Borrowed(array) => array.as_slice().unwrap_or_default(), // `of` saw that there is a slice
            Self::Owned(values) => values,
        }
    }

    /// The values, converted.
    pub(crate) fn map<U: Element>(&self, convert: impl Fn(T) -> U) -> Result<Flat<'py, U>> {
        Ok(Flat::Owned(memory::collect(self.slice().iter().map(|&v| convert(v)), CONVERTED)?))
    }
}

/// The array itself where it needs no look by numpy: one of exactly this dtype and no subclass.
fn plain<'a, 'py, T: Element>(object: &'a Bound<'py, PyAny>) -> Option<&'a Bound<'py, PyArrayDyn<T>>> {
    if object.get_type().is(PyUntypedArray::type_object(object.py())) { object.cast().ok() } else { None }
}

const CONVERTED: &str = "an argument converted to another dtype";

/// Whether an exception tells something about an argument; Ctrl-C, an exit and a lack of memory do not.
fn is_about_argument(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyException>(py) && !error.is_instance_of::<PyMemoryError>(py)
}

/// The value, or nothing where the object does not offer it.
fn attempt<T>(py: Python<'_>, result: pyo3::PyResult<T>) -> PyResult<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_about_argument(py, &error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether a value stands for "not known": None, pandas' NA or NaN.
fn is_missing(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if value.is_none() || value.get_type().name()? == "NAType" {
        return Ok(true);
    }
    Ok(attempt(value.py(), value.extract::<f64>())?.is_some_and(f64::is_nan))
}

fn missing(name: &str, position: usize) -> Raised {
    Raised::value_error(format_args!("{name}[{position}] is missing: drop or impute it first"))
}

/// The object itself, or what `detach` makes of a tensor; tensors off the CPU and masked values are refused.
fn on_host<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    if let Some(device) = attempt(py, object.getattr("device"))?
        && let Some(kind) = attempt(py, device.getattr("type"))?
        && kind.extract::<String>().is_ok_and(|kind| kind != "cpu")
    {
        return Err(Raised::type_error(format_args!("{name} lives on {device}: call .cpu() first")));
    }
    if object.is_instance_of::<PyUntypedArray>()
        && py.import("numpy.ma")?.call_method1("is_masked", (object,))?.is_truthy()?
    {
        return Err(Raised::value_error(format_args!("{name} has masked values: drop or impute them first")));
    }
    if object.hasattr("detach")? { Ok(object.call_method0("detach")?) } else { Ok(object.clone()) }
}

/// What numpy makes of `object`; dtypes without an order are refused.
fn numeric<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = object.py();
    let source = on_host(object, name)?;
    let asarray = py.import("numpy")?.getattr("asarray")?;
    let mut array = asarray.call1((&source,)).map_err(|error| {
        if !is_about_argument(py, &error) {
            return error.into();
        }
        Raised::type_error(format_args!(
            "{name} cannot be read as a numeric array ({error}): convert it to numpy first"
        ))
    })?;
    if kind_of(&array)? == 'O' {
        // Nullable pandas columns arrive as objects; their Python values have a plain dtype if none is missing.
        let values = array.call_method0("tolist")?;
        if let Some(plain) = attempt(py, asarray.call1((&values,)))? {
            array = plain;
        }
        if kind_of(&array)? == 'O'
            && let Ok(values) = values.cast::<PyList>()
        {
            for (i, value) in values.iter().enumerate() {
                if is_missing(&value)? {
                    return Err(missing(name, i));
                }
            }
        }
    }
    let (kind, size) = (kind_of(&array)?, array.getattr("dtype")?.getattr("itemsize")?.extract::<usize>()?);
    let wanted = match (kind, size) {
        ('b', _) => "bool",
        ('i', _) => "int64",
        ('u', _) => "uint64",
        ('f', 2 | 4) => "float32",
        ('f', 8) => "float64",
        ('f', _) => {
            return Err(Raised::type_error(format_args!(
                "{name} has dtype {}, which is wider than float64: convert it with .astype(float)",
                array.getattr("dtype")?
            )));
        }
        _ => {
            return Err(Raised::type_error(format_args!(
                "{name} must hold real numbers; got {} of dtype {}",
                object.get_type().name()?,
                array.getattr("dtype")?
            )));
        }
    };
    let converted = array.call_method("astype", (wanted,), Some(&[("copy", false)].into_py_dict(py)?))?;
    Ok(converted.cast_into::<PyUntypedArray>()?)
}

fn kind_of(array: &Bound<'_, PyAny>) -> PyResult<char> {
    Ok(array.getattr("dtype")?.getattr("kind")?.extract()?)
}

fn one_dimensional(array: &Bound<'_, PyUntypedArray>, name: &str) -> PyResult<()> {
    if array.ndim() == 1 {
        return Ok(());
    }
    let advice = match array.shape() {
        [_, 1] => ": pass its column, x[:, 0]",
        [_, _] => ": pass one column, such as x[:, 1]",
        _ => "",
    };
    Err(Raised::value_error(format_args!("{name} must be one-dimensional; got shape {:?}{advice}", array.shape())))
}

/// Scores of any ordered dtype.
pub(crate) enum Scores<'py> {
    F64(Flat<'py, f64>),
    F32(Flat<'py, f32>),
    I64(Flat<'py, i64>),
    U64(Flat<'py, u64>),
}

/// Run `$body` with `$slice` bound to the scores as a slice of their own type.
macro_rules! with_scores {
    ($scores:expr, |$slice:ident| $body:expr) => {
        match &$scores {
            Scores::F64(flat) => {
                let $slice = flat.slice();
                $body
            }
            Scores::F32(flat) => {
                let $slice = flat.slice();
                $body
            }
            Scores::I64(flat) => {
                let $slice = flat.slice();
                $body
            }
            Scores::U64(flat) => {
                let $slice = flat.slice();
                $body
            }
        }
    };
}
pub(crate) use with_scores;

impl<'py> Scores<'py> {
    /// One-dimensional scores.
    pub(crate) fn of(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Self> {
        if let Some(array) = plain::<f64>(object)
            && array.ndim() == 1
        {
            return Ok(Self::F64(Flat::of(array)?));
        }
        if let Some(array) = plain::<f32>(object)
            && array.ndim() == 1
        {
            return Ok(Self::F32(Flat::of(array)?));
        }
        let array = numeric(object, name)?;
        one_dimensional(&array, name)?;
        Self::flat(&array)
    }

    /// Two-dimensional scores and their shape.
    pub(crate) fn matrix(object: &Bound<'py, PyAny>, name: &str) -> PyResult<(Self, usize, usize)> {
        let array = numeric(object, name)?;
        let &[rows, columns] = array.shape() else {
            return Err(Raised::value_error(format_args!(
                "{name} must have shape (rows, scores of a row); got shape {:?}",
                array.shape()
            )));
        };
        Ok((Self::flat(&array)?, rows, columns))
    }

    /// Scores of one model or, row by row, of several, and their shape.
    pub(crate) fn one_or_more(object: &Bound<'py, PyAny>, name: &str) -> PyResult<(Self, Vec<usize>)> {
        let array = numeric(object, name)?;
        if !(1..=2).contains(&array.ndim()) {
            return Err(Raised::value_error(format_args!(
                "{name} must have shape (n,) or (models, n); got shape {:?}",
                array.shape()
            )));
        }
        Ok((Self::flat(&array)?, array.shape().to_vec()))
    }

    fn flat(array: &Bound<'py, PyUntypedArray>) -> PyResult<Self> {
        if let Ok(array) = array.cast::<PyArrayDyn<f64>>() {
            return Ok(Self::F64(Flat::of(array)?));
        }
        if let Ok(array) = array.cast::<PyArrayDyn<f32>>() {
            return Ok(Self::F32(Flat::of(array)?));
        }
        if let Ok(array) = array.cast::<PyArrayDyn<i64>>() {
            return Ok(Self::I64(Flat::of(array)?));
        }
        if let Ok(array) = array.cast::<PyArrayDyn<u64>>() {
            return Ok(Self::U64(Flat::of(array)?));
        }
        let array = array.cast::<PyArrayDyn<bool>>()?;
        Ok(Self::U64(Flat::of(array)?.map(u64::from)?))
    }

    /// The values in float64, rounded where integers are too long for it.
    pub(crate) fn into_f64(self) -> Result<Flat<'py, f64>> {
        Ok(match self {
            Self::F64(flat) => flat,
            Self::F32(flat) => flat.map(f64::from)?,
            Self::I64(flat) => flat.map(|v| v as f64)?,
            Self::U64(flat) => flat.map(|v| v as f64)?,
        })
    }

    /// Number of scores.
    pub(crate) fn len(&self) -> usize {
        with_scores!(self, |scores| scores.len())
    }

    /// The scores; integers are brought into float64, which keeps their order.
    pub(crate) fn ranked(self, py: Python<'py>) -> PyResult<Ranked<'py>> {
        let integers = match self {
            Self::F64(flat) => return Ok(Ranked::F64(flat)),
            Self::F32(flat) => return Ok(Ranked::F32(flat)),
            Self::I64(flat) => flat,
            Self::U64(flat) => {
                // those that are too large for signed ones are all moved down
                let large = flat.slice().iter().fold(0, |bits, v| bits | v) & (1 << 63);
                flat.map(|v| (v ^ large) as i64)?
            }
        };
        let integers = integers.slice();
        let ordered = interruptible(py, integers.len() > VERY_LONG, |stop| scores::ordered(integers, stop))?;
        Ok(Ranked::F64(Flat::Owned(ordered)))
    }

    /// The error, with a hint where labels were handed over as scores.
    fn hint_swapped(&self, error: Error) -> Error {
        with_scores!(self, |scores| auc::hint_swapped(error, scores))
    }
}

/// Scores of which the order counts and not the value: the forms that kernels are compiled for.
pub(crate) enum Ranked<'py> {
    F64(Flat<'py, f64>),
    F32(Flat<'py, f32>),
}

/// As `with_scores`.
macro_rules! with_ranked {
    ($scores:expr, |$slice:ident| $body:expr) => {
        match &$scores {
            Ranked::F64(flat) => {
                let $slice = flat.slice();
                $body
            }
            Ranked::F32(flat) => {
                let $slice = flat.slice();
                $body
            }
        }
    };
}
pub(crate) use with_ranked;

/// Labels, in one of the two forms that kernels take.
pub(crate) enum Labels<'py> {
    Bool(Flat<'py, bool>),
    I64(Flat<'py, i64>),
}

/// Run `$body` with `$slice` bound to the labels as a slice of their own type.
macro_rules! with_labels {
    ($labels:expr, |$slice:ident| $body:expr) => {
        match &$labels {
            Labels::Bool(flat) => {
                let $slice = flat.slice();
                $body
            }
            Labels::I64(flat) => {
                let $slice = flat.slice();
                $body
            }
        }
    };
}
pub(crate) use with_labels;

impl<'py> Labels<'py> {
    /// Labels of any number of dimensions, row-major, and their shape.
    pub(crate) fn of(
        object: &Bound<'py, PyAny>,
        pos_label: Option<&Bound<'py, PyAny>>,
        scores: Option<&Scores<'py>>,
    ) -> PyResult<(Self, Vec<usize>)> {
        if let Some(pos_label) = pos_label {
            return Self::equal_to(object, pos_label);
        }
        if let Some(array) = plain::<i64>(object) {
            return Ok((Self::I64(Flat::of(array)?), array.shape().to_vec()));
        }
        if let Some(array) = plain::<bool>(object) {
            return Ok((Self::Bool(Flat::of(array)?), array.shape().to_vec()));
        }
        if let Some(strings) = strings(object)? {
            return Err(Raised::value_error(format_args!(
                "labels hold strings ({strings}): say which one is positive with pos_label"
            )));
        }
        let array = numeric(object, "labels")?;
        let shape = array.shape().to_vec();
        if let Ok(array) = array.cast::<PyArrayDyn<i64>>() {
            return Ok((Self::I64(Flat::of(array)?), shape));
        }
        if let Ok(array) = array.cast::<PyArrayDyn<bool>>() {
            return Ok((Self::Bool(Flat::of(array)?), shape));
        }
        let decided = match Scores::flat(&array)? {
            Scores::U64(values) => labels::binary(values.slice()),
            Scores::F32(values) => labels::binary(values.slice()),
            Scores::F64(values) => labels::binary(values.slice()),
            Scores::I64(values) => labels::binary(values.slice()),
        };
        let decided = decided.map_err(|error| match scores {
            Some(scores) => scores.hint_swapped(error),
            None => error,
        })?;
        Ok((Self::Bool(Flat::Owned(decided)), shape))
    }

    /// Whether each label is positive.
    pub(crate) fn decided(self, scores: &Scores<'py>) -> Result<Flat<'py, bool>> {
        match self {
            Self::Bool(flat) => Ok(flat),
            Self::I64(flat) => {
                labels::binary(flat.slice()).map(Flat::Owned).map_err(|error| scores.hint_swapped(error))
            }
        }
    }

    /// One-dimensional labels that go with scores.
    pub(crate) fn beside(
        scores: &Scores<'py>,
        object: &Bound<'py, PyAny>,
        pos_label: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let (labels, shape) = Self::of(object, pos_label, Some(scores))?;
        if shape.len() == 1 {
            Ok(labels)
        } else {
            Err(Raised::value_error(format_args!("labels must be one-dimensional; got shape {shape:?}")))
        }
    }

    /// True where a label equals `pos_label`; the other labels must all be the same.
    fn equal_to(object: &Bound<'py, PyAny>, pos_label: &Bound<'py, PyAny>) -> PyResult<(Self, Vec<usize>)> {
        if pos_label.hasattr("__len__")? && !is_text(pos_label) {
            return Err(Raised::type_error(format_args!("pos_label must be one label; got {}", pos_label.repr()?)));
        }
        let array = object.py().import("numpy")?.call_method1("asarray", (on_host(object, "labels")?,))?;
        let shape: Vec<usize> = array.getattr("shape")?.extract()?;
        let equal = array.call_method1("__eq__", (pos_label,))?;
        let Ok(equal) = equal.cast::<PyArrayDyn<bool>>() else {
            return Err(Raised::type_error(format_args!(
                "pos_label {} cannot be compared with labels of dtype {}",
                pos_label.repr()?,
                array.getattr("dtype")?
            )));
        };
        let positive = Flat::of(equal)?;
        let mut first: Option<Bound<'py, PyAny>> = None;
        let values = array.call_method0("ravel")?.call_method0("tolist")?;
        for (i, value) in values.try_iter()?.enumerate() {
            let value = value?;
            if positive.slice().get(i) == Some(&true) {
                continue;
            }
            if is_missing(&value)? {
                return Err(missing("labels", i));
            }
            match &first {
                None => first = Some(value),
                Some(first) if value.eq(first)? => {}
                Some(first) => {
                    return Err(Raised::value_error(format_args!(
                        "labels beside pos_label={} must all be the same, but hold {} and, at position {i}, {}",
                        pos_label.repr()?,
                        first.repr()?,
                        value.repr()?
                    )));
                }
            }
        }
        Ok((Self::Bool(positive), shape))
    }
}

fn is_text(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>()
}

/// Up to two different strings among the labels, quoted.
fn strings(object: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let array = object.py().import("numpy")?.call_method1("asarray", (object,));
    let Some(array) = attempt(object.py(), array)? else { return Ok(None) };
    if !matches!(kind_of(&array)?, 'U' | 'S' | 'T' | 'O') {
        return Ok(None);
    }
    let mut seen: Vec<String> = Vec::new();
    for value in array.call_method0("ravel")?.call_method0("tolist")?.try_iter()? {
        let value = value?;
        if !is_text(&value) {
            return Ok(None);
        }
        let text = value.repr()?.to_string();
        if !seen.contains(&text) {
            seen.push(text);
        }
        if seen.len() == 2 {
            break;
        }
    }
    Ok((!seen.is_empty()).then(|| seen.join(", ")))
}

/// A matrix of float32 or float64.
pub(crate) enum Matrix<'py> {
    F64(Flat<'py, f64>),
    F32(Flat<'py, f32>),
}

impl<'py> Matrix<'py> {
    /// A matrix and its shape; whatever is not float32 becomes float64.
    pub(crate) fn of(object: &Bound<'py, PyAny>, name: &str) -> PyResult<(Self, [usize; 2])> {
        let (values, rows, columns) = Scores::matrix(object, name)?;
        if columns == 0 {
            return Err(Raised::value_error(format_args!("{name} must have at least one column")));
        }
        let shape = [rows, columns];
        let values = match values {
            Scores::F32(flat) => Self::F32(flat),
            other => Self::F64(other.into_f64()?),
        };
        Ok((values, shape))
    }

    /// The same values in float64.
    pub(crate) fn into_f64(self) -> Result<Flat<'py, f64>> {
        match self {
            Self::F64(flat) => Ok(flat),
            Self::F32(flat) => flat.map(f64::from),
        }
    }

    /// The same values in float32, rounded where they have more digits.
    pub(crate) fn into_f32(self) -> Result<Flat<'py, f32>> {
        match self {
            Self::F64(flat) => flat.map(|value| value as f32),
            Self::F32(flat) => Ok(flat),
        }
    }
}

/// Zeros and ones, in the form in which they came.
pub(crate) enum Flags<'py> {
    /// Booleans or integers of one byte, and the letter of their kind.
    Bytes(Flat<'py, u8>, char),
    Other(Scores<'py>),
}

impl<'py> Flags<'py> {
    /// A matrix and its shape.
    pub(crate) fn matrix(object: &Bound<'py, PyAny>, name: &str, of: &str) -> PyResult<(Self, [usize; 2])> {
        let two_dimensional = |shape: &[usize]| {
            <[usize; 2]>::try_from(shape)
                .map_err(|_| Raised::value_error(format_args!("{name} must have shape {of}; got shape {shape:?}")))
        };
        let source = on_host(object, name)?;
        let array = attempt(object.py(), object.py().import("numpy")?.call_method1("asarray", (&source,)))?;
        if let Some(array) = array
            && let dtype = array.getattr("dtype")?
            && let kind = kind_of(&array)?
            && matches!(kind, 'b' | 'i' | 'u')
            && dtype.getattr("itemsize")?.extract::<usize>()? == 1
        {
            let bytes =
                array.call_method1("view", (numpy::dtype::<u8>(object.py()),))?.cast_into::<PyArrayDyn<u8>>()?;
            return Ok((Self::Bytes(Flat::of(&bytes)?, kind), two_dimensional(bytes.shape())?));
        }
        let array = numeric(object, name)?;
        let shape = two_dimensional(array.shape())?;
        Ok((Self::Other(Scores::flat(&array)?), shape))
    }
}

/// Offsets of bags.
pub(crate) fn offset_array<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Flat<'py, i64>> {
    match Scores::of(object, name)? {
        Scores::I64(flat) => Ok(flat),
        _ => Err(Raised::type_error(format_args!("{name} must be int64"))),
    }
}

/// Counts, one a distinct score.
pub(crate) fn counts<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Flat<'py, u64>> {
    match Scores::of(object, name)? {
        Scores::U64(flat) => Ok(flat),
        Scores::I64(flat) => match flat.slice().iter().position(|&c| c < 0) {
            None => Ok(flat.map(|c| c as u64)?),
            Some(i) => {
                let c = flat.slice()[i];
                Err(Raised::value_error(format_args!("{name}[{i}] is {c}: counts must not be negative")))
            }
        },
        Scores::F64(flat) if flat.slice().is_empty() => Ok(Flat::Owned(Vec::new())),
        Scores::F64(_) | Scores::F32(_) => Err(Raised::type_error(format_args!("{name} must be integers"))),
    }
}

/// A new matrix, not yet filled. numpy raises MemoryError where there is no room.
pub(crate) fn new_matrix<T: Element>(py: Python<'_>, rows: usize, columns: usize) -> PyResult<Bound<'_, PyArray2<T>>> {
    let array = py.import("numpy")?.call_method1("empty", ((rows, columns), numpy::dtype::<T>(py)))?;
    Ok(array.cast_into::<PyArray2<T>>()?)
}

/// A new array of one dimension, as `new_matrix`.
pub(crate) fn new_vector<T: Element>(py: Python<'_>, n: usize) -> PyResult<Bound<'_, PyArray1<T>>> {
    let array = py.import("numpy")?.call_method1("empty", (n, numpy::dtype::<T>(py)))?;
    Ok(array.cast_into::<PyArray1<T>>()?)
}
