//! The branchy program of the literature, `y = x*x; if sum(y) > 0 { y + 1 } else { y - 1 } * 2`, and what its
//! tree looks like.
#![allow(clippy::needless_late_init, reason = "both branches assign, as in the literature")]
use graphable::{
    backend::cpu::CpuOptions,
    inspect::{GraphTree, TreeRecording},
    prelude::*,
};

use crate::device;

/// What the way depends on.
fn positive(cx: &Eager, y: &Tensor<f32>) -> Result<bool> {
    Ok(cx.item(&ops::sum(y, 0)?)? > 0.0)
}

/// Both branches leave the same blocks alive: what follows is shared.
#[graphable]
fn branchy(
    #[host]
    #[dims(64)]
    x: &Tensor<f32>,
    one: &Param<f32>,
) -> Result<Tensor<f32>> {
    let y = ops::mul(x, x)?;
    let z;
    if #[eager(cx)]
    positive(cx, &y)?
    {
        z = ops::add(&y, one)?;
    } else {
        z = ops::sub(&y, one)?;
    }
    ops::scale(&z, 2.0)
}

/// The second branch needs a tensor of its own, below which its result cannot lie: what follows starts from
/// another state.
#[graphable]
fn apart(
    #[host]
    #[dims(64)]
    x: &Tensor<f32>,
    one: &Param<f32>,
) -> Result<Tensor<f32>> {
    let y = ops::mul(x, x)?;
    let z;
    if #[eager(cx)]
    positive(cx, &y)?
    {
        z = ops::add(&y, one)?;
    } else {
        let less = ops::sub(&y, one)?;
        z = ops::scale(&less, 1.0)?;
    }
    ops::scale(&z, 2.0)
}

/// 1 goes into the first branch, 0 into the second.
fn expected(x: f32) -> f32 {
    if x > 0.0 { (x * x + 1.0) * 2.0 } else { (x * x - 1.0) * 2.0 }
}

/// A runtime after `steps` calls that alternate between the branches, each with its right value.
macro_rules! alternated {
    ($graph:ident, $steps:expr) => {{
        let options = CpuOptions::default().threads(1);
        let mut rt = Runtime::new(device::device(options)).unwrap();
        let one = Param::new(&rt, &[64], &[1.0; 64]).unwrap();
        let graph = $graph::builder().build(&mut rt).unwrap();
        let call = |rt: &mut Runtime, i: usize| {
            let x = (i % 2) as f32;
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[x; 64], &one).unwrap();
            assert_eq!(step.read(&y).unwrap(), [expected(x); 64], "step {i}");
        };
        (0..$steps).for_each(|i| call(&mut rt, i));
        let (before, bytes, tree) = (rt.stats(), rt.memory().pool.peak_bytes, rt.tree());
        (0..1000).for_each(|i| call(&mut rt, i));
        let after = rt.stats();
        let made = |s: &graphable::Stats| (s.warmups, s.recordings, s.evicted, s.fallbacks);
        assert_eq!(made(&before), made(&after), "1000 more steps record nothing");
        assert_eq!(rt.memory().pool.peak_bytes, bytes);
        assert_eq!(after.replays - before.replays, 3000, "three segments a step");
        (rt, tree)
    }};
}

/// The one node of that operation list.
fn of<'t>(tree: &'t GraphTree, operations: &[&str]) -> &'t TreeRecording {
    let mut found = tree.recordings.iter().filter(|n| n.operations == operations);
    let node = found.next().unwrap_or_else(|| panic!("{operations:?} in {tree}"));
    assert!(found.next().is_none(), "{operations:?} twice in {tree}");
    node
}

#[test]
fn branches_that_leave_one_state_share_their_tail() {
    if device::skipped_with_gaps("branches_that_leave_one_state_share_their_tail") {
        return;
    }
    let (rt, tree) = alternated!(BranchyGraph, 4);
    assert_eq!((tree.recordings.len(), tree.roots()), (4, 1), "{tree}");
    let (root, plus, minus) = (of(&tree, &["mul"]), of(&tree, &["add"]), of(&tree, &["sub"]));
    let tail = of(&tree, &["scale"]);
    assert_eq!(root.children, [minus.id, plus.id], "in the order of the first time");
    assert_eq!((&plus.children[..], &minus.children[..]), (&[tail.id][..], &[tail.id][..]));
    assert_eq!((tail.parents.len(), plus.exit, minus.exit), (2, tail.entry, tail.entry));
    assert!(tail.children.is_empty() && tail.exit != 0, "the driver's variables live to the end of the call");
    // `y` and `z`, whichever way: the arena is as large as one of them.
    let state = &tree.states[tail.entry];
    assert_eq!(state.blocks, [(0, 256), (256, 256)]);
    assert_eq!(
        (tree.needed_pool_bytes(), root.pool_bytes, plus.pool_bytes, minus.pool_bytes),
        (512, 256, 512, 512)
    );
    // Each call replays three of the four from now on.
    let later = rt.tree();
    let hits = |id| later.recording(id).unwrap().hits - tree.recording(id).unwrap().hits;
    assert_eq!([root, plus, minus, tail].map(|n| hits(n.id)), [1000, 500, 500, 1000]);
    assert_eq!(later.recordings.len(), 4);
}

