//! Random kernels of indices.

use rand::{Rng as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};

use super::{Limits, Writer, randoms, view};
use crate::program::{
    Argument, Expr, Function, IndexParts, Loop, Program, Read, Set, Statement, Ty, Value, View,
};

/// The program of a seed, whose last function is one of an index.
pub(super) fn program(seed: u64, limits: Limits) -> Program {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut functions = Vec::new();
    for i in 0..rng.random_range(0..=2) {
        let function = Writer::function(&mut rng, &functions, i, limits, Vec::new());
        functions.push(function);
    }
    let rank = rng.random_range(1..=3);
    let sizes = if rank == 1 { 1..=60 } else { 1..=8 };
    let mut shape: Vec<usize> = (0..rank).map(|_| rng.random_range(sizes.clone())).collect();
    // Enough for several tasks, and more than one block, now and then.
    if rank == 2 && rng.random_bool(0.2) {
        shape = vec![rng.random_range(1..=13), 700];
    }
    let inputs = rng.random_range(0..=4);
    let views: Vec<(usize, View)> = (0..inputs)
        .filter_map(|i| {
            let rank = rng.random_range(1..=3);
            let sizes: Vec<usize> = (0..rank).map(|_| rng.random_range(1..=6)).collect();
            rng.random_bool(0.7).then(|| (i, view(&mut rng, &sizes, true)))
        })
        .collect();
    // Every other one writes a state.
    let state = (seed % 10 == 4).then(|| {
        let rank = rng.random_range(1..=3);
        (0..rank).map(|_| rng.random_range(1..=7)).collect()
    });
    let dimensions: Vec<(usize, usize)> = views.iter().map(|(i, view)| (*i, view.axes.len())).collect();
    let indexed = views.iter().map(|(i, _)| *i).collect();
    let last = Writer::index_function(
        &mut rng,
        &functions,
        inputs,
        dimensions,
        IndexParts { views: indexed, rank, state },
        (limits, randoms(seed)),
    );
    let arguments = (0..inputs)
        .map(|i| match views.iter().find(|(view, _)| *view == i) {
            Some((_, view)) => Argument::Tensor(view.clone()),
            None if rng.random_bool(0.5) => {
                Argument::Number(crate::values::bits(seed, i, usize::MAX, last.variables[i].name()))
            }
            None => {
                let shape = vec![1; rng.random_range(0..=2)];
                Argument::Tensor(View { axes: (0..shape.len()).collect(), shape, cut: None })
            }
        })
        .collect();
    functions.push(last);
    let float = ["f32", "f32", "f16", "bf16"].choose(&mut rng).expect("there are some");
    Program { seed, functions, arguments, float, shape, size: 1 }
}

