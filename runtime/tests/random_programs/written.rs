//! Parameters that are overwritten in place, before any call of a step: recordings stay, and later calls see the new elements.
//! The oracle makes another parameter instead.

use graphable::{Param, Result, Runtime, Step, ops};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use crate::{
    program::{Program, StepPlan},
    value::nonsense,
    world::{World, floats},
};

/// A parameter that is overwritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    /// The call of the step that is made next.
    pub(crate) before: usize,
    pub(crate) param: usize,
    pub(crate) from: From,
    /// Of the elements.
    pub(crate) seed: u64,
}

/// Where the new elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Host,
    Pinned,
    /// A tensor on the device.
    Tensor,
    /// A tensor whose strides are not those of the parameter.
    Strided,
    /// The host, in two parts, the second first.
    Rows,
}

/// Whether the parameters of the program of a seed are overwritten.
fn writes(seed: u64) -> bool {
    seed % 5 < 2
}

/// Adds writes to the steps.
pub(crate) fn draw(steps: &mut [StepPlan], seed: u64, params: usize) {
    if !writes(seed) {
        return;
    }
    let mut own = StdRng::seed_from_u64(seed ^ 0x3717e << 32);
    let often = own.random_bool(0.5);
    for step in steps {
        while own.random_bool(if often { 0.5 } else { 0.2 }) {
            step.writes.push(Write {
                before: own.random_range(0..step.calls.len().max(1)),
                param: own.random_range(0..params),
                from: [From::Host, From::Pinned, From::Tensor, From::Strided, From::Rows]
                    [own.random_range(0..5)],
                seed: own.random(),
            });
        }
    }
}

/// The parameters that the writes of a step make, for the oracle: the call before which each is there, which it is, and itself.
pub(crate) type Versions = Vec<(usize, usize, Param<f32>)>;

pub(crate) fn versions(rt: &Runtime, program: &Program, at: usize) -> Result<Versions> {
    let make = |write: &Write| {
        let shape = &program.params[write.param];
        let values = floats(write.seed, shape.iter().product());
        Ok((write.before, write.param, Param::new(rt, shape, &values)?))
    };
    program.steps[at].writes.iter().map(make).collect()
}

/// Makes the writes of step `at` that come before call `index`.
pub(crate) fn write(
    step: &Step<'_>,
    world: &World,
    program: &Program,
    at: usize,
    index: usize,
) -> Result<()> {
    for write in program.steps[at].writes.iter().filter(|write| write.before == index) {
        let param = world.param(write.param);
        let values = floats(write.seed, param.shape().iter().product());
        write_from(step, world, param, &values, write.from)?;
        if write.seed.is_multiple_of(2) && param.read(step)?.wait()? != values {
            return Err(nonsense(format!("{write:?} is not what is there")));
        }
    }
    Ok(())
}

fn write_from(step: &Step<'_>, world: &World, param: &Param<f32>, values: &[f32], from: From) -> Result<()> {
    let shape = param.shape();
    match from {
        From::Host => param.write(step, values),
        From::Pinned => {
            let mut buffer = world.pinned.borrow_mut();
            buffer.values_mut()?[3..3 + values.len()].copy_from_slice(values);
            param.write(step, buffer.part(3..3 + values.len())?)
        }
        From::Tensor => param.write(step, &step.tensor(shape, values)?),
        From::Strided => {
            let Some((&rows, rest)) = shape.split_first() else { return param.write(step, values) };
            let width: usize = rest.iter().product();
            let turned: Vec<f32> = (0..values.len()).map(|i| values[i % rows * width + i / rows]).collect();
            let turned = ops::transpose(&step.tensor(&[width, rows], &turned)?, 0, 1)?;
            let tensor = if shape.len() == 2 { turned } else { ops::reshape(&turned, shape)? };
            param.write(step, &tensor)
        }
        From::Rows => {
            let Some((&rows, rest)) = shape.split_first() else { return param.write(step, values) };
            let (half, width) = (rows / 2, rest.iter().product::<usize>());
            let (first, second) = values.split_at(half * width);
            param.write_rows(step, half..rows, second)?;
            param.write_rows(step, 0..half, first)
        }
    }
}
