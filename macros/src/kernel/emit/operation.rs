//! The items that a kernel becomes: the operation, and a type of the same name with everything else.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::Ident;

use super::{cuda, definition::definition, index, native, random, row};
use crate::{
    kernel::{
        model::{Body, Extent, Form, Header, Input, Scalar},
        types::Types,
    },
    krate::{generated_at, krate, private},
    parse::attributes,
};

/// A kernel without errors.
pub(in crate::kernel) fn kernel(header: &Header, body: &Body, types: &Types) -> TokenStream {
    let text = cuda::text(header, body, types);
    let mut scalar = native::function(header, body, types);
    let columns = if header.form.has_rows() { native::columns::function(header, body, types) } else { None };
    scalar.extend(columns.clone());
    items(header, Some((body, types)), &scalar, &text, columns.is_some())
}

/// A kernel with errors: what is written with it has none.
pub(in crate::kernel) fn without_body(header: &Header) -> TokenStream {
    items(header, None, &native::unwritten(header), "", false)
}

fn items(
    header: &Header,
    of: Option<(&Body, &Types)>,
    scalar: &TokenStream,
    text: &str,
    columns: bool,
) -> TokenStream {
    let p = private();
    let Header { attrs, conditions, vis, name, .. } = header;
    let lints = attrs.iter().filter(|attr| attributes::is_lint_level(attr));
    let operation = operation(header);
    let definition = definition(header, text, of, columns);
    let body = of.map(|(body, _)| body);
    let aliases = body.iter().flat_map(|body| &body.callees).enumerate().map(|(i, path)| {
        let at = syn::spanned::Spanned::span(path);
        let alias = native::callee_alias(i, at);
        quote_spanned!(at=> type #alias = #path;)
    });
    let constants = body.iter().flat_map(|body| &body.items);
    let extent = if header.form.has_rows() { "one row" } else { "one element" };
    let about = format!("The kernel of the operation [`{name}()`], for {extent} and as text.");
    let tried = match header.form {
        Form::Elements => None,
        Form::Rows | Form::Reduce => Some(row::tried(header)),
        Form::Index => Some(index::tried(header)),
    };
    let uncallable = (header.form != Form::Elements).then(|| uncallable(header));
    let what = format!("{extent} of each result from {extent} of each parameter.").replacen('o', "O", 1);
    quote! {
        #operation
        #(#conditions)*
        #[doc = #about]
        #[allow(non_camel_case_types, dead_code, missing_debug_implementations, missing_copy_implementations)]
        #vis enum #name {}
        #(#conditions)*
        #[allow(dead_code, unreachable_pub, unused_parens, unused_braces, unused_labels, clippy::all, clippy::pedantic)]
        const _: () = {
            #(#aliases)*
            #(#constants)*
            impl #name {
                #[doc = #what]
                #(#lints)*
                #[inline(always)]
                #scalar
                #tried
                #uncallable

                /// The source for NVIDIA GPUs: what a kernel becomes before it is compiled for the types of tensors.
                pub fn cuda_source() -> ::std::string::String {
                    #p::kernel::cuda_source(<#name as #p::kernel::Kernel>::DEFINITION)
                }
            }
            #definition
        };
    }
}

