//! The definition of a kernel for the runtime: its signature, its text for the device, and its loop over a
//! block.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::{index, native::callee_alias, row};
use crate::{
    kernel::{
        model::{Body, Extent, Form, Header, Input, Scalar, TypeId},
        types::{Inferred, Types},
    },
    krate::private,
};

/// The implementation of `Kernel`.
pub(super) fn definition(
    header: &Header,
    text: &str,
    of: Option<(&Body, &Types)>,
    columns: bool,
) -> TokenStream {
    let p = private();
    let kernel = &header.name;
    let name = header.name.to_string();
    let name = name.trim_start_matches("r#");
    let inputs = header.inputs.iter().map(|input| {
        let (name, scalar) = (input.name.to_string(), variant(input.scalar));
        quote!((#name, #p::kernel::Compute::#scalar))
    });
    let outputs = header.outputs.iter().map(|output| {
        let scalar = variant(output.scalar);
        quote!(#p::kernel::Compute::#scalar)
    });
    let body = of.map(|(body, _)| body);
    let callees: Vec<_> = body
        .iter()
        .flat_map(|body| 0..body.callees.len())
        .map(|i| callee_alias(i, header.name.span()))
        .collect();
    let constants = body.iter().flat_map(|body| &body.constants).map(|constant| &constant.path);
    let block = match header.form {
        Form::Elements => block(header),
        Form::Rows | Form::Reduce => row::block(header),
        Form::Index => index::block(header),
    };
    let block = of_block(&block);
    let kind = kind(header, text, of, columns);
    let further = of.is_some_and(|(_, types)| types.has(Scalar::is_further));
    quote! {
        impl #p::kernel::Kernel for #kernel {
            const DEFINITION: &'static #p::kernel::Definition = &#p::kernel::Definition {
                id: ::core::any::TypeId::of::<#kernel>(),
                name: #name,
                kind: #kind,
                inputs: &[#(#inputs),*],
                outputs: &[#(#outputs),*],
                text: #text,
                further: #further,
                uses: |uses| {
                    #(uses.kernel(<#callees as #p::kernel::Kernel>::DEFINITION);)*
                    #(uses.constant(#constants);)*
                },
                block: #block,
            };
            const DEPTH: ::core::primitive::usize =
                #p::kernel::above(&[#(<#callees as #p::kernel::Kernel>::DEPTH),*]);
        }
        // Kernels that call each other in a cycle have no depth.
        const _: ::core::primitive::usize = <#kernel as #p::kernel::Kernel>::DEPTH;
    }
}

/// A pointer to a function of a block. A closure would become a second function, the one that the pointer leads to, and the
/// loops of a kernel would be optimised in both.
fn of_block(body: &TokenStream) -> TokenStream {
    let p = private();
    quote! {{
        fn of_block(block: &mut #p::kernel::Block<'_>) { #body }
        of_block
    }}
}

/// Words of a random number in the making: the four of its counter, and the key.
const DRAWN_WORDS: usize = 6;

/// Words of the largest value that a function has.
fn value_words(types: &Types) -> usize {
    if types.has(|scalar| scalar.words() > 1) { 2 } else { 1 }
}

/// Words of the largest value that a reduction of rows has for each lane.
fn sum_words(body: &Body, types: &Types) -> usize {
    let of_value = value_words(types);
    let least = if body.finds_places { of_value + 1 } else { of_value };
    body.folds.iter().map(|ty| words(types, *ty)).fold(least, usize::max)
}

fn words(types: &Types, ty: TypeId) -> usize {
    match types.get(ty) {
        Inferred::Tuple(parts) => parts.iter().map(|part| words(types, *part)).sum(),
        Inferred::Scalar(scalar) => scalar.words(),
        _ => 1,
    }
}

/// The part of its tensors that the kernel sees at a time.
fn kind(header: &Header, text: &str, of: Option<(&Body, &Types)>, columns: bool) -> TokenStream {
    let p = private();
    let body = of.map(|(body, _)| body);
    let sum_words = of.map_or(1, |(body, types)| sum_words(body, types));
    if header.form == Form::Elements {
        return quote!(#p::kernel::Kind::Elements);
    }
    if header.form == Form::Index {
        return indexed(header, body);
    }
    let extent = |extent: Extent| match extent {
        Extent::One => quote!(#p::kernel::Extent::One),
        Extent::Row => quote!(#p::kernel::Extent::Row),
    };
    let inputs = header.inputs.iter().map(|input| extent(input.extent));
    let outputs = header.outputs.iter().map(|output| extent(output.extent));
    let held =
        body.map_or(0, |body| body.locals.iter().filter(|l| l.row.is_some_and(|uses| uses > 1)).count());
    let is_drawn = |input: &Input| input.extent == Extent::Row && input.scalar == Scalar::Random;
    let sum_words = if header.inputs.iter().any(is_drawn) { sum_words.max(DRAWN_WORDS) } else { sum_words };
    let value_words = of.map_or(1, |(_, types)| value_words(types));
    let straight = is_straight(text);
    let indexed = body.is_some_and(|body| body.indexes_rows);
    let columns = match columns {
        true => {
            let block = of_block(&row::columns(header));
            quote!(::core::option::Option::Some(#block))
        }
        false => quote!(::core::option::Option::None),
    };
    quote! {
        #p::kernel::Kind::Rows(#p::kernel::Rows {
            inputs: &[#(#inputs),*],
            outputs: &[#(#outputs),*],
            held: #held,
            indexed: #indexed,
            straight: #straight,
            sum_words: #sum_words,
            columns: #columns,
            value_words: #value_words,
        })
    }
}

/// The kind of a kernel of indices.
fn indexed(header: &Header, body: Option<&Body>) -> TokenStream {
    let p = private();
    let views = header.inputs.iter().map(|input| match input.view {
        None => quote!(::core::option::Option::None),
        Some(rank) => quote!(::core::option::Option::Some(#rank)),
    });
    let (rank, straight) = (header.index.len(), body.is_none_or(|body| !body.has_loops));
    quote! {
        #p::kernel::Kind::Index(#p::kernel::Index { views: &[#(#views),*], rank: #rank, straight: #straight })
    }
}

/// Returns whether a function does the same for each row, so that GPU threads of several rows can meet in its reductions: its
/// text has nothing that decides or repeats, not even in closures.
fn is_straight(text: &str) -> bool {
    let words = ["if", "else", "for", "while", "do", "switch", "goto", "break", "continue"];
    let mut tokens = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    !tokens.any(|token| words.contains(&token)) && !["?", "&&", "||"].iter().any(|sign| text.contains(sign))
}

/// As the runtime calls it.
fn variant(scalar: Scalar) -> syn::Ident {
    format_ident!(
        "{}",
        match scalar {
            Scalar::F32 => "F32",
            Scalar::F64 => "F64",
            Scalar::I32 => "I32",
            Scalar::I64 => "I64",
            Scalar::I8 => "I8",
            Scalar::U32 => "U32",
            Scalar::U8 => "U8",
            Scalar::Bool => "Bool",
            Scalar::Random => "Random",
        }
    )
}

/// The loop: slices of equal length, an element of each at a time.
fn block(header: &Header) -> TokenStream {
    let kernel = &header.name;
    let inputs: Vec<_> = (0..header.inputs.len()).map(|i| format_ident!("x{i}")).collect();
    let outputs: Vec<_> = (0..header.outputs.len()).map(|i| format_ident!("y{i}")).collect();
    let results: Vec<_> = (0..header.outputs.len()).map(|i| format_ident!("r{i}")).collect();
    let read = header.inputs.iter().zip(&inputs).enumerate().map(|(i, (input, x))| {
        let slice = format_ident!("input_{}", slice(input.scalar));
        quote!(let #x = block.#slice(#i);)
    });
    let write = header.outputs.iter().zip(&outputs).enumerate().map(|(i, (output, y))| {
        let slice = format_ident!("output_{}", slice(output.scalar));
        quote!(let #y = block.#slice(#i);)
    });
    let arguments = header.inputs.iter().zip(&inputs).map(|(input, x)| match input.scalar {
        Scalar::Bool => quote!(*#x != 0),
        Scalar::Random => quote!(#x),
        _ => quote!(*#x),
    });
    let stores =
        header.outputs.iter().zip(outputs.iter().zip(&results)).map(|(output, (y, r))| match output.scalar {
            Scalar::Bool => quote!(*#y = ::core::primitive::u8::from(#r);),
            _ => quote!(*#y = #r;),
        });
    let result = if let [one] = &results[..] { quote!(#one) } else { quote!((#(#results),*)) };
    let mut all =
        outputs.iter().map(|y| quote!(#y.iter_mut())).chain(inputs.iter().map(|x| quote!(#x.iter())));
    let first = all.next();
    let zipped = all.fold(quote!(#first), |zipped, next| quote!(::core::iter::Iterator::zip(#zipped, #next)));
    let mut names = outputs.iter().chain(&inputs).map(|name| quote!(#name));
    let first = names.next();
    let pattern = names.fold(quote!(#first), |pattern, next| quote!((#pattern, #next)));
    quote! {
        #(#read)*
        #(#write)*
        for #pattern in #zipped {
            let #result = #kernel::scalar(#(#arguments),*);
            #(#stores)*
        }
    }
}

/// Returns the element type of a block; a `bool` is stored as a byte.
pub(super) fn slice(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "u8",
        Scalar::Random => "random",
        other => other.name(),
    }
}
