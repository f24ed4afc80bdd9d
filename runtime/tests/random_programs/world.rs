//! What a program works on: parameters, state, and the data of its inputs. Made from seeds, so that
//! every run sees the same.

use std::cell::{Cell, RefCell};

use graphable::{LogReader, Param, PinnedBuffer, PinnedLog, Result, Rng, Runtime, State, Step, Weight, ops};
use rand::{Rng as _, SeedableRng, rngs::StdRng};

use crate::{
    blocks,
    logged::ROOM,
    program::{Arg, Block, Elem, Input, Program, Size, Ty},
    stated::MARKS,
    value::{End, Flat, OwnedRef, Val, nonsense},
};

/// Parameters and state on one runtime.
pub(crate) struct World {
    params: Vec<Param<f32>>,
    states: Vec<State<f32>>,
    generators: Vec<Rng>,
    marks: Vec<State<bool>>,
    logs: Vec<PinnedLog<f32>>,
    /// What parameters are overwritten with, from the fourth element on.
    pub(crate) pinned: RefCell<PinnedBuffer<f32>>,
    blocks: Vec<Weight<f32>>,
}

/// Readers of the logs, which began before the first call of a step.
pub(crate) struct Readers(Vec<LogReader<f32>>);

pub(crate) fn floats(seed: u64, count: usize) -> Vec<f32> {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..count).map(|_| rng.random_range(-1.0..1.0)).collect()
}

impl World {
    pub(crate) fn new(rt: &Runtime, program: &Program) -> Result<Self> {
        let params = (0..program.params.len()).map(|i| param(rt, program, i, 0)).collect::<Result<_>>()?;
        let states = program
            .states
            .iter()
            .enumerate()
            .map(|(i, shape)| {
                State::new(rt, shape, &floats(program.seed ^ (1000 + i as u64), shape.iter().product()))
            })
            .collect::<Result<_>>()?;
        let generators = (0..program.generators as u64).map(|i| Rng::new(rt, program.seed ^ i << 40));
        let generators = generators.collect::<Result<_>>()?;
        let marks = (0..program.marks).map(|_| State::zeros(rt, &MARKS)).collect::<Result<_>>()?;
        let logs = (0..program.logs).map(|_| PinnedLog::new(rt, ROOM)).collect::<Result<_>>()?;
        let writes = program.steps.iter().flat_map(|step| &step.writes);
        let most = writes.map(|write| program.params[write.param].iter().product()).max().unwrap_or(0);
        let pinned = RefCell::new(PinnedBuffer::zeros(rt, 3 + most)?);
        let blocks =
            (0..program.blocks.len()).map(|i| blocks_of(rt, program, i, 0)).collect::<Result<_>>()?;
        Ok(Self { params, states, generators, marks, logs, pinned, blocks })
    }

    /// Drops the parameters that step `at` replaces, and makes new ones.
    pub(crate) fn replace(&mut self, rt: &Runtime, program: &Program, at: usize) -> Result<()> {
        for &i in &program.steps[at].replace {
            if i < self.params.len() {
                self.params[i] = param(rt, program, i, at as u64 + 1)?;
            }
            // The weight in blocks of this number, too.
            if i < self.blocks.len() {
                self.blocks[i] = blocks_of(rt, program, i, at as u64 + 1)?;
            }
        }
        Ok(())
    }

    pub(crate) fn param(&self, i: usize) -> &Param<f32> {
        &self.params[i]
    }

    /// Puts another parameter in the place of one.
    pub(crate) fn put_param(&mut self, i: usize, param: Param<f32>) {
        self.params[i] = param;
    }

    pub(crate) fn owned(&self, block: &Block) -> Result<Vec<(Arg, OwnedRef<'_>)>> {
        let find = |arg: Arg| match arg {
            Arg::Param(i) => self.params.get(i).map(OwnedRef::Param),
            Arg::State(i) => self.states.get(i).map(OwnedRef::State),
            Arg::Generator(i) => self.generators.get(i).map(OwnedRef::Generator),
            Arg::Marks(i) => self.marks.get(i).map(OwnedRef::Marks),
            Arg::Log(i) => self.logs.get(i).map(OwnedRef::Log),
            Arg::Blocks(i) => self.blocks.get(i).map(OwnedRef::Blocks),
            Arg::Local(_) => None,
        };
        let missing = |arg| nonsense(format!("{arg:?} is not there"));
        block.owned().into_iter().map(|arg| Ok((arg, find(arg).ok_or_else(|| missing(arg))?))).collect()
    }

