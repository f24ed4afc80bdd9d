//! What rows mean: the guide's definition, once more.

use super::{Run, Written, binary, method, random, range, truth, wrapped};
use crate::program::{Closure, Fold, Outcome, Pipe, Program, Reduction, Ty, Value};

/// Values of a piece, and lanes of its reduction.
const PIECE: usize = 8192;
const LANES: usize = 1024;

/// The results of the last function for the row with this number: of each parameter the values of its row, or one value.
pub(crate) fn row_results(program: &Program, inputs: &[Vec<Value>], number: u64) -> Vec<Vec<Value>> {
    let function = program.last();
    let count = function.variables.len();
    let parts = function.row.as_ref().expect("a function of rows");
    let mut run = Run {
        program,
        function,
        values: vec![Value::Bool(false); count],
        rows: vec![Vec::new(); count],
        element: number,
        written: Written::default(),
    };
    for (i, input) in inputs.iter().enumerate() {
        match parts.rows.contains(&i) {
            true => run.rows[i] = input.clone(),
            false => run.values[i] = input[0],
        }
    }
    let size = program.size as u64;
    for (at, row, name) in &parts.drawn {
        let drawn = |i| random::method(program, *at, number * size + i, name, None);
        run.rows[*row] = (0..size).map(drawn).collect();
    }
    run.statements(&function.body);
    let outcomes = parts.outcomes.iter().map(|outcome| match outcome {
        Outcome::Value(value) => vec![run.one(value)],
        Outcome::Row(pipe) => run.row(pipe),
    });
    outcomes.collect()
}

impl Run<'_> {
    fn closure(&mut self, closure: &Closure, values: &[Value]) -> Vec<Value> {
        for (parameter, value) in closure.parameters.iter().zip(values) {
            self.values[*parameter] = *value;
        }
        closure.body.iter().map(|value| self.one(value)).collect()
    }

    /// All parts of all values of a row.
    fn parts(&mut self, pipe: &Pipe) -> Vec<Vec<Value>> {
        (0..self.rows[pipe.rows[0]].len())
            .map(|i| {
                let mut parts = if pipe.numbered { vec![Value::U32(i as u32)] } else { Vec::new() };
                parts.extend(pipe.rows.iter().map(|row| self.rows[*row][i]));
                for stage in &pipe.stages {
                    parts = self.closure(stage, &parts);
                }
                parts
            })
            .collect()
    }

    pub(super) fn row(&mut self, pipe: &Pipe) -> Vec<Value> {
        self.parts(pipe).into_iter().map(|parts| parts[0]).collect()
    }

    pub(super) fn folded(&mut self, fold: &Fold) -> Vec<Value> {
        let init: Vec<Value> = fold.init.iter().map(|value| self.one(value)).collect();
        let values = self.parts(&fold.pipe);
        let mut pieces = Vec::new();
        for piece in values.chunks(PIECE) {
            let mut lanes: Vec<Vec<Value>> = Vec::new();
            for lane in 0..piece.len().min(LANES) {
                let mut result = init.clone();
                for value in piece.iter().skip(lane).step_by(LANES) {
                    result = self.closure(&fold.step, &[&result[..], value].concat());
                }
                lanes.push(result);
            }
            pieces.push(self.combined(&fold.combine, &lanes));
        }
        if pieces.is_empty() { init } else { self.combined(&fold.combine, &pieces) }
    }

    /// Neighbours first: the largest power of two of the lanes, then the others.
    fn combined(&mut self, combine: &Closure, lanes: &[Vec<Value>]) -> Vec<Value> {
        if let [one] = lanes {
            return one.clone();
        }
        let (left, right) = lanes.split_at(lanes.len().next_power_of_two() / 2);
        let left = self.combined(combine, left);
        let right = self.combined(combine, right);
        self.closure(combine, &[left, right].concat())
    }

    pub(super) fn reduced(&mut self, reduction: &Reduction) -> Value {
        match reduction {
            Reduction::Len(row) => Value::U32(self.rows[*row].len() as u32),
            Reduction::At(row, index) => {
                let index = self.one(index).bits() as usize;
                self.rows[*row][index % self.rows[*row].len()]
            }
            Reduction::Fold(fold) => self.folded(fold)[0],
            Reduction::Count(pipe, condition) => {
                let values = self.row(pipe);
                let fulfil = values.iter().filter(|value| truth(self.closure(condition, &[**value])[0]));
                Value::U32(fulfil.count() as u32)
            }
            Reduction::Plain(name, pipe) => {
                let values = self.row(pipe);
                plain(name, &values)
            }
        }
    }
}

fn plain(name: &str, values: &[Value]) -> Value {
    if let "argmax" | "argmin" = name {
        let sign = if name == "argmax" { ">" } else { "<" };
        let mut best: Option<usize> = None;
        for (i, value) in values.iter().enumerate() {
            if !value.is_nan() && best.is_none_or(|best| truth(binary(sign, *value, values[best]))) {
                best = Some(i);
            }
        }
        return Value::U32(best.unwrap_or(0) as u32);
    }
    let ty = values[0].ty();
    // Every value counts once: integers wrap, and the largest of some is the largest of all, in any order.
    if !ty.is_float() || name != "sum" {
        let numbers = values.iter().copied().filter(|value| !value.is_nan());
        let first = match (name, ty) {
            ("max", Ty::F32) => Value::F32(f32::NEG_INFINITY),
            ("min", Ty::F32) => Value::F32(f32::INFINITY),
            ("max", Ty::F64) => Value::F64(f64::NEG_INFINITY),
            ("min", Ty::F64) => Value::F64(f64::INFINITY),
            ("max", _) => wrapped(ty, range(ty).0),
            ("min", _) => wrapped(ty, range(ty).1),
            _ => Value::of(ty, 0),
        };
        return numbers.fold(first, |best, value| match name {
            "sum" => binary("+", best, value),
            _ => method(name, &[best, value]),
        });
    }
    let pieces = values.chunks(PIECE).map(|piece| {
        let mut lanes: Vec<Value> = Vec::new();
        for (i, value) in piece.iter().enumerate() {
            match lanes.get_mut(i % LANES) {
                Some(lane) => *lane = binary("+", *lane, *value),
                None => lanes.push(binary("+", Value::of(ty, 0), *value)),
            }
        }
        tree(&lanes)
    });
    let pieces: Vec<Value> = pieces.collect();
    tree(&pieces)
}

fn tree(lanes: &[Value]) -> Value {
    match lanes {
        [one] => *one,
        _ => {
            let (left, right) = lanes.split_at(lanes.len().next_power_of_two() / 2);
            binary("+", tree(left), tree(right))
        }
    }
}
