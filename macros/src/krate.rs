//! The path of the runtime crate in generated code.

use proc_macro2::{Ident, Punct, Spacing, Span, TokenStream};
use quote::{ToTokens, TokenStreamExt, quote_spanned};
use syn::{Type, spanned::Spanned};

/// The path of the runtime crate, or of a module of it. Its tokens are pushed one by one: every token stream in a `quote!`
/// is several calls of the compiler, and there are hundreds of paths in a function.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    modules: &'static [&'static str],
    span: Span,
}

impl ToTokens for Path {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        for module in self.modules {
            colons(tokens, self.span);
            tokens.append(Ident::new(module, self.span));
        }
    }
}

/// Appends `::`.
pub(crate) fn colons(tokens: &mut TokenStream, span: Span) {
    for spacing in [Spacing::Joint, Spacing::Alone] {
        let mut colon = Punct::new(':', spacing);
        colon.set_span(span);
        tokens.append(colon);
    }
}

/// Returns the path of the runtime crate. This is the only place that knows its name.
pub(crate) fn krate() -> Path {
    Path { modules: &["graphable"], span: Span::call_site() }
}

/// Returns the path of the module that generated code uses.
pub(crate) fn private() -> Path {
    private_at(Span::call_site())
}

/// Returns a span located at `span` for generated code: errors about it are shown there.
pub(crate) fn generated_at(span: Span) -> Span {
    Span::mixed_site().located_at(span)
}

/// Like [`private`], for code that is shown at `span`.
pub(crate) fn private_at(span: Span) -> Path {
    Path { modules: &["graphable", "__private"], span }
}

/// Returns the error type of a result type, through the trait of errors that can hold ours. Problems are
/// always reported at the position of the result's type, so rustc reports them only once.
pub(crate) fn user_error(ret: &Type) -> TokenStream {
    let shown = generated_at(ret.span());
    let p = private_at(shown);
    quote_spanned!(shown=> <<#ret as #p::TryError>::Error as #p::UserError>)
}