    /// Everything, for the key of full mode.
    pub(crate) fn all(&self) -> Vec<OwnedRef<'_>> {
        let changing =
            self.states.iter().map(OwnedRef::State).chain(self.generators.iter().map(OwnedRef::Generator));
        let marks = self.marks.iter().map(OwnedRef::Marks).chain(self.logs.iter().map(OwnedRef::Log));
        let weights = self.params.iter().map(OwnedRef::Param).chain(self.blocks.iter().map(OwnedRef::Blocks));
        // One that is passed for two parameters.
        let again = self.states.first().filter(|_| self.states.len().is_multiple_of(2)).map(OwnedRef::State);
        weights.chain(again).chain(changing).chain(marks).collect()
    }

    /// Begins to read what the calls of a step append to the logs.
    pub(crate) fn readers(&self, step: &Step<'_>) -> Result<Readers> {
        self.logs.iter().map(|log| log.reader(step)).collect::<Result<_>>().map(Readers)
    }

    /// What every state and every generator holds now, and what was appended to the logs.
    pub(crate) fn states<'s>(&self, step: &Step<'s>, readers: Readers) -> Result<Vec<Flat>> {
        // All that was appended is there when what was launched after it has ended.
        let mut states = self.owned_states(step)?;
        step.synchronize()?;
        for mut reader in readers.0 {
            let bits: Vec<u64> = reader.take()?.into_iter().map(|v| v.to_bits().into()).collect();
            states.push(Flat { elem: Elem::F32, shape: vec![bits.len()], bits });
        }
        Ok(states)
    }

    fn owned_states<'s>(&self, step: &Step<'s>) -> Result<Vec<Flat>> {
        let states = self.states.iter().map(|s| Ok(Val::F(ops::load(step.scope(), s)?)));
        let generators = self.generators.iter().map(|g| Ok(Val::U(ops::rng_state(g, step.scope())?)));
        let marks = self.marks.iter().map(|m| Ok(Val::B(ops::load(step.scope(), m)?)));
        states.chain(generators).chain(marks).map(|val: Result<Val<'s>>| val?.read(step)).collect()
    }
}

fn param(rt: &Runtime, program: &Program, i: usize, version: u64) -> Result<Param<f32>> {
    let shape = &program.params[i];
    let seed = program.seed ^ (version << 32) ^ (i as u64 + 1);
    Param::new(rt, shape, &floats(seed, shape.iter().product()))
}

fn blocks_of(rt: &Runtime, program: &Program, i: usize, version: u64) -> Result<Weight<f32>> {
    blocks::weight(rt, program.blocks[i], program.seed ^ (version << 32) ^ (i as u64 + 1) << 20)
}

/// Sizes of an input in a call with this `B`.
pub(crate) fn shape_of(ty: &Ty, b: usize) -> Vec<usize> {
    ty.dims
        .iter()
        .map(|d| match d {
            Size::B => b,
            Size::N(n) => *n,
            Size::V => grown(),
        })
        .collect()
}

thread_local! {
    static GROWN: Cell<usize> = const { Cell::new(1) };
}

/// The size `V` of the running step.
pub(crate) fn grown() -> usize {
    GROWN.get()
}

/// The size `V` is this from now on.
pub(crate) fn grow(v: usize) {
    GROWN.set(v);
}

/// Data of an input.
pub(crate) enum Data {
    F(Vec<f32>),
    U(Vec<u32>),
}

pub(crate) fn data_of(input: &Input, b: usize, seed: u64) -> Data {
    let count = shape_of(&input.ty, b).iter().product();
    match input.ty.elem {
        Elem::U32 => {
            let mut rng = StdRng::seed_from_u64(seed);
            let bound = input.ty.bound.max(1) as u32;
            Data::U((0..count).map(|_| rng.random_range(0..bound)).collect())
        }
        _ => Data::F(floats(seed, count)),
    }
}

/// The seed of input `input` of call `call` in a step.
pub(crate) fn seed_of(data: u64, call: usize, input: usize) -> u64 {
    data.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ ((call as u64) << 8 | input as u64)
}

/// Uploads data as a tensor.
pub(crate) fn upload<'s>(step: &Step<'s>, shape: &[usize], data: &Data) -> Result<Val<'s>> {
    Ok(match data {
        Data::F(d) => Val::F(step.tensor(shape, d)?),
        Data::U(d) => Val::U(step.tensor(shape, d)?),
    })
}

/// What happens to a result that is used by a later call, between the calls.
pub(crate) fn derive<'s>(val: &Val<'s>) -> Result<Val<'s>> {
    Ok(match val {
        Val::F(t) => Val::F(ops::tanh(t)?),
        Val::H(t) => Val::H(ops::tanh(t)?),
        other => other.clone(),
    })
}

/// What a run gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StepOut {
    /// Outputs of each call.
    pub(crate) calls: Vec<Vec<Flat>>,
    /// State at the end.
    pub(crate) states: Vec<Flat>,
    /// What the driver decided by values.
    pub(crate) decisions: Vec<u64>,
    /// How each call ended that gave nothing.
    pub(crate) ends: Vec<Option<End>>,
}