#[test]
fn branches_that_leave_two_states_have_two_tails() {
    if device::skipped_with_gaps("branches_that_leave_two_states_have_two_tails") {
        return;
    }
    let (rt, tree) = alternated!(ApartGraph, 4);
    assert_eq!((tree.recordings.len(), tree.roots()), (5, 1), "{tree}");
    let (root, plus, minus) = (of(&tree, &["mul"]), of(&tree, &["add"]), of(&tree, &["sub", "scale"]));
    assert_eq!(root.children, [minus.id, plus.id]);
    let tails: Vec<_> = tree.recordings.iter().filter(|n| n.operations == ["scale"]).collect();
    assert_eq!(tails.len(), 2);
    for branch in [plus, minus] {
        let [tail] = branch.children[..] else { panic!("one tail each: {tree}") };
        let tail = tree.recording(tail).unwrap();
        assert_eq!((&tail.parents[..], tail.entry), (&[branch.id][..], branch.exit));
    }
    assert_eq!(tree.states[plus.exit].blocks, [(0, 256), (256, 256)]);
    assert_eq!(tree.states[minus.exit].blocks, [(0, 256), (512, 256)]);
    // The larger way needs three blocks, the other two: the arena has room for three, not for five.
    assert_eq!((plus.pool_bytes, minus.pool_bytes, tree.needed_pool_bytes()), (512, 768, 768));
    assert_eq!(rt.tree().recordings.len(), 5);
}

#[test]
fn the_text_is_pinned() {
    if device::skipped_on_gpus(
        "the_text_is_pinned",
        "a GPU has more kernels: one puts the host input where it belongs",
    ) {
        return;
    }
    let shown = |mut tree: GraphTree| {
        // Memory of the process: another number with every compiler.
        tree.executable_bytes = 0;
        tree.to_string()
    };
    for (name, pinned, tree) in [
        ("branchy", include_str!("trees/branchy.txt"), alternated!(BranchyGraph, 4).1),
        ("apart", include_str!("trees/apart.txt"), alternated!(ApartGraph, 4).1),
    ] {
        let path = format!("{}/graphs/trees/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        let text = shown(tree);
        if std::env::var_os("GRAPHABLE_BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
            continue;
        }
        assert_eq!(text, pinned, "{path}; GRAPHABLE_BLESS=1 writes it anew");
    }
}

/// A token, with a boundary of its own.
#[graphable]
fn token(x: &Tensor<f32>, one: &Param<f32>) -> Result<Tensor<f32>> {
    let y = ops::add(x, one)?;
    let z = #[eager]
    ops::scale(&y, 1.0)?;
    ops::sub(&z, one)
}

/// A prompt of any length, then tokens of one, by a helper, some of them by a branch.
#[graphable]
fn request(prompt: &Tensor<f32>, x: &Tensor<f32>, one: &Param<f32>) -> Result<Tensor<f32>> {
    let prefill = ops::sum(prompt, 0)?;
    let mut h = ops::mul(x, one)?;
    for _ in 0..20 {
        if #[eager(cx)]
        positive(cx, &h)?
        {
            h = #[piecewise]
            token(&h, one)?;
        } else {
            h = ops::neg(&h)?;
        }
    }
    ops::add(&ops::scale(&prefill, 0.0)?, &h)
}

/// What is known does not wait for the prompts of lengths that never were before.
#[test]
fn five_hundred_prompts_of_new_lengths() {
    const REQUESTS: usize = 500;
    let mut rt = Runtime::new(device::device(CpuOptions::default().threads(1))).unwrap();
    let one = Param::new(&rt, &[1], &[1.0]).unwrap();
    let graph = RequestGraph::builder()
        .deny_fallback(true)
        .limits(|limits| limits.max_shapes = None)
        .build(&mut rt)
        .unwrap();
    for request in 0..REQUESTS {
        let step = rt.step().unwrap();
        let prompt = step.tensor(&[request + 1], &vec![1.0f32; request + 1]).unwrap();
        let x = step.tensor(&[1], &[if request % 3 == 0 { -2.0f32 } else { 2.0 }]).unwrap();
        let y = graph.call(&step, &prompt, &x, &one).unwrap();
        assert_eq!(step.read(&y).unwrap(), [2.0]);
    }
    let stats = rt.stats();
    // A call has 1 to 3 segments beside its tokens, of which there are 20 with two segments, or 19 and another one.
    assert!(stats.warmups < REQUESTS as u64 + 200 && stats.recordings < 250, "{stats:?}");
    assert!(stats.replays > REQUESTS as u64 * 39, "{stats:?}");
    assert_eq!((stats.fallbacks, stats.not_converged), (0, 0));
}
