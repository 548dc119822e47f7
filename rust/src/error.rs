//! Everything that can go wrong in a kernel, in one type.

use std::fmt;

/// Result of a kernel.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, with the argument, the position and the way out in its message.
///
/// It is a single pointer, and made by functions that are not inlined: results stay small, and so does what passes them
/// on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Kind>);

/// The kinds of error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Two arguments that go together differ in length.
    Length {
        /// Name of the argument that sets the length.
        first: &'static str,
        /// Its length.
        expected: usize,
        /// Name of the argument that differs.
        second: &'static str,
        /// The length it has.
        found: usize,
    },
    /// A value is NaN, or infinite where only finite values make sense.
    NotFinite {
        /// Name of the argument.
        argument: String,
        /// Position, as it is written in Python: `[3]` or `[3, 5]`.
        position: String,
        /// The value.
        value: String,
    },
    /// Labels are not two-valued.
    Labels(String),
    /// A number lies outside its range; the text is the whole message.
    Range(String),
    /// There is not enough memory; the text is the whole message.
    Memory(String),
    /// Ctrl-C: the caller asked to stop.
    Interrupted,
}

impl Error {
    /// [`Kind::Length`].
    #[cold]
    #[must_use]
    pub fn length(first: &'static str, expected: usize, second: &'static str, found: usize) -> Self {
        Kind::Length { first, expected, second, found }.into()
    }

    /// [`Kind::NotFinite`].
    #[cold]
    #[must_use]
    pub fn not_finite(argument: &str, position: fmt::Arguments<'_>, value: f64) -> Self {
        Kind::NotFinite { argument: argument.to_string(), position: position.to_string(), value: value.to_string() }
            .into()
    }

    /// [`Kind::Labels`].
    #[cold]
    #[must_use]
    pub fn labels(message: fmt::Arguments<'_>) -> Self {
        Kind::Labels(message.to_string()).into()
    }

    /// [`Kind::Range`].
    #[cold]
    #[must_use]
    pub fn range(message: fmt::Arguments<'_>) -> Self {
        Kind::Range(message.to_string()).into()
    }

    /// [`Kind::Memory`].
    #[cold]
    #[must_use]
    pub fn memory(message: fmt::Arguments<'_>) -> Self {
        Kind::Memory(message.to_string()).into()
    }

    /// [`Kind::Interrupted`].
    #[cold]
    #[must_use]
    pub fn interrupted() -> Self {
        Kind::Interrupted.into()
    }

    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.0
    }

    /// What kind of error it was.
    #[must_use]
    pub fn into_kind(self) -> Kind {
        *self.0
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Self {
        Self(Box::new(kind))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            Kind::Length { first, expected, second, found } => {
                write!(f, "{first} and {second} must go together: {first} has {expected} entries, {second} has {found}")
            }
            Kind::NotFinite { argument, position, value } => {
                write!(f, "{argument}{position} is {value}: drop or impute it first")
            }
            Kind::Labels(message) | Kind::Range(message) | Kind::Memory(message) => f.write_str(message),
            Kind::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}
