//! What passes make of operations whose memory is used again in between.

use std::sync::LazyLock;

use graphable::{
    Mode, Passes,
    custom::CustomOp,
    inspect::{PassRefusal, PassReport, TreeRecording},
    prelude::*,
};

use crate::{custom_ops, device};

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
            let made = |node: &TreeRecording| node.passes.iter().map(|pass| pass.made.len()).sum::<usize>();
            fused += rt.tree().recordings.iter().map(made).sum::<usize>();
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

/// The same norm three times, with equal products, one after the other was freed.
#[graphable]
fn equal(x: &Tensor<f32>, y: &Tensor<f32>, w: &Weights) -> Result<(Tensor<f32>, Tensor<f32>)> {
    let a = ops::rms_norm(x, &w.norms[0], 1e-5)?;
    let p = ops::linear(&a, &w.products[0])?;
    drop(a);
    let b = ops::rms_norm(x, &w.norms[0], 1e-5)?;
    let q = ops::linear(&b, &w.products[0])?;
    let c = ops::rms_norm(x, &w.norms[0], 1e-5)?;
    Ok((ops::sub(&p, &ops::mul(&q, y)?)?, ops::linear(&c, &w.products[1])?))
}

/// Equal operations, both of whose results leave.
#[graphable]
fn both_leave(x: &Tensor<f32>, _y: &Tensor<f32>, w: &Weights) -> Result<(Tensor<f32>, Tensor<f32>)> {
    Ok((ops::rms_norm(x, &w.norms[0], 1e-5)?, ops::rms_norm(x, &w.norms[0], 1e-5)?))
}

#[test]
fn equal_operations_are_computed_once() {
    assert!(compare!(EqualGraph) > 0, "nothing was joined");
    assert_eq!(compare!(BothLeaveGraph), 0);
}

/// What a pass did to the recordings of a runtime.
fn reports(rt: &Runtime, pass: &str) -> Vec<PassReport> {
    let passes = rt.tree().recordings.into_iter().flat_map(|node| node.passes);
    passes.filter(|report| report.pass == pass).collect()
}

#[test]
fn a_report_says_what_was_computed_once() {
    let report = |passes: Passes, leaves: bool| {
        let options = graphable::CpuOptions::default().test_mode(1).threads(1);
        let mut rt = Runtime::with_backend(device::backend(options)).unwrap();
        rt.set_passes(passes);
        let w = Weights::new(&rt).unwrap();
        let equal = EqualGraph::builder().mode(Mode::Full).build(&mut rt).unwrap();
        let both_leave = BothLeaveGraph::builder().mode(Mode::Full).build(&mut rt).unwrap();
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let x = step.tensor(&[2, 4], &[1.0f32; 8]).unwrap();
            match leaves {
                true => both_leave.call(&step, &x, &x, &w).map(drop).unwrap(),
                false => equal.call(&step, &x, &x, &w).map(drop).unwrap(),
            }
        }
        reports(&rt, "common_subexpressions").iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let of_equal = report(Passes::default(), false);
    // Only while nothing else has the first one's memory.
    let made = "1 x rms_norm for 2 operations each, 1 x matmul for 2 operations each";
    let refused = "not rms_norm with rms_norm (1 x): memory of a result is written before its last use";
    assert_eq!(of_equal, [format!("common_subexpressions: {made}; {refused}")]);
    let of_both = report(Passes::default(), true);
    let refused = "not rms_norm with rms_norm (1 x): a result of the second leaves from its own memory";
    assert_eq!(of_both, [format!("common_subexpressions: {refused}")]);
    assert_eq!(report(Passes::default().without("common_subexpressions"), false), [""; 0]);
}

/// As [`custom_ops::scaled_add`], declared deterministic.
static DECLARED: LazyLock<CustomOp> =
    LazyLock::new(|| custom_ops::adds_in_order(CustomOp::builder("declared").deterministic()));

/// Equal operations on equal views, but not on equal values; and two of a user, of which one may differ from run to run.
#[graphable]
fn looks_equal(
    x: &Tensor<f32>,
    state: &State<f32>,
    rng: &Rng,
) -> Result<(Tensor<f32>, Tensor<f32>, Tensor<f32>)> {
    let scope = x.scope();
    let before = ops::add(x, &ops::load(scope, state)?)?;
    ops::store(state, &before)?;
    let after = ops::add(x, &ops::load(scope, state)?)?;
    let u = ops::uniform::<f32>(rng, scope, [2], 0.0..1.0)?;
    let v = ops::uniform::<f32>(rng, scope, [2], 0.0..1.0)?;
    let (one, other) = (custom_ops::scaled_add(x, x, 2.0)?, custom_ops::scaled_add(x, x, 2.0)?);
    let declared = || DECLARED.call(scope).view(x).view(x).scalar(4.0f32).output::<f32>(x.shape()).run();
    let (two, three) = (declared()?, declared()?);
    let sum = ops::add(&ops::add(&one, &other)?, &ops::add(&two, &three)?)?;
    Ok((ops::sub(&after, &before)?, ops::sub(&u, &v)?, sum))
}

