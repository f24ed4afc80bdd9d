//! The questions whether values that end with their segment are guards, which rustc answers by their types.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{
    Block, Expr, Pat, Stmt,
    visit_mut::{self, VisitMut},
};

use crate::{
    krate,
    model::{Asked, Guard, GuardPart, Inside},
};

/// Asks about the values that have a name inside of a statement.
pub(super) fn ask_inside(lent: &[Guard], stmt: &mut Stmt) {
    if !lent.is_empty() {
        AskInside(lent).visit_stmt_mut(stmt);
    }
}

struct AskInside<'s>(&'s [Guard]);

impl VisitMut for AskInside<'_> {
    fn visit_block_mut(&mut self, block: &mut Block) {
        if let [Stmt::Local(local), _] = &*block.stmts
            && let Pat::Ident(name) = &local.pat
            && let Some(guard) = self.0.iter().find(|guard| guard.ident == name.ident)
        {
            block.stmts.insert(1, Stmt::Expr(Expr::Verbatim(question(guard)), Some(Default::default())));
        }
        visit_mut::visit_block_mut(self, block);
    }
}

/// Returns the check whether a value that ends here is a guard.
pub(super) fn question(Guard { ident, shown, asked, inside }: &Guard) -> TokenStream {
    let shown = krate::generated_at(*shown);
    let p = krate::private_at(shown);
    let itself = || quote_spanned!(shown=> #p::EndsWithSegment::ends((&&&&#p::EndsItself(&#ident)).what()););
    let asked = match asked {
        Asked::Whole => quote_spanned!(shown=> #p::EndsWithSegment::ends((&&&&#p::Ends(&#ident)).what());),
        Asked::Referent => {
            quote_spanned!(shown=> #p::EndsWithSegment::ends((&&&&#p::Ends(&*#ident)).what());)
        }
        Asked::Itself => itself(),
        Asked::Parts { pat, parts, itself: also } => {
            let itself = also.then(itself);
            let parts = (!parts.is_empty()).then(|| {
                quote_spanned! {shown=>
                    #[allow(irrefutable_let_patterns)]
                    if let #pat = &#ident {
                        #(#p::EndsWithSegment::ends((&&&&&#p::EndsIn(&#ident, #parts)).what());)*
                    }
                }
            });
            quote!(#itself #parts)
        }
    };
    let inside = inside.iter().map(|Inside { pat, parts }| {
        let asked = parts.iter().map(|GuardPart { ident, references }| {
            let deref = (0..*references).map(|_| quote!(*));
            quote_spanned!(shown=> #p::EndsWithSegment::ends((&&&&#p::EndsItself(&*#(#deref)* #ident)).what());)
        });
        quote_spanned! {shown=>
            #[allow(irrefutable_let_patterns, deprecated)]
            if let #pat = &#ident {
                #(#asked)*
            }
        }
    });
    quote_spanned! {shown=>
        {
            #[allow(unused_imports)]
            use #p::{EndsAsContainer as _, EndsAsGuard as _, EndsAsLiveIn as _, EndsAsOther as _};
            #asked
            #(#inside)*
        }
    }
}
