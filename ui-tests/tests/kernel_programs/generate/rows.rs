//! Random kernels of rows.

use rand::{Rng as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};

use super::{Limits, Writer, view};
use crate::program::{
    Argument, Closure, Expr, Fold, Function, Outcome, Pipe, Program, Reduction, RowParts, Statement, Ty, View,
};

/// The program of a seed, whose last function is one of rows.
pub(super) fn program(seed: u64, limits: Limits) -> Program {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut functions = Vec::new();
    for i in 0..rng.random_range(0..=2) {
        let function = Writer::function(&mut rng, &functions, i, limits, Vec::new());
        functions.push(function);
    }
    let reduces = rng.random_bool(0.3);
    let last = Writer::row_function(&mut rng, &functions, reduces, limits, super::randoms(seed));
    let rank = rng.random_range(0..=2);
    let mut shape: Vec<usize> = (0..rank).map(|_| rng.random_range(1..=4)).collect();
    // Several values in a lane, now and then; short rows, too.
    let size = match rng.random_range(0..40) {
        // Several pieces.
        0 => {
            shape.clear();
            rng.random_range(8192..20_000)
        }
        1..4 => {
            shape.truncate(1);
            rng.random_range(1024..2100)
        }
        4..16 => rng.random_range(1..=3),
        _ => rng.random_range(4..=140),
    };
    let back = last.row.as_ref().and_then(|row| row.back).map(|_| rng.random_range(1..=shape.len() + 1));
    let rows = last.row.as_ref().map(|row| row.rows.clone()).unwrap_or_default();
    let mut whole = true;
    let arguments = (0..last.inputs)
        .map(|i| {
            if rows.contains(&i) {
                let first = std::mem::replace(&mut whole, false);
                return Argument::Tensor(row_view(&mut rng, &shape, size, back, first));
            }
            if i > 0 && rng.random_bool(0.3) {
                let bits = crate::values::bits(seed, i, usize::MAX, last.variables[i].name());
                return Argument::Number(bits);
            }
            Argument::Tensor(view(&mut rng, &shape, false))
        })
        .collect();
    let mut last = last;
    if let Some(row) = &mut last.row {
        row.back = back;
    }
    functions.push(last);
    let float = ["f32", "f32", "f16", "bf16"].choose(&mut rng).expect("there are some");
    Program { seed, functions, arguments, float, shape, size }
}

/// A tensor of rows. Of a reduction, all of them have every dimension, of which rows are dimension `back` from the end.
fn row_view(rng: &mut StdRng, shape: &[usize], size: usize, back: Option<usize>, whole: bool) -> View {
    let mut all = shape.to_vec();
    all.push(size);
    let View { shape: mut sizes, mut axes, cut } = view(rng, &all, whole);
    let shown = View { shape: sizes.clone(), axes: axes.clone(), cut }.shown();
    // It shows a part of the shape, at least the rows, without repeating a value of them.
    if shown.last() != Some(&size) || back.is_some() && shown.len() < all.len() {
        (sizes, axes) = (all.clone(), (0..all.len()).collect());
        return moved(View { shape: sizes, axes, cut: None }, back);
    }
    moved(View { shape: sizes, axes, cut }, back)
}

/// The view with its last dimension as dimension `back` from the end.
fn moved(mut view: View, back: Option<usize>) -> View {
    let Some(back) = back else { return view };
    let (from, to) = (view.axes.len() - 1, view.axes.len() - back);
    let axis = view.axes.remove(from);
    view.axes.insert(to, axis);
    view.cut = view.cut.map(|(at, start, len)| match at {
        _ if at == from => (to, start, len),
        _ if at >= to => (at + 1, start, len),
        _ => (at, start, len),
    });
    view
}