#[test]
fn what_only_looks_equal_is_computed_twice() {
    let options = graphable::CpuOptions::default().test_mode(1).threads(1);
    let mut rt = Runtime::with_backend(device::backend(options)).unwrap();
    let (state, rng) = (State::<f32>::zeros(&rt, &[2]).unwrap(), Rng::new(&rt, 7).unwrap());
    let graph = LooksEqualGraph::builder().mode(Mode::Full).audit_every(2).build(&mut rt).unwrap();
    for _ in 0..5 {
        let step = rt.step().unwrap();
        let x = step.tensor(&[2], &[1.0f32, 2.0]).unwrap();
        let (written, drawn, sum) = graph.call(&step, &x, &state, &rng).unwrap();
        assert_eq!(step.read(&written).unwrap(), [1.0, 2.0]);
        assert!(step.read(&drawn).unwrap().iter().all(|v| *v != 0.0));
        assert_eq!(step.read(&sum).unwrap(), [16.0, 32.0]);
    }
    let reports = reports(&rt, "common_subexpressions");
    assert!(!reports.is_empty());
    for report in reports {
        assert_eq!(report.made.iter().map(|made| made.operation).collect::<Vec<_>>(), ["declared"]);
        let refused: Vec<_> = report.refused.iter().map(|r| (r.operation, r.reason)).collect();
        assert_eq!(refused, [("scaled_add", PassRefusal::MayDiffer)]);
    }
}

/// Rows of two states, each at a list of places.
#[graphable]
fn caches(
    x: &Tensor<f32>,
    a: &Tensor<u32>,
    b: &Tensor<u32>,
    w: &Weights,
    keys: &State<f32>,
    values: &State<f32>,
) -> Result<Tensor<f32>> {
    let (k, v) = (ops::linear(x, &w.products[0])?, ops::linear(x, &w.products[1])?);
    ops::scatter_rows(keys, a, &k)?;
    ops::scatter_rows(values, b, &v)?;
    ops::neg(x)
}

/// Which of two faults within one kernel comes first could not be told, unless they are faults of the same rows.
#[test]
fn rows_that_do_not_exist_are_reported_in_the_order_of_the_program() {
    let mut joined = Vec::new();
    for different in [false, true] {
        for passes in [Passes::none(), Passes::default()] {
            // Not in test mode, in which independent operations of the CPU run in any order.
            let options = graphable::CpuOptions::default().threads(1);
            let mut rt = Runtime::with_backend(device::backend(options)).unwrap();
            rt.set_passes(passes);
            let w = Weights::new(&rt).unwrap();
            let (k, v) = (
                State::new(&rt, &[4, 4], &[0.0; 16]).unwrap(),
                State::new(&rt, &[4, 4], &[0.0; 16]).unwrap(),
            );
            let graph = CachesGraph::builder().build(&mut rt).unwrap();
            let mut call = |rows: [[u32; 2]; 2]| {
                let step = rt.step().unwrap();
                let x = step.tensor(&[2, 4], &[1.0f32, -2.0, 3.0, 0.5, 2.0, 2.5, -1.0, 4.0]).unwrap();
                let [a, b] = rows.map(|rows| step.tensor(&[2], &rows).unwrap());
                let b = if different { &b } else { &a };
                let y = graph.call(&step, &x, &a, b, &w, &k, &v).unwrap();
                step.read(&y)
            };
            for _ in 0..3 {
                call([[0, 3], [2, 1]]).unwrap();
            }
            for (rows, first) in [([[0, 9], [7, 1]], 9), ([[8, 9], [7, 6]], 8)] {
                let error = call(rows).unwrap_err();
                assert!(
                    matches!(&error, Error::IndexOutOfRange { op: "scatter_rows", index, bound: 4 } if *index == first),
                    "{error}"
                );
            }
            call([[0, 3], [2, 1]]).unwrap();
            let tree = rt.tree();
            let passes = tree.recordings.iter().flat_map(|node| &node.passes);
            let made = passes.filter(|pass| pass.pass == "fuse_products").flat_map(|pass| &pass.made);
            joined.push(made.map(|made| made.replaces).sum::<usize>());
        }
    }
    // The products and the writes of both; with two lists, a write is left.
    assert_eq!(joined, [0, 4, 0, 3]);
}
