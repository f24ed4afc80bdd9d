//! The output of the derives, and their errors.

use proc_macro2::TokenStream;
use quote::quote;

use super::*;

/// The messages of all `compile_error!`s in an expansion, and whether the rest is Rust.
fn errors(expansion: TokenStream) -> Vec<String> {
    let file: syn::File = syn::parse2(expansion).expect("expansions are items");
    file.items
        .iter()
        .filter_map(|item| match item {
            syn::Item::Macro(m) => {
                let text = m.mac.parse_body::<syn::LitStr>().expect("a message").value();
                Some(text.split_once("] ").expect("a code").1.to_owned())
            }
            _ => None,
        })
        .collect()
}

fn traits(expansion: TokenStream) -> Vec<String> {
    let file: syn::File = syn::parse2(expansion).expect("expansions are items");
    file.items
        .iter()
        .filter_map(|item| match item {
            syn::Item::Impl(i) => {
                i.trait_.as_ref().map(|(_, path, _)| path.segments.last().unwrap().ident.to_string())
            }
            _ => None,
        })
        .collect()
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let out = derive_params(quote! {
        #[params(config = C)]
        struct M {
            #[param("a", shpae = [1])] a: Param<f32>,
            #[param("b")] b: Param<f32>,
            #[param("c", len = 3)] c: Vec<L>,
            #[config] d: f32,
            #[state] e: State<f32>,
            f: Option<L>,
            #[param("g", optional, shape = [2])] g: Param<f32>,
        }
    });
    let errors = errors(out.clone());
    let expected = [
        "`#[param]` has no argument `shpae`\n\nhelp: did you mean `shape`?",
        "a parameter needs a shape",
        "the name of a list holds `{}` once",
        "the source of this field's value is missing\n\nhelp: write it: `#[config(config.d)]`",
        "state needs a shape",
        "nothing says that this may be absent",
        "`optional` belongs on a field of type `Option<…>`",
    ];
    assert_eq!(errors.len(), expected.len(), "{errors:#?}");
    for (error, expected) in errors.iter().zip(expected) {
        assert!(error.starts_with(expected), "{error}");
        assert!(error.contains("\nhelp: "), "{error}");
    }
    // Users of the struct see no errors but these.
    assert_eq!(traits(out), ["LiveIn", "Params", "DeviceValue", "LoadParams"]);
}

#[test]
fn loading_attributes_need_a_config() {
    let errors = errors(derive_params(quote!(
        struct M {
            #[param("a", shape = [1])]
            a: Param<f32>,
            #[config]
            b: u8,
        }
    )));
    assert!(errors.len() == 1 && errors[0].contains("`#[params(config = YourConfig)]`"), "{errors:?}");
}

#[test]
fn misplaced_attributes() {
    for (input, expected) in [
        (
            quote!(
                #[param("x")]
                struct M {
                    a: Param<f32>,
                }
            ),
            "`#[param]` belongs on a field",
        ),
        (
            quote!(
                struct M {
                    #[params(config = C)]
                    a: Param<f32>,
                }
            ),
            "`#[params]` belongs on the struct",
        ),
        (
            quote!(
                #[params(confg = C)]
                struct M {
                    a: Param<f32>,
                }
            ),
            "did you mean `config`?",
        ),
        (
            quote!(
                struct M {
                    #[config]
                    #[config]
                    a: u8,
                }
            ),
            "once",
        ),
        (
            quote!(
                #[params(config = C)]
                enum M {
                    A,
                }
            ),
            "an enum is not loaded by name",
        ),
        (quote!(union M { a: u8 }), "cannot be derived for a union"),
    ] {
        let errors = errors(derive_params(input));
        assert!(errors.len() == 1 && errors[0].contains(expected), "{errors:?}");
    }
}

#[test]
fn outputs_have_one_lifetime() {
    let two = errors(derive_output(quote!(
        struct O<'a, 'b> {
            a: Tensor<'a, f32>,
            b: Tensor<'b, f32>,
        }
    )));
    assert!(two.len() == 1 && two[0].starts_with("an output has one lifetime"), "{two:?}");
    let empty = errors(derive_output(quote!(
        enum O {}
    )));
    assert!(empty.len() == 1 && empty[0].starts_with("an output needs a variant"), "{empty:?}");
}

#[test]
fn bounds_follow_the_fields_that_need_them() {
    let out = derive_params(quote!(
        struct M<T, const N: usize> {
            a: Param<T>,
            b: [Param<f32>; N],
            next: Option<Box<M<T, N>>>,
        }
    ));
    let text = out.to_string();
    assert!(text.contains("where Param < T > : :: graphable :: __private :: ParamField {"), "{text}");
    assert!(errors(out).is_empty());
}

#[test]
fn config_values_need_nothing_else() {
    let out = derive_config(quote!(
        enum Act {
            Relu,
            Leaky { slope: f32 },
        }
    ));
    // The last only where every field can be one, which a float cannot.
    assert!(out.to_string().contains("for < '__key > f32 : :: graphable :: __private :: Key"), "{out}");
    assert_eq!(traits(out), ["LiveIn", "ConfigValue", "Key"]);
}
