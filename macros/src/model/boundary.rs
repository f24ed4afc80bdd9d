//! Regions and piecewise calls.

use syn::{Attribute, Expr, Ident, Type};

use super::Location;

/// `#[eager] …`
pub(crate) struct Region {
    pub(crate) location: Location,
    /// `support = …`; `None` for `Never`.
    pub(crate) support: Option<Ident>,
    /// `cx` of `#[eager(cx)]`.
    pub(crate) capability: Option<Ident>,
    /// The type of its value, where the user says it.
    pub(crate) ty: Option<Type>,
    /// `#[allow(…)]` and its like, which may stand before a statement and not before a value.
    pub(crate) levels: Vec<Attribute>,
    pub(crate) value: Expr,
}

/// `#[piecewise] …`
pub(crate) struct PiecewiseCall {
    pub(crate) call: Expr,
    pub(crate) carrier: Carrier,
}

/// How a call hands the host code of its caller on.
pub(crate) enum Carrier {
    /// With its first argument.
    FirstArgument,
    /// As an argument of its own: there is no other.
    OwnArgument,
    /// As the last argument of the method's twin for calls by a path.
    Twin,
}
