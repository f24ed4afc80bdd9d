//! The operation of a kernel of elements or rows that draws random numbers.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Ident;

use super::operation::{self, Steps, key};
use crate::{
    kernel::model::{Extent, Header, Scalar},
    krate::{generated_at, krate, private},
};

/// The arguments are in the order of the parameters, a generator for each random number. The first value is a tensor; without
/// one, the operation also takes the scope and the shape of the results.
pub(super) fn steps(header: &Header, element_of: &dyn Fn(Scalar) -> TokenStream) -> Steps {
    let (crate_path, p, at) = (krate(), private(), generated_at(header.name.span()));
    let kernel = &header.name;
    let [scope, shape, call] = ["scope", "shape", "__call"].map(|name| Ident::new(name, at));
    let first = header.inputs.iter().position(|input| input.scalar.is_stored() && !input.is_key);
    let mut parameters: Vec<TokenStream> = Vec::new();
    let mut arguments: Vec<TokenStream> = Vec::new();
    for (i, input) in header.inputs.iter().enumerate() {
        let (name, ty) = (&input.name, element_of(input.scalar));
        let (parameter, argument) = match input.scalar {
            Scalar::Random => (quote!(#name: &#crate_path::Rng), quote!(random(#name)?)),
            _ if input.is_key => (key(input), quote!(key(#name))),
            _ if first == Some(i) => {
                (quote!(#name: &#crate_path::Tensor<'s, #ty>), quote!(argument::<#ty>(#name)?))
            }
            _ if input.extent == Extent::Row => (
                quote!(#name: &(impl #crate_path::AsOperand<'s, #ty> + ?::core::marker::Sized)),
                quote!(argument::<#ty>(#name)?),
            ),
            _ => (quote!(#name: impl #p::kernel::Argument<'s, #ty>), quote!(argument::<#ty>(#name)?)),
        };
        parameters.push(parameter);
        arguments.push(argument);
    }
    let (scope, launch) = match first.map(|first| &header.inputs[first].name) {
        Some(first) => {
            let launch = operation::launch(header, &call, &mut parameters);
            (quote!(#crate_path::Tensor::scope(#first)), launch)
        }
        None => {
            parameters.insert(0, quote!(#scope: #crate_path::Scope<'s>));
            parameters.push(quote!(#shape: impl #crate_path::IntoShape<'s>));
            (quote!(#scope), quote!(#call.launch_shaped(#shape)))
        }
    };
    let make = quote_spanned! {kernel.span()=>
        let mut #call = #p::kernel::Call::within(<#kernel as #p::kernel::Kernel>::DEFINITION, #scope);
        #(#call.#arguments;)*
    };
    Steps { parameters, make, launch }
}
