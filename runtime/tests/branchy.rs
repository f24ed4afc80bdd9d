//! The branchy program of the literature, `y = x*x; if sum(y) > 0 { y + 1 } else { y - 1 } * 2`, and what its
//! tree looks like.

use graphable::{
    backend::cpu::CpuOptions,
    inspect::{GraphTree, OutputPlace},
    prelude::*,
};

#[path = "common/device.rs"]
mod device;

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
    (cx.item(&ops::sum(&y, 0)?)? > 0.0)
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
    (cx.item(&ops::sum(&y, 0)?)? > 0.0)
    {
        z = ops::add(&y, one)?;
    } else {
        let less = ops::sub(&y, one)?;
        z = ops::scale(&less, 1.0)?;
    }
    ops::scale(&z, 2.0)
}

fn runtime() -> Runtime {
    Runtime::new(device::device(CpuOptions { test_mode: Some(1), threads: Some(1) })).unwrap()
}

#[test]
fn show() {
    let mut rt = runtime();
    let one = Param::new(&rt, &[64], &[1.0; 64]).unwrap();
    let g = BranchyGraph::builder().build(&mut rt).unwrap();
    let h = ApartGraph::builder().build(&mut rt).unwrap();
    for i in 0..20 {
        let step = rt.step().unwrap();
        let x = [(i % 2) as f32; 64];
        let y = g.call(&step, &x, &one).unwrap();
        println!("{:?}", step.read(&y).unwrap()[0]);
    }
    println!("{}", rt.tree());
    for i in 0..20 {
        let step = rt.step().unwrap();
        let x = [(i % 2) as f32; 64];
        let y = h.call(&step, &x, &one).unwrap();
        println!("{:?}", step.read(&y).unwrap()[0]);
    }
    let tree = rt.tree();
    println!("{tree}\n{}\n{}", tree.to_dot(), tree.to_json());
    for n in &tree.nodes {
        println!("{}: {}", n.id, rt.topology(n.id).unwrap().unwrap());
    }
    println!("{}{}", BranchyGraph::PLAN, BranchyGraph::PLAN.report());
}
