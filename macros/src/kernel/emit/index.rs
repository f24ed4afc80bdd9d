//! The callers of the function of an index: the runtime, which passes memory of tensors, and a function for users, which
//! takes slices. Also its operation.

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};
use syn::Ident;

use super::{
    definition::slice,
    native,
    operation::{Steps, key},
};
use crate::{
    kernel::model::{Header, Input, Scalar},
    krate::{generated_at, krate, private},
};

/// The function on tensors: views and values, and then the shape of the results.
pub(super) fn steps(header: &Header, element_of: &dyn Fn(Scalar) -> TokenStream) -> Steps {
    let (crate_path, p, at) = (krate(), private(), generated_at(header.name.span()));
    let kernel = &header.name;
    let first = header.inputs.iter().position(|input| input.view.is_some() && !input.is_written);
    let [scope, shape, call] = ["scope", "shape", "__call"].map(|name| Ident::new(name, at));
    let mut parameters: Vec<TokenStream> = Vec::new();
    if first.is_none() {
        parameters.push(quote!(#scope: #crate_path::Scope<'s>));
    }
    for (i, input) in header.inputs.iter().enumerate() {
        let (name, ty) = (&input.name, element_of(input.scalar));
        parameters.push(match input.view {
            _ if first == Some(i) => quote!(#name: &#crate_path::Tensor<'s, #ty>),
            Some(_) if input.is_written => quote!(#name: &#crate_path::State<#ty>),
            None if input.scalar == Scalar::Random => quote!(#name: &#crate_path::Rng),
            Some(_) => quote!(#name: &(impl #crate_path::AsOperand<'s, #ty> + ?::core::marker::Sized)),
            None if input.is_key => key(input),
            None => quote!(#name: impl #p::kernel::Argument<'s, #ty>),
        });
    }
    parameters.push(quote!(#shape: impl #crate_path::IntoShape<'s>));
    let scope = match first.map(|first| &header.inputs[first].name) {
        Some(first) => quote!(#crate_path::Tensor::scope(#first)),
        None => quote!(#scope),
    };
    let arguments = header.inputs.iter().map(|input| {
        let (name, ty) = (&input.name, element_of(input.scalar));
        match input.scalar {
            Scalar::Random => quote!(#call.random(#name)?;),
            _ if input.is_key => quote!(#call.key(#name);),
            _ => quote!(#call.argument::<#ty>(#name)?;),
        }
    });
    let mutable = (!header.inputs.is_empty()).then(|| quote!(mut));
    let make = quote! {
        let #mutable #call = #p::kernel::Call::within(<#kernel as #p::kernel::Kernel>::DEFINITION, #scope);
        #(#arguments)*
    };
    let launch = match header.written() {
        None => quote!(#call.launch_indexed(#shape)),
        Some(Input { name, scalar, .. }) => {
            let (ty, [values, places]) =
                (element_of(*scalar), ["__values", "__places"].map(|name| Ident::new(name, at)));
            quote! {
                let (#values, #places) = #call.launch_indexed::<(
                    #crate_path::Tensor<'s, #ty>,
                    #crate_path::Tensor<'s, ::core::primitive::u32>,
                )>(#shape)?;
                #p::kernel::write(<#kernel as #p::kernel::Kernel>::DEFINITION.name, #name, &#places, &#values)
            }
        }
    };
    Steps { parameters, make, launch }
}

/// Elements of the results: a block has all inputs.
pub(super) fn block(header: &Header) -> TokenStream {
    let (p, kernel) = (private(), &header.name);
    let lang = quote!(#p::kernel::lang);
    let at = generated_at(kernel.span());
    let inputs: Vec<Ident> = (0..header.inputs.len()).map(|i| format_ident!("x{i}")).collect();
    let outputs: Vec<Ident> = (0..header.outputs.len()).map(|i| format_ident!("y{i}")).collect();
    let results: Vec<Ident> = (0..header.outputs.len()).map(|i| format_ident!("r{i}")).collect();
    let reads = header.inputs.iter().zip(&inputs).enumerate().map(|(i, (input, x))| {
        let (read, element) = (format_ident!("input_{}", slice(input.scalar)), native::ty(input.scalar, at));
        match input.view.map(Literal::usize_unsuffixed) {
            None if input.scalar == Scalar::Random => quote!(let #x = block.input_numbers(#i);),
            None => quote!(let #x = #lang::rows::one::<#element>(block.#read(#i), 0);),
            Some(rank) => quote! {
                let ::core::option::Option::Some(#x) = block.input_view(#i) else { return };
                let #x = #lang::views::View::<#element, #rank>::new(#x);
            },
        }
    });
    let places = header.outputs.iter().zip(&outputs).enumerate().map(|(i, (output, y))| {
        let write = format_ident!("output_{}", slice(output.scalar));
        quote!(let #y = block.#write(#i);)
    });
    let stores = outputs.iter().zip(&results).map(|(y, r)| {
        quote! {
            if let ::core::option::Option::Some(to) = #y.get_mut(number) {
                #lang::rows::set(to, #r);
            }
        }
    });
    let arguments = header.inputs.iter().zip(&inputs).map(|(input, x)| match input.scalar {
        Scalar::Random => quote!(#x.at(index)),
        _ => quote!(#x),
    });
    let result = if let [one] = &results[..] { quote!(#one) } else { quote!((#(#results),*)) };
    let rank = Literal::usize_unsuffixed(header.index.len());
    quote! {
        let ::core::option::Option::Some(part) = block.part() else { return };
        let context = #lang::rows::Context::default();
        #(#reads)*
        #(#places)*
        #lang::views::each::<#rank>(part, |number, index| {
            let #result = #kernel::run(&context, #(#arguments,)* index);
            #(#stores)*
        });
        block.report(context.fault());
    }
}

/// `fn element(…)`: the function of slices with their sizes.
pub(super) fn tried(header: &Header) -> TokenStream {
    let p = private();
    let lang = quote!(#p::kernel::lang);
    let at = generated_at(header.name.span());
    let parameters = header.inputs.iter().map(|input| {
        let (name, element) = (&input.name, native::ty(input.scalar, at));
        match input.view.map(Literal::usize_unsuffixed) {
            None => quote!(#name: #element),
            Some(rank) => quote!(#name: (&[#element], [::core::primitive::usize; #rank])),
        }
    });
    let arguments = header.inputs.iter().map(|input| {
        let name = &input.name;
        match input.view {
            None => quote!(#name),
            Some(_) => quote!(#lang::views::View::of(&#lang::rows::stored(#name.0, #name.0.len()), #name.1)),
        }
    });
    let (index, rank) = (Ident::new("__index", at), Literal::usize_unsuffixed(header.index.len()));
    let place = native::ty(Scalar::I32, at);
    let run = quote!(Self::run(&#lang::rows::Context::default(), #(#arguments,)* #index));
    let (output, run, of) = match header.written() {
        None => (native::outputs(header), run, ""),
        Some(state) => {
            let ty = native::ty(state.scalar, at);
            let output = quote!(::core::option::Option<(::core::primitive::usize, #ty)>);
            let of = " The result is the number of the element that is written, row-major, and its value.";
            (output, quote!(#lang::views::written(#run)), of)
        }
    };
    let about = format!(
        "The function itself, for one element: of each view its values, row-major, and its sizes. An index out of range reads \
         zero.{of}"
    );
    quote! {
        #[doc = #about]
        #[allow(clippy::too_many_arguments)]
        pub fn element(#(#parameters,)* #index: [#place; #rank]) -> #output {
            #run
        }
    }
}
