//! The callers of the function of a row: the runtime, which passes memory of tensors, and a function for users, which
//! takes slices.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::{definition::slice, native};
use crate::{
    kernel::model::{Extent, Header, Scalar},
    krate::{generated_at, private},
};

/// The rows of a block, one after the other.
pub(super) fn block(header: &Header) -> TokenStream {
    let (p, kernel) = (private(), &header.name);
    let rows = quote!(#p::kernel::lang::rows);
    let at = generated_at(kernel.span());
    let inputs: Vec<_> = (0..header.inputs.len()).map(|i| format_ident!("x{i}")).collect();
    let results: Vec<_> = (0..header.outputs.len()).map(|i| format_ident!("y{i}")).collect();
    let read = header.inputs.iter().zip(&inputs).enumerate().map(|(i, (input, x))| {
        let slice = if input.scalar == Scalar::Random { "drawn" } else { slice(input.scalar) };
        let read = format_ident!("input_{slice}");
        quote!(let #x = block.#read(#i);)
    });
    let write = header.outputs.iter().zip(&results).enumerate().map(|(i, (output, y))| {
        let write = format_ident!("output_{}", slice(output.scalar));
        quote!(let #y = block.#write(#i);)
    });
    let arguments = header.inputs.iter().zip(&inputs).map(|(input, x)| {
        let element = native::ty(input.scalar, at);
        match input.extent {
            Extent::Row => quote!(#rows::row::<#element>(#x, row, all.size)),
            Extent::One => quote!(#rows::one::<#element>(#x, row)),
        }
    });
    let places = header.outputs.iter().zip(&results).map(|(output, y)| match output.extent {
        Extent::Row => quote!(let #y = #rows::place(#y, row, all.size);),
        Extent::One => quote! {
            let ::core::option::Option::Some(#y) = #y.get_mut(row) else { return };
        },
    });
    quote! {
        let context = #rows::Context::default();
        let all = block.rows();
        #(#read)*
        #(#write)*
        for row in 0..all.count {
            #(#places)*
            #kernel::run(&context, #(#arguments,)* #(#results),*);
        }
        block.report(context.fault());
    }
}

/// The rows of a block that lie side by side, all at once.
pub(super) fn columns(header: &Header) -> TokenStream {
    let (p, kernel) = (private(), &header.name);
    let columns = quote!(#p::kernel::columns);
    let at = generated_at(kernel.span());
    let arguments = header.inputs.iter().enumerate().map(|(i, input)| {
        let (element, read) = (native::ty(input.scalar, at), format_ident!("input_{}", slice(input.scalar)));
        match input.extent {
            Extent::Row => quote!(#columns::Input::<#element>::new(block.#read(#i), block.stride(#i), size)),
            Extent::One => quote!(#columns::ones::<#element>(block.#read(#i))),
        }
    });
    let results: Vec<_> = (0..header.outputs.len()).map(|i| format_ident!("y{i}")).collect();
    let write = header.outputs.iter().zip(&results).enumerate().map(|(i, (output, y))| {
        let write = format_ident!("output_{}", slice(output.scalar));
        quote!(let #y = block.#write(#i);)
    });
    quote! {
        let size = block.rows().size;
        #(#write)*
        #kernel::columns(#(#arguments,)* #(#results),*);
    }
}

/// `fn row(…)`: the function of slices.
pub(super) fn tried(header: &Header) -> TokenStream {
    let (p, kernel) = (private(), &header.name);
    let rows = quote!(#p::kernel::lang::rows);
    let at = generated_at(kernel.span());
    let parameters = header.inputs.iter().map(|input| {
        let (name, element) = (&input.name, native::ty(input.scalar, at));
        match input.extent {
            Extent::Row => quote!(#name: &[#element]),
            Extent::One => quote!(#name: #element),
        }
    });
    let given: Vec<_> = header.inputs.iter().filter(|i| i.extent == Extent::Row).map(|i| &i.name).collect();
    let arguments = header.inputs.iter().map(|input| {
        let name = &input.name;
        match input.extent {
            Extent::Row => quote!(#rows::Input::new(&#rows::stored(#name, __len))),
            Extent::One => quote!(#name),
        }
    });
    let results: Vec<_> = (0..header.outputs.len()).map(|i| format_ident!("__y{i}")).collect();
    let places = header.outputs.iter().zip(&results).map(|(output, y)| {
        let raw = native::ty(output.scalar, at);
        let raw = quote!(<#raw as #rows::Stored>::Raw);
        match output.extent {
            Extent::Row => {
                quote!(let mut #y = ::std::vec![<#raw as ::core::default::Default>::default(); __len];)
            }
            Extent::One => quote!(let mut #y = <#raw as ::core::default::Default>::default();),
        }
    });
    let types = header.outputs.iter().map(|output| {
        let element = native::ty(output.scalar, at);
        match output.extent {
            Extent::Row => quote!(::std::vec::Vec<#element>),
            Extent::One => element,
        }
    });
    let values = header.outputs.iter().zip(&results).map(|(output, y)| {
        let element = native::ty(output.scalar, at);
        match output.extent {
            Extent::Row => quote!(#rows::values::<#element>(&#y)),
            Extent::One => quote!(<#element as #rows::Stored>::of(#y)),
        }
    });
    let (ty, value) = match header.outputs.len() {
        1 => (quote!(#(#types)*), quote!(#(#values)*)),
        _ => (quote!((#(#types),*)), quote!((#(#values),*))),
    };
    quote! {
        /// The function itself, for one row; of rows of different lengths, as much as the shortest has. An index out of
        /// range reads zero.
        #[allow(clippy::too_many_arguments)]
        pub fn row(#(#parameters),*) -> #ty {
            let __len = #rows::shortest(&[#(#given.len()),*]);
            #(#places)*
            Self::run(&#rows::Context::default(), #(#arguments,)* #(&mut #results),*);
            #value
        }
    }
}