/// The function by which kernels call a kernel of single values; a call of this kernel is a type error.
fn uncallable(header: &Header) -> TokenStream {
    let (p, kernel) = (private(), &header.name);
    let at = generated_at(kernel.span());
    // The first argument shows the error; the others may be anything.
    let others: Vec<Ident> =
        (1..header.inputs.len() + header.index.len()).map(|i| format_ident!("A{i}")).collect();
    let results: Vec<TokenStream> =
        header.outputs.iter().map(|output| native::ty(output.scalar, at)).collect();
    let result = if let [one] = &results[..] { one.clone() } else { quote!((#(#results),*)) };
    quote! {
        #[doc(hidden)]
        pub fn scalar<A0: #p::kernel::CalledByKernels<#kernel>, #(#others),*>(_: A0, #(_: #others),*) -> #result {
            // No type is one that kernels call it with.
            loop {}
        }
    }
}

/// The parts of the function on tensors that depend on what a kernel sees of them.
pub(super) struct Steps {
    pub(super) parameters: Vec<TokenStream>,
    /// Makes a call with its arguments.
    pub(super) make: TokenStream,
    /// Launches it.
    pub(super) launch: TokenStream,
}

/// The function on tensors.
fn operation(header: &Header) -> TokenStream {
    let crate_path = krate();
    let Header { attrs, conditions, vis, name, inputs, outputs, .. } = header;
    let at = generated_at(name.span());
    let element = Ident::new("__Element", at);
    let element_of = |scalar: Scalar| match scalar {
        Scalar::F32 => quote!(#element),
        other => native::ty(other, at),
    };
    let floats = inputs
        .iter()
        .filter(|i| !i.is_key)
        .map(|i| i.scalar)
        .chain(outputs.iter().map(|o| o.scalar))
        .any(|s| s == Scalar::F32);
    let generics = if floats { quote!(<'s, #element: #crate_path::Float>) } else { quote!(<'s>) };
    let tensors: Vec<TokenStream> = outputs
        .iter()
        .map(|output| {
            let ty = element_of(output.scalar);
            quote!(#crate_path::Tensor<'s, #ty>)
        })
        .collect();
    let result = match &tensors[..] {
        _ if header.written().is_some() => quote!(()),
        [one] => one.clone(),
        several => quote!((#(#several),*)),
    };
    let documented = attrs.iter().any(|attr| attr.path().is_ident("doc"));
    let about = (!documented).then(|| {
        let about = format!("The operation of the kernel [`{name}`](enum@{name}).");
        quote!(#[doc = #about])
    });
    let Steps { parameters, make, launch } = match header.form {
        Form::Index => index::steps(header, &element_of),
        Form::Elements | Form::Rows | Form::Reduce if header.draws() => random::steps(header, &element_of),
        _ => steps(header, &element_of),
    };
    quote_spanned! {name.span()=>
        #(#conditions)*
        #(#attrs)*
        #about
        #[allow(dead_code, clippy::too_many_arguments)]
        #vis fn #name #generics (#(#parameters),*) -> #crate_path::Result<#result> {
            #make
            #launch
        }
    }
}

/// A parameter that is a number.
pub(super) fn key(input: &Input) -> TokenStream {
    let (name, ty) = (&input.name, native::ty(input.scalar, generated_at(input.name.span())));
    quote!(#name: #ty)
}

/// Of elements or rows: the first parameter is a tensor.
fn steps(header: &Header, element_of: &dyn Fn(Scalar) -> TokenStream) -> Steps {
    let (crate_path, p) = (krate(), private());
    let Header { name, inputs, .. } = header;
    let at = generated_at(name.span());
    let parameters = inputs.iter().enumerate().map(|(i, input)| {
        let (name, ty) = (&input.name, element_of(input.scalar));
        match (i, input.extent) {
            (0, _) => quote!(#name: &#crate_path::Tensor<'s, #ty>),
            _ if input.is_key => key(input),
            (_, Extent::Row) => {
                quote!(#name: &(impl #crate_path::AsOperand<'s, #ty> + ?::core::marker::Sized))
            }
            (_, Extent::One) => quote!(#name: impl #p::kernel::Argument<'s, #ty>),
        }
    });
    let mut parameters: Vec<TokenStream> = parameters.collect();
    let (first, rest) =
        inputs.split_first().map_or((None, &[][..]), |(first, rest)| (Some(&first.name), rest));
    let rest = rest.iter().map(|input| {
        let name = &input.name;
        match input.is_key {
            true => quote!(key(#name)),
            false => quote!(argument(#name)?),
        }
    });
    let call = Ident::new("__call", at);
    let launch = launch(header, &call, &mut parameters);
    let make = quote_spanned! {name.span()=>
        let mut #call = #p::kernel::Call::new(<#name as #p::kernel::Kernel>::DEFINITION, #first)?;
        #(#call.#rest;)*
    };
    Steps { parameters, make, launch }
}

/// The launch of a call whose shape is that of its tensors; of a reduction, along an axis, which is the last parameter.
pub(super) fn launch(header: &Header, call: &Ident, parameters: &mut Vec<TokenStream>) -> TokenStream {
    match header.form {
        Form::Reduce => {
            let axis = Ident::new("axis", generated_at(header.name.span()));
            parameters.push(quote!(#axis: ::core::primitive::usize));
            quote!(#call.launch_along(#axis))
        }
        Form::Rows => quote!(#call.launch_rows()),
        Form::Elements | Form::Index => quote!(#call.launch()),
    }
}
