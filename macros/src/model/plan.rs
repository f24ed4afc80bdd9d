//! The plan of a function: its segments and boundaries, in order.

use proc_macro2::Span;
use syn::Ident;

use crate::parse::attributes::Edge;

/// The position of a segment or a boundary.
#[derive(Clone, Copy)]
pub(crate) struct Location {
    /// Its place in the plan.
    pub(crate) index: usize,
    pub(crate) first: Span,
    pub(crate) last: Span,
}

/// One entry of the plan.
pub(crate) enum PlanItem {
    Segment {
        location: Location,
        live_ins: Vec<String>,
        live_outs: Vec<String>,
    },
    Boundary {
        location: Location,
        call: String,
        /// `None` for `Never`.
        support: Option<Ident>,
        moved: Option<Edge>,
    },
    Piecewise {
        location: Location,
        call: String,
    },
}

impl PlanItem {
    pub(crate) fn location(&self) -> &Location {
        match self {
            Self::Segment { location, .. }
            | Self::Boundary { location, .. }
            | Self::Piecewise { location, .. } => location,
        }
    }
}
