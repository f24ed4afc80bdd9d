//! Passes of one's own over recordings: `cargo run --bin own_pass`
//!
//! The first counts what a function launches, by operation. The second replaces `gelu` by an approximation in one operation of its
//! own, and declares how far results may be from the exact ones; audits hold it to that. It needs no GPU.

use std::collections::BTreeMap;

use graphable::{
    Passes,
    custom::CustomOp,
    passes::{Bound, Pass, PassFailure, Program},
    prelude::*,
};

/// Counts launches.
struct Counts;

impl Pass for Counts {
    fn name(&self) -> &'static str {
        "counts"
    }

    fn run(&self, program: &Program<'_>) -> Result<(), PassFailure> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for launch in program.launches() {
            *counts.entry(launch.operation()).or_default() += 1;
        }
        for (operation, count) in counts {
            program.note(format_args!("{count} x {operation}"));
        }
        Ok(())
    }
}

/// Replaces `gelu` by `x * sigmoid(1.702 x)`.
struct FastGelu {
    op: CustomOp,
}

impl FastGelu {
    fn new() -> Self {
        // A `.cuda(…)` beside it would be the code for GPUs.
        let op = CustomOp::builder("fast_gelu").cpu(|call| {
            let (x, y) = (call.input::<f32>(0)?, call.output::<f32>(0)?);
            y.iter_mut().zip(x).for_each(|(y, x)| *y = x / (1.0 + (-1.702 * x).exp()));
            Ok(())
        });
        Self { op: op.build() }
    }
}

impl Pass for FastGelu {
    fn name(&self) -> &'static str {
        "fast_gelu"
    }

    /// Of what leaves a recording, which the code after it may have made larger or smaller.
    fn bound(&self) -> Option<Bound> {
        Some(Bound::absolute(0.05))
    }

    fn run(&self, program: &Program<'_>) -> Result<(), PassFailure> {
        for launch in program.launches().filter(|launch| launch.operation() == "gelu") {
            if let ([x], [y]) = (&launch.inputs()[..], &launch.outputs()[..]) {
                let fast = self.op.replacement().input::<f32>(*x).output::<f32>(*y);
                // Of another type or strided, it stays; the report says why.
                let _ = program.replace(&[launch.id()], fast);
            }
        }
        Ok(())
    }
}

/// Weights.
#[derive(Params)]
struct Model {
    up: Param<f32>,
    down: Param<f32>,
}

#[graphable]
fn forward(
    #[host]
    #[dims(B, 4)]
    x: &Tensor<f32>,
    model: &Model,
) -> Result<Tensor<f32>> {
    let h = ops::gelu(&ops::linear(x, &model.up)?)?;
    let z = ops::linear(&h, &model.down)?;
    ops::gelu(&ops::add(&z, x)?)
}

/// Shows what the passes did, and that audits hold them to their word.
pub fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    let weights = |shape: [usize; 2]| {
        let data: Vec<f32> = (0..shape[0] * shape[1]).map(|i| 0.3 * (i as f32).sin()).collect();
        Param::new(&rt, &shape, &data)
    };
    let model = Model { up: weights([8, 4])?, down: weights([4, 8])? };
    // Before the built-in ones, which would have made one operation of `add` and `gelu`.
    let passes = Passes::default().with_at(0, FastGelu::new()).with_at(0, Counts);
    let exact = ForwardGraph::builder().build(&mut rt)?;
    let fast = ForwardGraph::builder().passes(passes).audit_every(2).build(&mut rt)?;
    let x = [0.5, -1.0, 2.0, 0.25];
    for _ in 0..6 {
        let step = rt.step()?;
        let exact = step.read(&exact.call(&step, &x, &model)?)?;
        // An audit that finds more than the bound is an error here.
        let fast = step.read(&fast.call(&step, &x, &model)?)?;
        let furthest = exact.iter().zip(&fast).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        println!("at most {furthest:.4} from the exact results");
    }
    println!("{} audits", rt.stats().audits);
    for report in rt.tree().recordings.iter().flat_map(|node| &node.passes) {
        println!("{report}");
    }
    Ok(())
}
