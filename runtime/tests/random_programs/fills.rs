//! Inputs that are filled in place, before a call that takes them or another one: whatever is filled, held or refused
//! by the device, calls see the data that they are given, tensors keep their values, and the data of the last fill is
//! there or not, but never that of an earlier one.

use std::{cell::RefCell, collections::HashMap, sync::Arc};

use graphable::{
    __private::{GraphObject, StaticInput},
    Element, Error, Result, Step, Tensor,
    backend::faulty::{FaultCall, FaultPlan},
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    program::{Call, Elem, Fill, Func, Kind, StepPlan},
    value::{Flat, Val, nonsense},
    world::{Data, data_of, shape_of, upload},
};

/// What a fill can meet.
const FAULTS: [FaultCall; 4] = [FaultCall::Alloc, FaultCall::HostWrite, FaultCall::Copy, FaultCall::Launch];

/// Draws fills for the calls of a program, by a generator of their own: the rest is what it was without them.
pub(crate) fn draw(steps: &mut [StepPlan], funcs: &[Func], seed: u64) {
    if !seed.is_multiple_of(3) {
        return;
    }
    let rng = &mut StdRng::seed_from_u64(seed ^ 0xf111);
    for call in steps.iter_mut().flat_map(|step| &mut step.calls) {
        for (i, input) in funcs[call.func].inputs.iter().enumerate() {
            if input.kind == Kind::Scalar || rng.random_bool(0.4) {
                continue;
            }
            let fill = Fill {
                input: i,
                earlier: (0..rng.random_range(0..3)).map(|_| (rng.random(), rng.random_bool(0.5))).collect(),
                given: rng.random_bool(0.6),
                held: rng.random_bool(0.4),
                fault: rng.random_bool(0.2).then(|| rng.random_range(0..FAULTS.len())),
            };
            call.fills.push(fill);
        }
    }
}

/// What an input is given.
pub(crate) struct Given<'a, 's> {
    pub(crate) input: usize,
    pub(crate) tensor: &'a Val<'s>,
    /// The same data on the host, and its shape, if it comes from there.
    pub(crate) data: Option<(Data, &'a [usize])>,
}

/// The fills of one graph object.
pub(crate) struct Fills {
    faults: Arc<FaultPlan>,
    /// The data of the last fill of each input, until it is gone.
    last: RefCell<HashMap<usize, Flat>>,
}

/// Tensors that fills returned, and their values.
pub(crate) type Filled<'s> = RefCell<Vec<(Val<'s>, Flat)>>;

impl Fills {
    pub(crate) fn new(faults: &Arc<FaultPlan>) -> Self {
        Self { faults: Arc::clone(faults), last: RefCell::default() }
    }

    /// For another graph object of the function.
    pub(crate) fn another(&self) -> Self {
        Self::new(&self.faults)
    }

