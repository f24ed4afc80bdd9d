//! Syntactic queries on types.

use quote::ToTokens;
use syn::{
    GenericArgument, PathArguments, Type,
    visit::Visit,
    visit_mut::{self, VisitMut},
};

/// The device element nearest to a host scalar type.
pub(crate) fn scalar(ty: &Type) -> Option<&'static str> {
    let Type::Path(path) = plain(ty) else { return None };
    Some(match path.path.get_ident()?.to_string().as_str() {
        "u8" => "u8",
        "u16" | "u32" | "u64" | "u128" | "usize" => "u32",
        "i8" => "i8",
        "i16" | "i32" => "i32",
        "i64" | "i128" | "isize" => "i64",
        "f32" => "f32",
        "f64" => "f64",
        "f16" => "f16",
        "bf16" => "bf16",
        "bool" => "bool",
        _ => return None,
    })
}

/// Returns whether `ty` is an element type, by its name.
pub(crate) fn is_element(ty: &Type) -> bool {
    let Type::Path(path) = plain(ty) else { return false };
    scalar(ty).is_some_and(|element| path.path.is_ident(element))
}

/// The element type, where `ty` is `Name<'s, T>`.
pub(crate) fn named(ty: &Type, name: &str) -> Option<Type> {
    let Type::Path(path) = plain(ty) else { return None };
    path.path.segments.last().filter(|s| s.ident == name).and_then(first_type)
}

pub(crate) fn first_type(segment: &syn::PathSegment) -> Option<Type> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    arguments.args.iter().find_map(|a| match a {
        GenericArgument::Type(ty) => Some(ty.clone()),
        _ => None,
    })
}

/// Without the groups and parentheses around it.
pub(crate) fn plain(ty: &Type) -> &Type {
    match ty {
        Type::Group(g) => plain(&g.elem),
        Type::Paren(p) => plain(&p.elem),
        _ => ty,
    }
}

pub(crate) fn impl_trait(ty: &Type) -> Option<syn::TypeImplTrait> {
    struct Search(Option<syn::TypeImplTrait>);
    impl<'ast> Visit<'ast> for Search {
        fn visit_type_impl_trait(&mut self, ty: &'ast syn::TypeImplTrait) {
            self.0.get_or_insert_with(|| ty.clone());
        }
    }
    let mut search = Search(None);
    search.visit_type(ty);
    search.0
}

/// A type as a user would write it, without the lifetimes that were filled.
pub(crate) fn written(ty: &Type) -> String {
    struct Plain;
    impl VisitMut for Plain {
        fn visit_angle_bracketed_generic_arguments_mut(
            &mut self,
            arguments: &mut syn::AngleBracketedGenericArguments,
        ) {
            visit_mut::visit_angle_bracketed_generic_arguments_mut(self, arguments);
            let kept = arguments.args.iter().filter(|a| !matches!(a, GenericArgument::Lifetime(_)));
            arguments.args = kept.cloned().collect();
        }
        fn visit_path_segment_mut(&mut self, segment: &mut syn::PathSegment) {
            visit_mut::visit_path_segment_mut(self, segment);
            if matches!(&segment.arguments, PathArguments::AngleBracketed(a) if a.args.is_empty()) {
                segment.arguments = PathArguments::None;
            }
        }
        fn visit_type_reference_mut(&mut self, reference: &mut syn::TypeReference) {
            reference.lifetime = None;
            visit_mut::visit_type_reference_mut(self, reference);
        }
    }
    let mut ty = ty.clone();
    Plain.visit_type_mut(&mut ty);
    let tight = [
        (" < ", "<"),
        (" >", ">"),
        (" ,", ","),
        (" :: ", "::"),
        ("& ", "&"),
        (" ;", ";"),
        ("[ ", "["),
        (" ]", "]"),
    ];
    tight.iter().fold(ty.to_token_stream().to_string(), |text, (spaced, tight)| text.replace(spaced, tight))
}

/// `Tensor<…>`, `Scalar<…>` or a reference to one.
pub(crate) fn is_tensor(ty: &Type) -> bool {
    match plain(ty) {
        Type::Reference(r) => is_tensor(&r.elem),
        ty => named(ty, "Tensor").is_some() || named(ty, "Scalar").is_some(),
    }
}
