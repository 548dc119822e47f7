//! What functions of the module raise.

use std::fmt;

use numpy::AsSliceError;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyTypeError, PyValueError};
use pyo3::{CastError, CastIntoError, PyErr};

use crate::error::{Error, Kind};

/// A Python exception in a single pointer: what may fail passes it on, and pyo3's own takes seven words to move.
pub(crate) struct Raised(Box<PyErr>);

/// Result of what may raise.
pub(crate) type PyResult<T> = Result<T, Raised>;

impl Raised {
    /// `ValueError`.
    #[cold]
    pub(crate) fn value_error(message: fmt::Arguments<'_>) -> Self {
        PyValueError::new_err(message.to_string()).into()
    }

    /// `TypeError`.
    #[cold]
    pub(crate) fn type_error(message: fmt::Arguments<'_>) -> Self {
        PyTypeError::new_err(message.to_string()).into()
    }
}

impl From<PyErr> for Raised {
    #[cold]
    fn from(error: PyErr) -> Self {
        Self(Box::new(error))
    }
}

impl From<Raised> for PyErr {
    #[cold]
    fn from(raised: Raised) -> Self {
        *raised.0
    }
}

macro_rules! raised {
    ($($error:ty),*) => {
        $(impl From<$error> for Raised {
            #[cold]
            fn from(error: $error) -> Self {
                PyErr::from(error).into()
            }
        })*
    };
}
raised!(CastError<'_, '_>, CastIntoError<'_>, AsSliceError);

/// The one place where errors of kernels become Python exceptions.
impl From<Error> for Raised {
    #[cold]
    fn from(error: Error) -> Self {
        match error.kind() {
            Kind::Interrupted => PyKeyboardInterrupt::new_err(()),
            Kind::Memory(_) => PyMemoryError::new_err(error.to_string()),
            _ => PyValueError::new_err(error.to_string()),
        }
        .into()
    }
}
