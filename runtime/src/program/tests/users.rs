//! A pass of a user that replaces whatever it may, by operations that do the same.

use std::{
    collections::BTreeMap,
    hash::Hasher,
    sync::{Arc, Mutex},
};

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{Machine, agrees_after, programs};
use crate::{
    Passes,
    backend::{
        Launch, Op, Operation, View,
        cpu::{Access, Fault},
    },
    observe::inspect::PassRefusal,
    passes::{LaunchId, NewLaunch, Pass, PassFailure, Program, TensorRef},
    program::users::Operands,
};

/// The place of a tensor in a part.
#[derive(Clone, Copy, Debug)]
enum Base {
    Input(usize),
    Output(usize),
    /// Bytes of memory of the operation's own.
    Between(u64),
}

#[derive(Clone, Copy, Debug)]
struct Place {
    base: Base,
    offset: u64,
    view: View,
}

#[derive(Debug)]
struct Part {
    op: Op,
    inputs: Vec<Place>,
    outputs: Vec<Place>,
    workspace: u64,
}

/// Runs launches one after the other.
#[derive(Debug)]
struct Sequence {
    parts: Vec<Part>,
    between: u64,
}

impl Operation for Sequence {
    fn name(&self) -> &'static str {
        "sequence"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write(format!("{self:?}").as_bytes());
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        access.in_parts(self.between as usize, |between, parts| {
            let view = |place: &Place| {
                let addr = match place.base {
                    Base::Input(index) => launch.inputs[index].addr,
                    Base::Output(index) => launch.outputs[index].addr,
                    Base::Between(at) => between + at,
                };
                View { addr: addr + place.offset, ..place.view }
            };
            for part in &self.parts {
                let launch = Launch {
                    op: part.op.clone(),
                    inputs: part.inputs.iter().map(view).collect(),
                    outputs: part.outputs.iter().map(view).collect(),
                    workspace: between + part.workspace,
                };
                parts.run(|access| part.op.operation().run_cpu(access, &launch))?;
            }
            Ok(())
        })
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(
        &self,
        _: &mut dyn crate::backend::cuda::kernels::Submit,
        _: &Launch,
    ) -> crate::Result<()> {
        unreachable!("of the CPU")
    }
}

/// Replaces launches at random, and counts what became of it.
struct Regroups {
    rng: Mutex<StdRng>,
    done: Mutex<BTreeMap<String, usize>>,
}

impl Pass for Regroups {
    fn name(&self) -> &'static str {
        "regroups"
    }

    fn run(&self, program: &Program<'_>) -> Result<(), PassFailure> {
        // Parts have no parts.
        let all = program.launches().filter(|launch| launch.operation() != "fused_product");
        let all: Vec<LaunchId> = all.map(|launch| launch.id()).collect();
        let rng = &mut *self.rng.lock().unwrap();
        for _ in 0..all.len() {
            let mut at = rng.random_range(0..all.len());
            let mut members = Vec::new();
            for _ in 0..rng.random_range(1..4) {
                members.extend(all.get(at));
                at += rng.random_range(1..3);
            }
            let outcome = program.replace(&members, sequence(program, &members, rng));
            let outcome = outcome.map_or_else(|reason| format!("{reason:?}"), |()| "done".to_owned());
            *self.done.lock().unwrap().entry(outcome).or_default() += 1;
        }
        Ok(())
    }
}

/// The launches one after the other, as one. Its outputs are mostly those that are needed.
fn sequence(program: &Program<'_>, members: &[LaunchId], rng: &mut StdRng) -> NewLaunch {
    let mut operands = Operands::default();
    let (mut inputs, mut outputs) = (0, 0);
    let mut parts: Vec<Part> = Vec::new();
    let mut between = 0;
    let mut own = |bytes: u64| {
        between += bytes.next_multiple_of(64);
        between - bytes.next_multiple_of(64)
    };
    for id in members {
        let launch = program.launch(*id).unwrap();
        let mut places: Vec<Place> = Vec::new();
        for tensor in launch.inputs() {
            let made = producer(program, members, &parts, &tensor).unwrap_or_else(|| {
                operands.input(tensor, tensor.dtype());
                inputs += 1;
                Place { base: Base::Input(inputs - 1), offset: 0, view: tensor.view() }
            });
            places.push(made);
        }
        let mut written: Vec<Place> = Vec::new();
        for tensor in launch.outputs() {
            let is_needed = program.lasts(&tensor)
                || program.readers(&tensor).iter().any(|reader| !members.contains(reader));
            let (start, end) = tensor.view().range();
            let base = if is_needed != (rng.random_range(0..20) == 0) {
                operands.output(tensor, tensor.dtype());
                outputs += 1;
                Base::Output(outputs - 1)
            } else {
                Base::Between(own(end - start))
            };
            written.push(Place { base, offset: 0, view: tensor.view() });
        }
        let workspace = own(256);
        parts.push(Part { op: launch.launch.op.clone(), inputs: places, outputs: written, workspace });
    }
    operands.launch("sequence", || Sequence { parts, between }.into())
}

/// The place where an earlier part puts a tensor.
fn producer(
    program: &Program<'_>,
    members: &[LaunchId],
    parts: &[Part],
    tensor: &TensorRef,
) -> Option<Place> {
    let writer = program.writer(tensor)?;
    let part = parts.get(members.iter().position(|member| *member == writer)?)?;
    let (view, outputs) = (tensor.view(), program.launch(writer)?.outputs());
    let is_inside =
        |output: &TensorRef| output.view().addr <= view.addr && view.range().1 <= output.view().range().1;
    let output = outputs.iter().rposition(is_inside)?;
    let offset = view.addr - outputs[output].view().addr;
    Some(Place { base: part.outputs[output].base, offset, view })
}

#[test]
fn replacing_what_may_be_replaced_changes_no_byte() {
    let mut machine = Machine::new();
    let pass = Arc::new(Regroups { rng: Mutex::new(StdRng::seed_from_u64(3)), done: Mutex::default() });
    let mut gone = 0;
    for seed in 0..programs() {
        let passes = match seed % 3 {
            0 => Passes::none().with(Arc::clone(&pass)),
            1 => Passes::default().with(Arc::clone(&pass)),
            _ => Passes::default().with_at(0, Arc::clone(&pass)),
        };
        let (same, joined) = agrees_after(&mut machine, seed, &passes);
        assert!(same, "seed {seed}");
        gone += joined;
    }
    let done = pass.done.lock().unwrap();
    let least = |what: &str, count: usize| {
        let found = done.get(what).copied().unwrap_or_default();
        assert!(found >= count, "{what}: {found} of {done:?}");
    };
    // Otherwise, it shows nothing.
    least("done", 5000);
    for reason in [
        PassRefusal::WrittenBetween,
        PassRefusal::ReadBetween,
        PassRefusal::PlaceInUse,
        PassRefusal::MadeInside,
        PassRefusal::MissingResult,
        PassRefusal::WritesInPlace,
        PassRefusal::ReplacedBefore,
    ] {
        least(&format!("{reason:?}"), 1);
    }
    assert!(gone > 3000, "{gone}");
}
