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
    /// The type of its value, if the user states it.
    pub(crate) ty: Option<Type>,
    /// `#[allow(…)]` and similar attributes, which are allowed before a statement but not before a value.
    pub(crate) levels: Vec<Attribute>,
    pub(crate) value: Expr,
}

/// `#[piecewise] …`
pub(crate) struct PiecewiseCall {
    pub(crate) call: Expr,
    pub(crate) carrier: Carrier,
}

/// The way in which a call passes on the host code of its caller.
pub(crate) enum Carrier {
    /// With its first argument.
    FirstArgument,
    /// As a separate argument, because there is no other.
    OwnArgument,
    /// As the last argument of the method's twin for calls by a path.
    Twin,
}
