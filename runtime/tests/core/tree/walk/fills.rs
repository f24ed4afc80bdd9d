//! Inputs of the graphs that are filled in place: calls see what they are given, tensors keep their values, and the
//! data of the last fill is there or not, but never that of an earlier one.

use graphable::{__private::StaticInput, Error, Result, Step};
use rand::{Rng, rngs::StdRng};

use super::{GRAPHS, N, Value, World, random_value};
use crate::support::*;

/// What the inputs of the graphs were filled with last; the oracle of [`StaticInput::filled`].
#[derive(Default)]
pub(super) struct Fills {
    last: [[Option<Value>; 2]; GRAPHS],
    pub(super) made: u64,
    /// Those whose data was there later.
    pub(super) found: u64,
}

impl Fills {
    /// The graph object is made again.
    pub(super) fn forget(&mut self, graph: usize) {
        self.last[graph] = Default::default();
    }
}

impl World {
    /// Sometimes fills an input, with other data before. Returns the tensor if the call is to take it; else the call
    /// needs the memory for its own data.
    pub(super) fn filled<'s>(
        &mut self,
        step: &Step<'s>,
        rng: &mut StdRng,
        (graph, input): (usize, usize),
        value: &Value,
        held: &mut Vec<(T<'s>, Value)>,
    ) -> Result<Option<T<'s>>> {
        if !rng.random_bool(0.25) {
            return Ok(None);
        }
        if rng.random_bool(0.4) {
            let other = random_value(rng);
            let tensor = self.fill(step, rng, (graph, input), &other)?;
            if rng.random() && held.len() < self.holds {
                held.push((tensor, other));
            }
        }
        let tensor = self.fill(step, rng, (graph, input), value)?;
        if rng.random_bool(0.3) && held.len() < self.holds {
            held.push((tensor.clone(), value.clone()));
        }
        Ok(rng.random_bool(0.7).then_some(tensor))
    }

    fn fill<'s>(
        &mut self,
        step: &Step<'s>,
        rng: &mut StdRng,
        (graph, input): (usize, usize),
        value: &Value,
    ) -> Result<T<'s>> {
        let memory = StaticInput::<f32>::new(&self.graphs[graph].function, input);
        let tensor = if rng.random() {
            memory.fill(step, &value[..])?
        } else {
            memory.fill_from(step, &step.tensor(&[N], value)?)?
        };
        assert_eq!(step.read(&tensor)?, **value, "input {input} was filled");
        self.fills.last[graph][input] = Some(value.clone());
        self.fills.made += 1;
        Ok(tensor)
    }

    /// Looks for the data of the last fills.
    pub(super) fn check_fills(&mut self, step: &Step<'_>) -> Result<()> {
        let all = self.graphs.iter().zip(&mut self.fills.last);
        for (graph, last) in all {
            for (input, last) in last.iter_mut().enumerate() {
                match StaticInput::<f32>::new(&graph.function, input).filled(step) {
                    Ok(tensor) => {
                        let last = last.as_ref().expect("what is there was filled, and was not gone before");
                        assert_eq!(step.read(&tensor)?, **last, "the last fill of input {input}");
                        self.fills.found += 1;
                    }
                    // A call needed the memory.
                    Err(Error::Input { .. }) => *last = None,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}
