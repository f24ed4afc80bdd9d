//! The texts of the crates that are compiled.

const HEAD: &str = "\
#![allow(missing_docs)]
use graphable::prelude::*;
#[derive(Params)]
pub struct Block { q: Param<f32>, k: Param<f32> }
#[derive(Params)]
pub struct Weights { scale: Param<f32>, bias: Param<f32>, blocks: Vec<Block> }
fn mix<'s>(x: &Tensor<'s, f32>, block: &Block) -> Result<Tensor<'s, f32>> { ops::mul(x, &block.q) }
fn half<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> { ops::scale(x, 0.5) }
";

/// `#[graphable]`, `#[eager]`, the lifetimes that a plain function declares, and those of its tensors.
fn notation(with_macro: bool) -> [&'static str; 4] {
    if with_macro { ["#[graphable]", "#[eager]", "", "<f32>"] } else { ["", "", "<'s>", "<'s, f32>"] }
}

/// One function: half of the statements in a run above a boundary, half in a run below.
pub(crate) fn statements(count: usize, with_macro: bool) -> String {
    let [attribute, eager, generics, tensor] = notation(with_macro);
    let mut text = format!(
        "{HEAD}{attribute}\npub fn f{generics}(x: &Tensor{tensor}) -> Result<Tensor{tensor}> {{\n    let a0 = half(x)?;\n"
    );
    for n in 1..count {
        let eager = if n == count / 2 { eager } else { "" };
        text += &format!("    let a{n} = {eager} half(&a{})?;\n", n - 1);
    }
    text + &format!("    ops::add(&a{}, x)\n}}\n", count - 1)
}

/// Functions of two boundaries each. `called`: one more builds and calls the graph of each, so that all of its code is
/// compiled; else only what a library compiles ahead of its users.
pub(crate) fn functions(count: usize, with_macro: bool, called: bool) -> String {
    let [attribute, eager, generics, tensor] = notation(with_macro);
    let mut text = HEAD.to_owned();
    for n in 0..count {
        text += &format!(
            "\
{attribute}
pub fn f{n}{generics}(x: &Tensor{tensor}, weights: &Weights) -> Result<Tensor{tensor}> {{
    let a = ops::mul(x, &weights.scale)?;
    let b = ops::add(&a, &weights.bias)?;
    let c = {eager} half(&b)?;
    let d = ops::silu(&c)?;
    let e = ops::mul(&d, &a)?;
    let f = {eager} half(&e)?;
    let g = ops::relu(&f)?;
    ops::add(&g, x)
}}
"
        );
    }
    if !called {
        return text;
    }
    text += "pub fn all(rt: &mut Runtime, weights: &Weights) -> Result<()> {\n";
    for n in 0..count {
        text += &match with_macro {
            true => format!(
                "    let graph = F{n}Graph::builder().build(rt)?;\n    graph.capture_all(rt, weights)?;\n    let step = rt.step()?;\n    \
                 graph.call(&step, &step.tensor(&[1], &[1.0f32])?, weights)?;\n    drop(step);\n"
            ),
            false => format!(
                "    let step = rt.step()?;\n    f{n}(&step.tensor(&[1], &[1.0f32])?, weights)?;\n    drop(step);\n"
            ),
        };
    }
    text + "    Ok(())\n}\n"
}

/// One function, of 20 lines: two segments, a boundary in a loop, a closure, an early error.
fn function(n: usize, attribute: &str, eager: &str) -> String {
    format!(
        "\
{attribute}
pub fn layer{n}(x: &Tensor<f32>, weights: &Weights) -> Result<Tensor<f32>> {{
    if weights.blocks.is_empty() {{
        return Err(Error::Argument {{ op: \"layer{n}\", why: \"no blocks\".into() }});
    }}
    let scaled = |t: &Tensor<f32>| ops::mul(t, &weights.scale);
    let mut h = ops::add(x, &weights.bias)?;
    for block in &weights.blocks {{
        let q = ops::mul(&h, &block.q)?;
        let k = ops::mul(&h, &block.k)?;
        let scores = ops::softmax(&ops::add(&q, &k)?, 1)?;
        let mixed = {eager} mix(&scores, block)?;
        let gated = ops::mul(&ops::silu(&mixed)?, &q)?;
        h = ops::add(&h, &gated)?;
        h = scaled(&h)?;
    }}
    let normed = ops::scale(&h, 0.5)?;
    let out = ops::relu(&normed)?;
    ops::add(&out, x)
}}
"
    )
}

/// A model of `functions` functions, as the text of a crate.
pub(crate) fn model(functions: usize, with_macro: bool) -> String {
    let [attribute, eager, ..] = notation(with_macro);
    // Without the macro, lifetimes are filled by hand.
    let mut text = HEAD.to_owned();
    for n in 0..functions {
        let mut one = function(n, attribute, eager);
        if !with_macro {
            let plain =
                format!("layer{n}<'s>(x: &Tensor<'s, f32>, weights: &Weights) -> Result<Tensor<'s, f32>>");
            one = one.replace(
                &format!("layer{n}(x: &Tensor<f32>, weights: &Weights) -> Result<Tensor<f32>>"),
                &plain,
            );
            one = one.replace("|t: &Tensor<f32>|", "|t: &Tensor<'s, f32>|");
        }
        text += &one;
    }
    text
}

/// So many functions of values: a branch, a loop, methods, and for every second one a call of the one before it.
pub(crate) fn kernels(functions: usize, with_macro: bool) -> String {
    let mut text = "#![allow(dead_code)]\nuse graphable::prelude::*;\n".to_owned();
    for i in 0..functions {
        let attribute = if with_macro { "#[kernel]\n" } else { "" };
        let call = if i % 2 == 1 { format!("kernel_{}(x, y)", i - 1) } else { "x.exp()".to_owned() };
        text.push_str(&format!(
            "{attribute}pub fn kernel_{i}(x: f32, y: f32) -> f32 {{\n    let gate = 1.0 / (1.0 + (-x).exp());\n    \
             let mut sum = {call};\n    for _ in 0..4 {{\n        sum = sum * gate + y;\n    }}\n    \
             if sum < {i}.0 {{ sum }} else {{ (sum * y).tanh() }}\n}}\n\n"
        ));
    }
    text
}
