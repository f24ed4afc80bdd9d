//! What passes make of operations whose memory is used again in between.

use graphable::{Mode, Passes, inspect::TreeNode, prelude::*};

use crate::device;

#[derive(Params)]
struct Weights {
    norms: [Param<f32>; 2],
    products: [Param<f32>; 2],
}

impl Weights {
    fn new(rt: &Runtime) -> Result<Self> {
        let norm = |by: f32| Param::new(rt, &[4], &[by, 1.0, 0.5, 2.0]);
        let product =
            |from: f32| Param::new(rt, &[4, 4], &std::array::from_fn::<f32, 16, _>(|i| from + i as f32));
        Ok(Self { norms: [norm(1.0)?, norm(3.0)?], products: [product(-7.0)?, product(0.5)?] })
    }
}

/// The second norm lies where the first one was.
#[graphable]
fn two_norms(x: &Tensor<f32>, y: &Tensor<f32>, w: &Weights) -> Result<(Tensor<f32>, Tensor<f32>)> {
    let h = ops::rms_norm(x, &w.norms[0], 1e-5)?;
    let q = ops::linear(&h, &w.products[0])?;
    drop(h);
    let h = ops::rms_norm(y, &w.norms[1], 1e-5)?;
    let r = ops::linear(&h, &w.products[1])?;
    Ok((q, r))
}

/// The second product lies where the first one was, of which a result is still used.
#[graphable]
fn two_products(x: &Tensor<f32>, y: &Tensor<f32>, w: &Weights) -> Result<(Tensor<f32>, Tensor<f32>)> {
    let q = ops::linear(x, &w.products[0])?;
    let s = ops::silu(&q)?;
    drop(q);
    let d = ops::linear(y, &w.products[1])?;
    let z = ops::mul(&s, &d)?;
    Ok((z, ops::neg(&s)?))
}

/// Each row has two heads, which are normalised alone.
#[kernel(rows)]
fn centred(x: Row<f32>) -> Row<f32> {
    let mean = x.sum() / x.len() as f32;
    x.map(|v| v - mean)
}

#[graphable]
fn heads(x: &Tensor<f32>, y: &Tensor<f32>, w: &Weights) -> Result<(Tensor<f32>, Tensor<f32>)> {
    let h = centred(&ops::reshape(x, (x.dim(0), 2, 2))?)?;
    let h = ops::reshape(&h, (x.dim(0), 4))?;
    Ok((ops::linear(&h, &w.products[0])?, ops::linear(y, &w.products[1])?))
}

/// Calls a graph in each mode with passes and without: every call has the bits of an eager one.
macro_rules! compare {
    ($graph:ident) => {{
        let mut all = Vec::new();
        let mut fused = 0;
        for (mode, passes) in [
            (Mode::None, Passes::none()),
            (Mode::Piecewise, Passes::none()),
            (Mode::Piecewise, Passes::default()),
            (Mode::Piecewise, Passes::default().without("fuse_elementwise")),
            (Mode::Full, Passes::default()),
        ] {
            let options = graphable::CpuOptions::default().test_mode(1).threads(1);
            let mut rt = Runtime::with_backend(device::backend(options)).unwrap();
            rt.set_passes(passes);
            let w = Weights::new(&rt).unwrap();
            let graph = $graph::builder().mode(mode).build(&mut rt).unwrap();
            for _ in 0..4 {
                let step = rt.step().unwrap();
                let x = step.tensor(&[2, 4], &[1.0f32, -2.0, 3.0, 0.5, 2.0, 2.5, -1.0, 4.0]).unwrap();
                let y = step.tensor(&[2, 4], &[0.25f32, 1.0, -3.0, 2.0, 5.0, -0.5, 1.5, 1.0]).unwrap();
                let (a, b) = graph.call(&step, &x, &y, &w).unwrap();
                let bits = |t| step.read(t).unwrap().iter().map(|v: &f32| v.to_bits()).collect::<Vec<_>>();
                all.push((mode, bits(&a), bits(&b)));
            }
            let made = |node: &TreeNode| node.passes.iter().map(|pass| pass.made.len()).sum::<usize>();
            fused += rt.tree().nodes.iter().map(made).sum::<usize>();
        }
        for (mode, a, b) in &all {
            assert_eq!((a, b), (&all[0].1, &all[0].2), "{mode}");
        }
        fused
    }};
}

#[test]
fn a_norm_where_another_one_was() {
    assert!(compare!(TwoNormsGraph) > 0, "nothing was joined");
}

#[test]
fn a_product_where_another_one_was() {
    assert!(compare!(TwoProductsGraph) > 0, "nothing was joined");
}

#[test]
fn rows_of_a_kernel_that_are_no_rows_of_the_product() {
    // A GPU would normalise all of a row of the product; on the CPU, the parts run as they are.
    assert_eq!(compare!(HeadsGraph), 0, "rows of other lengths were joined");
}