    /// Fills an input as the program says. Returns the tensor for the call, if it takes one that was filled with the
    /// data given.
    pub(crate) fn fill<'s>(
        &self,
        step: &Step<'s>,
        graph: &GraphObject,
        (func, call): (&Func, &Call),
        given: &Given<'_, 's>,
        filled: &Filled<'s>,
    ) -> Result<Option<Val<'s>>> {
        let i = given.input;
        let Some(fill) = call.fills.iter().find(|fill| fill.input == i) else { return Ok(None) };
        let input = &func.inputs[i];
        for &(seed, held) in &fill.earlier {
            let b = 1 + (seed % 7) as usize;
            let (shape, data) = (shape_of(&input.ty, b), data_of(input, b, seed));
            let other = self.write(step, graph, i, &data, &shape)?;
            self.note(step, i, other, &upload(step, &shape, &data)?.read(step)?, held, filled)?;
        }
        if let Some(fault) = fill.fault {
            self.faults.arm(Some(FAULTS[fault]), 0, false);
            let result = self.write_given(step, graph, given);
            let met = !self.faults.disarm();
            if met != result.is_err() {
                return Err(nonsense(format!("a fill met a fault: {met}, and gave {result:?}")));
            }
            match result {
                Ok(tensor) => self.note(step, i, tensor, &given.tensor.read(step)?, false, filled)?,
                // The memory of the last fill was taken for this one, or was not.
                Err(_) => self.forget_if_gone(step, graph, i, input.ty.elem),
            }
        }
        if !fill.given {
            return Ok(None);
        }
        let tensor = self.write_given(step, graph, given)?;
        self.note(step, i, tensor.clone(), &given.tensor.read(step)?, fill.held, filled)?;
        Ok(Some(tensor))
    }

    fn write_given<'s>(
        &self,
        step: &Step<'s>,
        graph: &GraphObject,
        given: &Given<'_, 's>,
    ) -> Result<Val<'s>> {
        match &given.data {
            Some((data, shape)) => self.write(step, graph, given.input, data, shape),
            None => self.copy(step, graph, given.input, given.tensor),
        }
    }

    fn write<'s>(
        &self,
        step: &Step<'s>,
        graph: &GraphObject,
        i: usize,
        data: &Data,
        shape: &[usize],
    ) -> Result<Val<'s>> {
        Ok(match data {
            Data::F(d) => Val::F(StaticInput::new(graph, i).fill(step, (&d[..], shape))?),
            Data::U(d) => Val::U(StaticInput::new(graph, i).fill(step, (&d[..], shape))?),
        })
    }

    fn copy<'s>(&self, step: &Step<'s>, graph: &GraphObject, i: usize, val: &Val<'s>) -> Result<Val<'s>> {
        Ok(match val {
            Val::F(t) => Val::F(StaticInput::new(graph, i).fill_from(step, t)?),
            Val::U(t) => Val::U(StaticInput::new(graph, i).fill_from(step, t)?),
            _ => return Err(nonsense("no input has these elements".to_owned())),
        })
    }

    /// A fill came through: it is the last one.
    fn note<'s>(
        &self,
        step: &Step<'s>,
        i: usize,
        tensor: Val<'s>,
        values: &Flat,
        held: bool,
        filled: &Filled<'s>,
    ) -> Result<()> {
        let read = tensor.read(step)?;
        if read != *values {
            return Err(nonsense(format!("input {i} was filled with {values:?} and shows {read:?}")));
        }
        self.last.borrow_mut().insert(i, read.clone());
        if held {
            filled.borrow_mut().push((tensor, read));
        }
        Ok(())
    }

    fn forget_if_gone(&self, step: &Step<'_>, graph: &GraphObject, i: usize, elem: Elem) {
        if self.now(step, graph, i, elem).is_err() {
            self.last.borrow_mut().remove(&i);
        }
    }

    /// The data of the last fill, as the runtime has it.
    fn now(&self, step: &Step<'_>, graph: &GraphObject, i: usize, elem: Elem) -> Result<Flat> {
        fn last<'s, T: Element>(step: &Step<'s>, graph: &GraphObject, i: usize) -> Result<Tensor<'s, T>> {
            StaticInput::new(graph, i).filled(step)
        }
        match elem {
            Elem::U32 => Val::U(last(step, graph, i)?).read(step),
            _ => Val::F(last(step, graph, i)?).read(step),
        }
    }

    /// Checks the last fill of every input: its data is there, or an error says that it is not.
    pub(crate) fn check(&self, step: &Step<'_>, graph: &GraphObject, func: &Func) -> Result<()> {
        for (i, input) in func.inputs.iter().enumerate().filter(|(_, input)| input.kind != Kind::Scalar) {
            let known = self.last.borrow().get(&i).cloned();
            match (self.now(step, graph, i, input.ty.elem), known) {
                (Err(Error::Input { .. }), _) => _ = self.last.borrow_mut().remove(&i),
                (Err(error), _) => return Err(error),
                (Ok(now), Some(known)) if now == known => {}
                (Ok(now), known) => {
                    return Err(nonsense(format!("the last fill of input {i} was {known:?}, not {now:?}")));
                }
            }
        }
        Ok(())
    }
}

/// Checks that tensors of fills kept their values.
pub(crate) fn check_held<'s>(step: &Step<'s>, filled: &Filled<'s>) -> Result<()> {
    for (tensor, values) in &*filled.borrow() {
        let now = tensor.read(step)?;
        if now != *values {
            return Err(nonsense(format!("a tensor of a fill was {values:?} and is {now:?}")));
        }
    }
    Ok(())
}