impl Writer<'_> {
    /// A function of an index; `views` are parameters and their dimensions.
    fn index_function(
        rng: &mut StdRng,
        callees: &[Function],
        inputs: usize,
        views: Vec<(usize, usize)>,
        parts: IndexParts,
        (limits, randoms): (Limits, Vec<usize>),
    ) -> Function {
        let mut variables: Vec<Ty> = (0..inputs).map(|_| limits.ty(rng)).collect();
        let mut names: Vec<String> = (0..inputs).map(|i| format!("p{i}")).collect();
        let rank = parts.rank;
        variables.extend(vec![Ty::I32; rank]);
        names.extend((0..rank).map(|i| format!("i{i}")));
        let is_view = |i: &usize| views.iter().any(|(view, _)| view == i);
        let scope = (0..inputs + rank).filter(|i| !is_view(i)).collect();
        let outputs: Vec<Ty> = match &parts.state {
            None => (0..if rng.random_bool(0.25) { rng.random_range(2..=4) } else { 1 })
                .map(|_| limits.ty(rng))
                .collect(),
            Some(sizes) => std::iter::once(Ty::Bool)
                .chain(sizes.iter().map(|_| Ty::I32))
                .chain([limits.ty(rng)])
                .collect(),
        };
        let (state, index) = (parts.state.clone(), Some(parts));
        let writer = Writer::new(rng, callees, limits, variables, names);
        let mut writer = Writer { scope, outputs: outputs.clone(), views, state, ..writer };
        writer.randoms = randoms.len();
        let mut body = Vec::new();
        let count = writer.rng.random_range(0..=4);
        writer.statements(count, 2, &mut body);
        let results = outputs.iter().map(|ty| writer.expr(*ty, 4)).collect();
        let Writer { variables, names, .. } = writer;
        let (name, fixed, row) = ("k9".into(), Vec::new(), None);
        Function { name, variables, names, inputs, outputs, body, results, fixed, randoms, row, index }
    }

    /// A write of the state: mostly near the element, now and then out of range, and of a value that may jump.
    pub(super) fn set(&mut self) -> Statement {
        let rank = self.state.as_ref().map_or(0, Vec::len);
        let ty = *self.outputs.last().expect("there is a value");
        let index = (0..rank)
            .map(|_| match self.part(1) {
                (ty, part) if self.rng.random_bool(0.6) => {
                    let size = Expr::Literal(Value::of(ty, self.rng.random_range(1..4)));
                    Expr::Method("rem_euclid", vec![part, size])
                }
                (_, part) => part,
            })
            .collect();
        let jumps: &[&'static str] =
            if self.loops > 0 { &["break", "continue", "return"] } else { &["return"] };
        let jump = self.rng.random_bool(if self.loops > 0 { 0.5 } else { 0.25 }).then(|| {
            let condition = self.expr(Ty::Bool, 2);
            (condition, *jumps.choose(self.rng).expect("there are some"))
        });
        Statement::Set(Set { index, value: self.expr(ty, 2), jump })
    }

    /// A loop over the places of a dimension.
    pub(super) fn over_view(&mut self, depth: usize) -> Statement {
        let (view, rank) = *self.views.choose(self.rng).expect("there is one");
        let size = Some((view, self.rng.random_range(0..rank)));
        let (scope, mutable) = (self.scope.clone(), self.mutable.clone());
        let counter = self.bind(Ty::I32, false);
        self.loops += 1;
        let body = self.nested(depth - 1);
        self.loops -= 1;
        (self.scope, self.mutable) = (scope, mutable);
        let from = self.rng.random_range(-1..=1);
        let (inclusive, reversed) = (self.rng.random_bool(0.3), self.rng.random_bool(0.3));
        Statement::For(Loop { counter, from, to: 0, inclusive, reversed, size, body })
    }

    /// A value of a view, or a size.
    pub(super) fn of_view(&mut self, ty: Ty, depth: usize) -> Expr {
        let fitting: Vec<(usize, usize)> =
            self.views.iter().copied().filter(|(view, _)| self.variables[*view] == ty).collect();
        let Some((view, rank)) = fitting.choose(self.rng).copied() else {
            if ty != Ty::I32 {
                return self.leaf(ty);
            }
            let (view, rank) = *self.views.choose(self.rng).expect("there is one");
            return Expr::View(view, Read::Size(self.rng.random_range(0..rank)));
        };
        let index: Vec<(Ty, Expr)> = (0..rank).map(|_| self.part(depth.min(1))).collect();
        match self.rng.random_bool(0.5) {
            true => Expr::View(view, Read::At(index)),
            false => {
                let index = index.into_iter().map(|(_, part)| part).collect();
                Expr::View(view, Read::AtOr(index, Box::new(self.expr(ty, depth.min(2)))))
            }
        }
    }

    /// A part of an index: mostly near that of the element.
    fn part(&mut self, depth: usize) -> (Ty, Expr) {
        let near: Vec<usize> = self.scope.iter().copied().filter(|v| self.variables[*v] == Ty::I32).collect();
        match near.choose(self.rng) {
            Some(near) if self.rng.random_bool(0.7) => {
                let off = Value::I32(self.rng.random_range(-2..=2));
                let near = Box::new(Expr::Variable(*near));
                (Ty::I32, Expr::Binary("+", near, Box::new(Expr::Literal(off))))
            }
            _ => {
                let ty = self.integer();
                (ty, self.expr(ty, depth))
            }
        }
    }
}
