//! A pass of a user that changes no bit: operations become kernels that compute the same, alone or two at a time.

use graphable::{
    inspect::PassRefusal,
    kernel,
    passes::{KernelReplacement, Launch, Pass, PassFailure, Program, kernel},
};

#[kernel]
fn own_add(a: f32, b: f32) -> f32 {
    a + b
}

#[kernel]
fn own_sub(a: f32, b: f32) -> f32 {
    a - b
}

#[kernel]
fn own_mul(a: f32, b: f32) -> f32 {
    a * b
}

#[kernel]
fn own_neg(a: f32) -> f32 {
    -a
}

#[kernel]
fn own_abs(a: f32) -> f32 {
    a.abs()
}

/// Of a number that the recording fixes, and without one.
fn same(launch: &Launch<'_>) -> Option<KernelReplacement> {
    let kernel = match launch.operation() {
        "add" => kernel::<own_add>(),
        "sub" => kernel::<own_sub>(),
        "mul" => kernel::<own_mul>(),
        "neg" => kernel::<own_neg>(),
        "abs" => kernel::<own_abs>(),
        _ => return None,
    };
    launch.constants().is_empty().then_some(kernel)
}

/// The sum of two results of which one is needed besides.
#[kernel]
fn own_add_twice(a: f32, b: f32, c: f32) -> (f32, f32) {
    let sum = a + b;
    (sum, sum + c)
}

pub(crate) const NAME: &str = "same";

/// Replaces what it knows.
pub(crate) struct Same;

impl Pass for Same {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, program: &Program<'_>) -> Result<(), PassFailure> {
        for launch in program.launches() {
            let Some(mut by) = same(&launch) else { continue };
            if let ("add", [sum, other], [out]) =
                (launch.operation(), &launch.inputs()[..], &launch.outputs()[..])
                && let Some(before) = program.writer(sum).and_then(|id| program.launch(id))
                && before.operation() == "add"
                && let [a, b] = before.inputs()[..]
                && before.outputs().iter().all(|output| program.is_same(output, sum))
            {
                let twice = kernel::<own_add_twice>().input(a).input(b).input(*other);
                let twice = twice.output(before.outputs()[0]).output(*out);
                if program.replace(&[before.id(), launch.id()], twice).is_ok() {
                    continue;
                }
            }
            for input in launch.inputs() {
                by = by.input(input);
            }
            for output in launch.outputs() {
                by = by.output(output);
            }
            match program.replace(&[launch.id()], by) {
                // Integers and floats have operations of one name.
                Ok(())
                | Err(PassRefusal::OtherType | PassRefusal::ReplacedBefore | PassRefusal::PlaceInUse) => {}
                Err(reason) => return Err(format!("{launch:?}: {reason}").into()),
            }
        }
        Ok(())
    }
}
