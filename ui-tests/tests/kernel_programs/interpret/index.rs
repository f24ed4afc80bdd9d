//! What views mean.

use super::{Flow, Run, number, truth};
use crate::program::{Argument, Read, Set, Value, View};

impl Run<'_> {
    fn view(&self, view: usize) -> &View {
        match &self.program.arguments[view] {
            Argument::Tensor(view) => view,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn size(&self, view: usize, axis: usize) -> i64 {
        self.view(view).shown()[axis] as i64
    }

    pub(super) fn read(&mut self, view: usize, read: &Read) -> Value {
        match read {
            Read::Size(axis) => Value::I32(self.size(view, *axis) as i32),
            Read::At(index) => {
                let index: Vec<i128> = index.iter().map(|(_, part)| number(self.one(part))).collect();
                let wrapped =
                    index.iter().enumerate().map(|(axis, at)| at.rem_euclid(self.size(view, axis).into()));
                let place: Vec<usize> = wrapped.map(|at| at as usize).collect();
                self.element(view, &place)
            }
            Read::AtOr(index, other) => {
                let index: Vec<i128> = index.iter().map(|part| number(self.one(part))).collect();
                let other = self.one(other);
                let within =
                    index.iter().enumerate().all(|(axis, at)| (0..self.size(view, axis).into()).contains(at));
                let place: Vec<usize> = index.iter().map(|at| *at as usize).collect();
                if within { self.element(view, &place) } else { other }
            }
        }
    }

    /// The place comes first, then the value; a jump out of the value leaves what was written before.
    pub(super) fn set(&mut self, set: &Set) -> Flow {
        let sizes = self.function.index.as_ref().and_then(|index| index.state.clone()).unwrap_or_default();
        let index: Vec<i128> = set.index.iter().map(|part| number(self.one(part))).collect();
        let within = index.iter().zip(&sizes).all(|(at, size)| (0..*size as i128).contains(at));
        self.written.beyond |= !within;
        if let Some((condition, jump)) = &set.jump
            && truth(self.one(condition))
        {
            return match *jump {
                "break" => Flow::Break(0),
                "continue" => Flow::Continue(0),
                // What a kernel ends with is not written.
                _ => Flow::Return(Vec::new()),
            };
        }
        let value = self.one(&set.value);
        let place = || index.iter().zip(&sizes).fold(0, |place, (at, size)| place * size + *at as usize);
        self.written.last = within.then(|| (place(), value));
        Flow::On
    }

    fn element(&self, view: usize, place: &[usize]) -> Value {
        let ty = self.function.variables[view];
        let element = self.view(view).element(place);
        let bits = crate::values::bits(self.program.seed, view, element, ty.name());
        crate::stored(self.program, Value::of(ty, bits))
    }
}
