//! The plan of a function, as the constant `PLAN` has it.

use proc_macro2::TokenStream;
use quote::quote;

use super::{boundary::support, host_code::site};
use crate::{krate::private, model::PlanItem, parse::attributes::Edge};

/// A `PlanItem` expression; `name` is the function's.
pub(super) fn item(name: &str, item: &PlanItem) -> TokenStream {
    let p = private();
    match item {
        PlanItem::Segment { location, live_ins, live_outs } => {
            let site = site(name, location);
            quote!(#p::PlanItem::Segment { site: #site, live_ins: &[#(#live_ins),*], live_outs: &[#(#live_outs),*] })
        }
        PlanItem::Boundary { location, call, support: level, moved } => {
            let (site, support) = (site(name, location), support(level.as_ref()));
            let moved = match moved {
                Some(Edge::Early) => quote!(::core::option::Option::Some(#p::BoundaryMove::Early)),
                Some(Edge::Late) => quote!(::core::option::Option::Some(#p::BoundaryMove::Late)),
                None => quote!(::core::option::Option::None),
            };
            quote!(#p::PlanItem::Boundary { site: #site, call: #call, support: #support, moved: #moved })
        }
        PlanItem::Piecewise { location, call } => {
            let site = site(name, location);
            quote!(#p::PlanItem::Piecewise { site: #site, call: #call })
        }
    }
}