impl Writer<'_> {
    fn row_function(
        rng: &mut StdRng,
        callees: &[Function],
        reduces: bool,
        limits: Limits,
        randoms: Vec<usize>,
    ) -> Function {
        let inputs = rng.random_range(1..=4);
        let variables: Vec<Ty> = (0..inputs).map(|_| limits.ty(rng)).collect();
        let first = rng.random_range(0..inputs);
        let rows: Vec<usize> = (0..inputs).filter(|i| *i == first || rng.random_bool(0.5)).collect();
        let names = (0..inputs).map(|i| format!("p{i}")).collect();
        let values: Vec<usize> = (0..inputs).filter(|i| !rows.contains(i)).collect();
        let writer = Writer::new(rng, callees, limits, variables, names);
        let mut writer = Writer { scope: values.clone(), fixed: values, rows, ..writer };
        // Of random numbers, the first are values, and the others rows.
        writer.randoms = if randoms.is_empty() { 0 } else { writer.rng.random_range(0..=randoms.len()) };
        let drawn = (writer.randoms..randoms.len()).map(|i| writer.drawn(i)).collect();
        let mut body = Vec::new();
        let count = writer.rng.random_range(1..=5);
        writer.statements(count, 1, &mut body);
        let (mut outcomes, mut outputs) = (Vec::new(), Vec::new());
        for _ in 0..if writer.rng.random_bool(0.4) { writer.rng.random_range(2..=4) } else { 1 } {
            let ty = limits.ty(writer.rng);
            outputs.push(ty);
            outcomes.push(match !reduces && writer.rng.random_bool(0.6) {
                true => Outcome::Row(writer.pipe(ty)),
                false => Outcome::Value(writer.expr(ty, 3)),
            });
        }
        let Writer { variables, names, fixed, rows: all, .. } = writer;
        let row = Some(RowParts { rows: all, outcomes, drawn, back: reduces.then_some(1) });
        Function {
            name: "k9".into(),
            variables,
            names,
            inputs,
            outputs,
            body,
            results: Vec::new(),
            fixed,
            row,
            index: None,
            randoms,
        }
    }

    /// A row of what a row of random numbers becomes: its variable, and the method.
    fn drawn(&mut self, random: usize) -> (usize, usize, &'static str) {
        let (ty, method) = *[(Ty::U32, "bits"), (Ty::U32, "more_bits"), (Ty::F32, "uniform")]
            .choose(self.rng)
            .expect("there are some");
        self.variables.push(ty);
        let row = self.variables.len() - 1;
        self.names.push(format!("d{row}"));
        self.rows.push(row);
        (random, row, method)
    }

    /// A name for a row, or several values of one.
    pub(super) fn row_statement(&mut self) -> Statement {
        if self.rng.random_bool(0.6) {
            let ty = self.limits.ty(self.rng);
            let pipe = self.pipe(ty);
            self.variables.push(ty);
            let row = self.variables.len() - 1;
            self.names.push(format!("r{row}"));
            // Inside a block its name would end with that.
            self.rows.push(row);
            return Statement::Row(row, pipe);
        }
        let types: Vec<Ty> = (0..self.rng.random_range(2..=4)).map(|_| self.limits.ty(self.rng)).collect();
        let fold = self.fold(&types);
        let mut parts = Vec::new();
        for ty in types {
            let part = self.bind(ty, false);
            self.names[part] = format!("q{part}");
            self.fixed.push(part);
            parts.push(part);
        }
        Statement::Folded(parts, fold)
    }

    /// A single value of a row.
    pub(super) fn of_row(&mut self, ty: Ty, depth: usize) -> Expr {
        let depth = depth.min(2);
        if self.in_closure || self.rng.random_bool(0.3) {
            let fitting: Vec<usize> =
                self.rows.iter().copied().filter(|r| self.variables[*r] == ty).collect();
            let Some(row) = fitting.choose(self.rng).copied() else {
                return match ty {
                    Ty::U32 => {
                        Expr::Row(Box::new(Reduction::Len(*self.rows.choose(self.rng).expect("a row"))))
                    }
                    _ => self.leaf(ty),
                };
            };
            let index = self.expr(Ty::U32, depth);
            return Expr::Row(Box::new(Reduction::At(row, index)));
        }
        let numbers = [Ty::F32, Ty::I32, Ty::U32, Ty::U8, Ty::F64, Ty::I64, Ty::I8];
        let of = *self.limits.of(&numbers, 4).choose(self.rng).expect("there are some");
        let reduction = match (self.rng.random_range(0..5), ty) {
            (0, Ty::U32) => {
                let pipe = self.pipe(of);
                Reduction::Plain(["argmax", "argmin"].choose(self.rng).expect("two"), pipe)
            }
            (1, Ty::U32) => {
                let of = self.limits.ty(self.rng);
                let pipe = self.pipe(of);
                Reduction::Count(pipe, self.closure(&[of], &[Ty::Bool]))
            }
            (2, _) | (_, Ty::Bool) => Reduction::Fold(self.fold(&[ty])),
            _ => {
                let pipe = self.pipe(ty);
                Reduction::Plain(["sum", "sum", "max", "min"].choose(self.rng).expect("some"), pipe)
            }
        };
        Expr::Row(Box::new(reduction))
    }

    fn fold(&mut self, types: &[Ty]) -> Fold {
        let init = types.iter().map(|ty| self.expr(*ty, 1)).collect();
        let of = self.limits.ty(self.rng);
        let pipe = self.pipe(of);
        let step: Vec<Ty> = types.iter().copied().chain([of]).collect();
        let combine = [types, types].concat();
        Fold { pipe, init, step: self.closure(&step, types), combine: self.closure(&combine, types) }
    }

    /// A row of values of one type.
    fn pipe(&mut self, ty: Ty) -> Pipe {
        let count = if self.rng.random_bool(0.6) { 1 } else { self.rng.random_range(2..=3) };
        let rows: Vec<usize> = (0..count).map(|_| *self.rows.choose(self.rng).expect("a row")).collect();
        let numbered = self.rng.random_bool(0.3);
        let mut types: Vec<Ty> = rows.iter().map(|row| self.variables[*row]).collect();
        if numbered {
            types.insert(0, Ty::U32);
        }
        let mut stages = Vec::new();
        if types != [ty] || self.rng.random_bool(0.5) {
            if self.rng.random_bool(0.3) {
                let between: Vec<Ty> =
                    (0..self.rng.random_range(1..=3)).map(|_| self.limits.ty(self.rng)).collect();
                stages.push(self.closure(&types, &between));
                types = between;
            }
            stages.push(self.closure(&types, &[ty]));
        }
        Pipe { rows, numbered, stages }
    }

    fn closure(&mut self, types: &[Ty], results: &[Ty]) -> Closure {
        let (scope, mutable, fixed) = (self.scope.clone(), self.mutable.clone(), self.fixed.clone());
        let (inside, loops) = (self.in_closure, std::mem::take(&mut self.loops));
        self.in_closure = true;
        self.scope.retain(|variable| fixed.contains(variable));
        self.mutable.clear();
        let parameters: Vec<usize> = types
            .iter()
            .map(|ty| {
                let parameter = self.bind(*ty, false);
                self.names[parameter] = format!("v{parameter}");
                parameter
            })
            .collect();
        let body = results.iter().map(|ty| self.expr(*ty, 2)).collect();
        (self.scope, self.mutable, self.fixed) = (scope, mutable, fixed);
        (self.in_closure, self.loops) = (inside, loops);
        Closure { parameters, body }
    }
}
