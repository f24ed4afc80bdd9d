//! The variables that arms of control flow of the device change: their copies, how they leave the arms, and what becomes of them
//! afterwards.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::Member;

use crate::{
    krate,
    model::{Changed, End, How, ReadByArms},
};

/// A name of generated code.
pub(super) fn private(name: &str) -> Ident {
    Ident::new(&format!("__{name}"), Span::mixed_site())
}

/// The place where the closure of arms puts what leaves them.
pub(super) fn given() -> Ident {
    private("given")
}

/// One name for each value that leaves.
pub(super) fn fresh<'c>(changed: impl IntoIterator<Item = &'c Changed>) -> Vec<Ident> {
    let count: usize =
        changed.into_iter().map(|c| if let How::Fields(paths) = &c.how { paths.len() } else { 1 }).sum();
    (0..count).map(|n| private(&format!("o{n}"))).collect()
}

/// `(a, (b, ()))`: a tuple of any length.
pub(super) fn list(items: impl DoubleEndedIterator<Item = TokenStream>) -> TokenStream {
    items.rev().fold(quote!(()), |rest, item| quote!((#item, #rest)))
}

/// The variable of its own that stands for what `ident` refers to.
fn referent(ident: &Ident) -> Ident {
    format_ident!("__{}", ident, span = Span::mixed_site().located_at(ident.span()))
}

/// A copy of a variable of which parts change; of what it refers to, where it is a `&mut`.
fn copy_to_change(ident: &Ident) -> TokenStream {
    let shown = krate::generated_at(ident.span());
    let p = krate::private_at(shown);
    quote_spanned! {shown=>
        {
            #[allow(unused_imports)]
            use #p::{CopyOfAnything as _, CopyOfReferent as _, CopyOfValue as _};
            (&&&#p::Own(&#ident)).to_change()
        }
    }
}

/// Copies of the variables that arms change, made before the closure, which so has nothing of these variables. What else in it
/// refers to one, as a reference or a macro of the function does, would mean the value from before: the closure lives until the
/// new values are assigned, so rustc refuses it (E0506).
#[derive(Default)]
pub(super) struct Outer {
    /// The names of the copies, one for each variable that has a value.
    pub(super) names: Vec<Option<Ident>>,
    /// The statements that make them.
    pub(super) copies: TokenStream,
}

impl Outer {
    pub(super) fn of<'c>(changed: impl IntoIterator<Item = &'c Changed>) -> Self {
        let mut outer = Self::default();
        for (n, changed) in changed.into_iter().enumerate() {
            outer.add(n, changed);
        }
        outer
    }

    /// For the rounds of a loop, which begin with the other variables' values.
    pub(super) fn of_fields(changed: &[Changed]) -> Self {
        Self::of(changed.iter().filter(|c| matches!(c.how, How::Fields(_))))
    }

    fn add(&mut self, n: usize, Changed { ident, how, end, .. }: &Changed) {
        let shown = krate::generated_at(ident.span());
        let copy = match how {
            How::Anew => return self.names.push(None),
            How::Elements | How::Fields(_) if *end == End::Leaves => copy_to_change(ident),
            How::Through => quote_spanned!(shown=> ::core::clone::Clone::clone(&*#ident)),
            // A `&mut` has no such copy, so rustc refuses one whose changes would be lost.
            How::Whole | How::Elements | How::Fields(_) => {
                quote_spanned!(shown=> ::core::clone::Clone::clone(&#ident))
            }
        };
        // At the variable, so that rustc says once that it has no copy.
        let name = Ident::new(&format!("__before{n}"), shown);
        self.copies.extend(quote_spanned!(shown=> #name = #copy;));
        self.names.push(Some(name));
    }
}

/// A variable of the closure's own for one that arms assign before they read it.
pub(super) fn begin_anew(Changed { ident, .. }: &Changed) -> TokenStream {
    quote!(#[allow(unused_mut)] let mut #ident;)
}

/// The variable of the closure's own for one that arms change; `copy` is that from before.
pub(super) fn begin(changed: &Changed, copy: &Option<Ident>) -> TokenStream {
    let Changed { ident, how, .. } = changed;
    let shown = krate::generated_at(ident.span());
    match how {
        How::Anew => begin_anew(changed),
        How::Whole | How::Elements | How::Fields(_) => {
            quote_spanned!(shown=> #[allow(unused_mut)] let mut #ident = ::core::clone::Clone::clone(&#copy);)
        }
        How::Through => {
            let own = referent(ident);
            quote_spanned!(shown=> let mut #own = ::core::clone::Clone::clone(&#copy); let #ident = &mut #own;)
        }
    }
}

/// The same for a round of a loop, to which the values are carried under `names`, or for the predicate before it, which
/// gives nothing back: there they cannot be changed, or the change would be lost. `outer` are the copies of structs.
pub(super) fn entered(
    all: &[Changed],
    outer: &[Option<Ident>],
    names: &[Ident],
    is_predicate: bool,
) -> TokenStream {
    let mutable = (!is_predicate).then(|| quote!(mut));
    let (mut names, mut outer) = (names.iter(), outer.iter());
    let mut next = || names.next();
    let mut tokens = TokenStream::new();
    for Changed { ident, how, .. } in all {
        let shown = krate::generated_at(ident.span());
        match how {
            How::Anew | How::Whole | How::Elements => {
                let name = next();
                tokens.extend(
                    quote_spanned!(shown=> #[allow(unused_mut, unused_variables)] let #mutable #ident = #name;),
                );
            }
            How::Through => {
                let (name, own) = (next(), referent(ident));
                tokens.extend(quote_spanned! {shown=>
                    #[allow(unused_mut)] let #mutable #own = #name;
                    #[allow(unused_variables)] let #ident = &#mutable #own;
                });
            }
            How::Fields(paths) => {
                let copy = outer.next().and_then(Option::as_ref);
                tokens.extend(
                    quote_spanned!(shown=> #[allow(unused_variables)] let mut #ident = ::core::clone::Clone::clone(&#copy);),
                );
                for path in paths {
                    let name = next();
                    tokens.extend(quote_spanned!(shown=> #ident #(.#path)* = #name;));
                }
                if is_predicate {
                    tokens.extend(quote_spanned!(shown=> #[allow(unused_variables)] let #ident = #ident;));
                }
            }
        }
    }
    tokens
}

/// The places that change, as host code names them.
fn places(Changed { ident, how, .. }: &Changed) -> Vec<TokenStream> {
    match how {
        How::Anew | How::Whole | How::Elements => vec![quote!(#ident)],
        How::Through => vec![quote_spanned!(krate::generated_at(ident.span())=> *#ident)],
        How::Fields(paths) => paths.iter().map(|path: &Vec<Member>| quote!(#ident #(.#path)*)).collect(),
    }
}

/// Has the types say that arms may assign a variable that does not leave them.
pub(super) fn held(changed: &Changed) -> TokenStream {
    initial(changed).into_iter().map(|value| quote!(let _ = #value;)).collect()
}

/// Says that arms change a variable, which may be a `&mut`.
pub(super) fn changed_by_arms(Changed { ident, how, .. }: &Changed) -> TokenStream {
    let shown = krate::generated_at(ident.span());
    let p = krate::private_at(shown);
    match how {
        How::Elements | How::Fields(_) => quote_spanned! {shown=>
            {
                use #p::ChangedByArms as _;
                #ident.is_changed_by_arms();
            }
        },
        _ => quote_spanned!(shown=> let _ = &mut #ident;),
    }
}

/// Gives a variable that has no value yet the type that `name` stands for, in the arms and around them: it does not leave
/// them, so nothing else would. Moves it, so that rustc refuses code that uses it afterwards.
pub(super) fn of_type(name: &Ident, Changed { ident, .. }: &Changed) -> TokenStream {
    let shown = krate::generated_at(ident.span());
    quote_spanned! {shown=>
        #[allow(unused_assignments)]
        if false {
            #ident = #name.value();
            let _moved = #ident;
        }
    }
}

/// The same for a variable that belongs to each round of a loop. Like the rounds, it needs one that is `mut`.
pub(super) fn of_type_of_rounds(name: &Ident, Changed { ident, .. }: &Changed) -> TokenStream {
    let shown = krate::generated_at(ident.span());
    quote_spanned! {shown=>
        #[allow(unused_assignments)]
        while false {
            #ident = #name.value();
            let _moved = #ident;
        }
    }
}

/// The values that leave, for one variable.
pub(super) fn outs(changed: &Changed) -> Vec<TokenStream> {
    let shown = krate::generated_at(changed.ident.span());
    let p = krate::private_at(shown);
    let value = |place: TokenStream| match changed.how {
        How::Anew | How::Whole | How::Elements => place,
        _ => quote_spanned!(shown=> ::core::clone::Clone::clone(&#place)),
    };
    let leave = |place: TokenStream| {
        let value = value(place);
        quote_spanned!(shown=> #p::CarriedByDevice::carry((#value,).0))
    };
    places(changed).into_iter().map(leave).collect()
}

/// The values that a loop begins with, for one variable.
pub(super) fn initial(changed: &Changed) -> Vec<TokenStream> {
    let shown = krate::generated_at(changed.ident.span());
    let p = krate::private_at(shown);
    let copy = |place: TokenStream| match changed.how {
        How::Elements => copy_to_change(&changed.ident),
        _ => quote_spanned!(shown=> ::core::clone::Clone::clone(&#place)),
    };
    let enter = |place: TokenStream| {
        let copy = copy(place);
        quote_spanned!(shown=> #p::CarriedByDevice::carry((#copy,).0))
    };
    places(changed).into_iter().map(enter).collect()
}

/// The assignments when all arms are described. That nothing may read them is not the user's fault: arms did.
pub(super) fn assigned<'c>(all: impl IntoIterator<Item = &'c Changed>, names: &[Ident]) -> TokenStream {
    let places = all.into_iter().flat_map(|c| places(c).into_iter().map(move |place| (c, place)));
    let assign = |((changed, place), name): ((&Changed, TokenStream), &Ident)| {
        let shown = krate::generated_at(changed.ident.span());
        let p = krate::private_at(shown);
        match changed.how {
            How::Elements => quote_spanned! {shown=>
                {
                    use #p::NewValue as _;
                    #place.set_to_new_value(#name);
                }
            },
            _ => quote_spanned!(shown=> #place = #name;),
        }
    };
    let assigns: TokenStream = places.zip(names).map(assign).collect();
    if assigns.is_empty() { assigns } else { quote!(#[allow(unused_assignments)] { #assigns }) }
}

/// Copies of values that arms move, which they all may. A value of which a part is wanted need not have copies: a number in
/// it can be copied from where it is.
pub(super) fn copies(ReadByArms { moved, parted }: &ReadByArms) -> TokenStream {
    let p = krate::private();
    let copy = |ident: &Ident| {
        let shown = krate::generated_at(ident.span());
        quote_spanned!(shown=> #[allow(unused_variables)] let #ident = ::core::clone::Clone::clone(&#ident);)
    };
    let part = |ident: &Ident| {
        let shown = krate::generated_at(ident.span());
        quote_spanned! {shown=>
            #[allow(unused_variables)]
            let #ident = {
                #[allow(unused_imports)]
                use #p::{OwnCopy as _, OwnReborrow as _, OwnReference as _};
                (&&&#p::Own(&#ident)).own()
            };
        }
    };
    moved.iter().map(copy).chain(parted.iter().map(part)).collect()
}
