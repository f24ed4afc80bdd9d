//! From launches to one launch, if a kernel does what they do.
//!
//! Only memory tells which value a launch reads: a view at the place of an earlier result, with its layout, is that result. Any
//! other view that overlaps one is a reason to refuse. So is an output that overlaps what other blocks of the kernel still read.

use std::any::Any;

use smallvec::SmallVec;

use super::{
    super::{
        super::{
            quantized::QuantizedLinear,
            rope::{Rope, RopeScatter},
            scatter::ScatterRows,
            shape::viewed,
        },
        product::MatMul,
    },
    few_rows::{CHUNK, GAP, lines_up, may_make_rows, takes},
    operation::{From, Part, Place, ThinProduct, is_same_place},
    plan::{Matrix, Norm, Plan, Scatter, Source, Step, Store, Turn, Value, Weight},
};
use crate::{
    BlockFormat, DType,
    backend::{Launch, View},
    kernel::{
        constants::Constants,
        definition::{Compute, Definition, Extent, Kind, Rows},
        operation::plain,
    },
    value::layout::Layout,
};

/// The longest row that a block normalises, and the bytes of all of its rows: less than any device has for a block.
const LONGEST: usize = 8192;
const MOST_BYTES: usize = 72 << 10;
/// The most operands, steps and products, whose places are parameters of the kernel, and the most parts.
const MOST: usize = 16;
const MOST_PARTS: usize = 64;
/// The most words of the kernel's parameter, of which every device takes 4 KB.
const MOST_WORDS: usize = 512;

/// Returns one launch for `parts`; see [`Operation::fuse`](crate::backend::Operation::fuse).
pub(in crate::ops) fn fuse_product(parts: &[&Launch], kept: &[u8]) -> Option<Launch> {
    if parts.len() < 2 || parts.len() != kept.len() || parts.len() > MOST_PARTS {
        return None;
    }
    let product = parts.iter().position(|part| is_product(part))?;
    let mut finder = Finder::new(parts[product])?;
    for (part, kept) in parts.iter().zip(kept) {
        finder.kept = *kept;
        match plain(&part.op) {
            None if is_product(part) => finder.product(part)?,
            Some((definition, constants)) => match &definition.kind {
                Kind::Rows(rows) if finder.parts.is_empty() => {
                    finder.norm(part, definition, rows, constants)?;
                }
                Kind::Elements if !finder.weights.is_empty() => finder.step(part, definition, constants)?,
                _ => return None,
            },
            None => finder.placed(part)?,
        }
        finder.part(part)?;
    }
    finder.finish()
}

/// Returns whether a launch is of a product.
fn is_product(launch: &Launch) -> bool {
    let operation: &dyn Any = launch.op.operation();
    operation.is::<MatMul>() || format(launch).is_some()
}

/// The format of the weight of a product, if it is in blocks.
fn format(product: &Launch) -> Option<BlockFormat> {
    let operation: &dyn Any = product.op.operation();
    operation.downcast_ref::<QuantizedLinear>().map(|product| product.format)
}

/// A value that an earlier part wrote.
struct Written {
    view: View,
    value: What,
    from: From,
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    /// The rows that are multiplied.
    Rows,
    /// Another result of the kernel of rows.
    Beside,
    Value(Value),
}

/// What a kernel of elements reads.
struct Arguments {
    /// For each input.
    values: SmallVec<[Value; 4]>,
    /// The numbers of the operands among them.
    operands: SmallVec<[usize; 4]>,
    /// The set of the products among them.
    set: usize,
}

/// What was found so far.
struct Finder {
    plan: Plan,
    /// Set once there is a product or a norm.
    source: Option<Source>,
    weights: Vec<Weight>,
    /// The set of each product.
    sets: Vec<usize>,
    /// The set of each operand, once a step that reads it has been added.
    operand_sets: Vec<Option<usize>>,
    inputs: Vec<View>,
    outputs: Vec<View>,
    written: Vec<Written>,
    /// Results of the current part, until it is added.
    results: SmallVec<[What; 2]>,
    parts: Vec<Part>,
    between: usize,
    /// A bit for each output of the current part.
    kept: u8,
    /// The rows of a state that the current part writes.
    scatter: Option<Scatter>,
}

impl Finder {
    /// For the sizes of `product`.
    fn new(product: &Launch) -> Option<Self> {
        let (x, y) = (product.inputs.first()?, product.outputs.first()?);
        let (&[m, k], &[rows, _]) = (x.layout.shape(), y.layout.shape()) else { return None };
        if m != rows {
            return None;
        }
        let plan = Plan {
            dtype: y.dtype,
            format: format(product),
            m,
            k,
            source: Source::Memory(Matrix { input: 0, dtype: y.dtype, strides: [k, 1] }),
            weights: Vec::new(),
            together: 1,
            operands: Vec::new(),
            steps: Vec::new(),
            turns: Vec::new(),
            stores: Vec::new(),
            early: false,
        };
        Some(Self {
            plan,
            source: None,
            weights: Vec::new(),
            sets: Vec::new(),
            operand_sets: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            written: Vec::new(),
            results: SmallVec::new(),
            parts: Vec::new(),
            between: 0,
            kept: 0,
            scatter: None,
        })
    }

    /// Returns the number of an input of the launch.
    fn input(&mut self, view: &View) -> usize {
        let known = self.inputs.iter().position(|input| input == view);
        known.unwrap_or_else(|| {
            self.inputs.push(*view);
            self.inputs.len() - 1
        })
    }

    /// Returns what an earlier part wrote where `view` is. `Err` if it is not exactly that.
    fn earlier(&self, view: &View) -> Result<Option<&Written>, ()> {
        match self.written.iter().rev().find(|written| written.view.overlaps(view)) {
            None => Ok(None),
            Some(written) => {
                let is_it = (written.view.addr, written.view.dtype, written.view.layout.count())
                    == (view.addr, view.dtype, view.layout.count())
                    && view.layout.is_contiguous();
                if is_it { Ok(Some(written)) } else { Err(()) }
            }
        }
    }

    /// Returns a view that no part writes, as `[m, n]`.
    fn outside(&mut self, view: &View, n: usize) -> Option<Matrix> {
        if !matches!(self.earlier(view), Ok(None)) {
            return None;
        }
        let strides = matrix(&view.layout, self.plan.m, n)?;
        Some(Matrix { input: self.input(view), dtype: view.dtype, strides })
    }

    /// Returns whether a block can make its rows.
    fn has_room_for_rows(&self) -> bool {
        let Plan { dtype, format, m, k, .. } = self.plan;
        // As many as a block has (`Variant`).
        let of_block = m.min(if dtype == DType::F32 { 4 } else { 16 });
        k <= LONGEST && of_block * (k * dtype.size() + GAP) <= MOST_BYTES && may_make_rows(format, m, k)
    }

    /// A kernel of rows, before all products.
    fn norm(
        &mut self,
        part: &Launch,
        definition: &'static Definition,
        rows: &'static Rows,
        constants: &Constants,
    ) -> Option<()> {
        let Plan { dtype, m, k, .. } = self.plan;
        let is_float = |compute: &Compute| *compute == Compute::F32;
        let computed = definition.inputs.iter().map(|(_, compute)| compute).chain(definition.outputs);
        let is_number = |i: usize| constants.get(i).is_some_and(Option::is_some);
        let mut inputs = rows.inputs.iter().enumerate();
        let of_rows = inputs.all(|(i, extent)| *extent == Extent::Row || is_number(i))
            && rows.outputs.iter().all(|extent| *extent == Extent::Row);
        let fits = self.has_room_for_rows();
        if !rows.straight || rows.indexed || !of_rows || !computed.into_iter().all(is_float) || !fits {
            return None;
        }
        // A row of the kernel is a row that is multiplied.
        let is_row = |view: &View| view.layout.shape().last() == Some(&k);
        if !part.inputs.iter().chain(&part.outputs).all(is_row) {
            return None;
        }
        let mut inputs = SmallVec::new();
        for view in &part.inputs {
            let matrix = self.outside(view, k)?;
            let [row, col] = matrix.strides;
            let size = dtype.size();
            let is_packed = (k == 1 || col == 1)
                && view.addr.is_multiple_of(CHUNK as u64)
                && (row * size).is_multiple_of(CHUNK)
                && (k * size).is_multiple_of(CHUNK);
            if view.dtype != dtype || !is_packed {
                return None;
            }
            inputs.push(matrix);
        }
        let is_dense = |view: &View| {
            (view.dtype, view.layout.count()) == (dtype, m * k)
                && view.layout.is_contiguous()
                && view.addr.is_multiple_of(CHUNK as u64)
        };
        if !part.outputs.iter().all(is_dense) {
            return None;
        }
        // Which of them is multiplied shows when a product reads it.
        self.results = part.outputs.iter().map(|_| What::Beside).collect();
        let norm = Norm {
            definition,
            rows,
            constants: constants.into(),
            inputs,
            multiplied: None,
            outputs: SmallVec::from_elem(None, part.outputs.len()),
        };
        self.source = Some(Source::Norm(Box::new(norm)));
        Some(())
    }

    fn product(&mut self, part: &Launch) -> Option<()> {
        let Plan { dtype, m, k, .. } = self.plan;
        let (&[ref x, ref w, ref bias @ ..], [y]) = (&part.inputs[..], &part.outputs[..]) else {
            return None;
        };
        let (&[rows, inner], &[results, n]) = (x.layout.shape(), y.layout.shape()) else { return None };
        let is_alike = (rows, inner, results) == (m, k, m) && [x, y].iter().all(|view| view.dtype == dtype);
        // One kernel unpacks one format.
        if !is_alike
            || format(part) != self.plan.format
            || !y.layout.is_contiguous()
            || !takes(dtype, m, n, k)
        {
            return None;
        }
        self.rows(x)?;
        if !matches!(self.earlier(w), Ok(None)) {
            return None;
        }
        let rows = match self.plan.format {
            Some(_) => Matrix { input: self.input(w), dtype: w.dtype, strides: [0, 1] },
            None => self.lines(w, n)?,
        };
        let bias = match bias {
            [] => None,
            [bias] if bias.dtype == dtype => Some(self.outside(bias, n)?),
            _ => return None,
        };
        self.sets.push(self.weights.len());
        self.results.push(What::Value(Value::Product(self.weights.len())));
        self.weights.push(Weight { n, rows, bias });
        Some(())
    }

    /// The lines of a product's right side, `[k, n]`.
    fn lines(&mut self, w: &View, n: usize) -> Option<Matrix> {
        let Plan { dtype, k, .. } = self.plan;
        let &[down, across] = w.layout.strides() else { return None };
        if w.layout.shape() != [k, n] || w.dtype != dtype || !lines_up(w, [down, across], [k, n]) {
            return None;
        }
        Some(Matrix { input: self.input(w), dtype, strides: [if n == 1 { 0 } else { across }, 1] })
    }

    /// Checks that a product's left side is the rows that all products have.
    fn rows(&mut self, x: &View) -> Option<()> {
        let Plan { dtype, m, k, .. } = self.plan;
        let strides = [x.layout.strides()[0], x.layout.strides()[1]];
        match &mut self.source {
            None => {
                if !lines_up(x, [strides[1], strides[0]], [k, m]) {
                    return None;
                }
                let strides = [if m == 1 { 0 } else { strides[0] }, 1];
                self.source = Some(Source::Memory(Matrix { input: self.input(x), dtype, strides }));
            }
            Some(Source::Memory(known)) => {
                if self.inputs.get(known.input) != Some(x) || !matches!(self.earlier(x), Ok(None)) {
                    return None;
                }
            }
            Some(Source::Norm(norm)) => {
                let results = norm.outputs.len();
                let mut all = self.written.iter().take(results);
                let at = all.position(|w| w.view.addr == x.addr && x.layout.is_contiguous())?;
                // Another part may have written there since.
                if self.written.iter().rposition(|w| w.view.overlaps(x)) != Some(at) {
                    return None;
                }
                // Rows that others read would have to be written as well.
                let is_kept = norm.outputs[at].is_some();
                if is_kept || norm.multiplied.is_some_and(|other| other != at) {
                    return None;
                }
                norm.multiplied = Some(at);
                self.written[at].value = What::Rows;
            }
        }
        Some(())
    }

    /// A kernel of elements, after products.
    fn step(&mut self, part: &Launch, definition: &'static Definition, constants: &Constants) -> Option<()> {
        let n = self.columns(part)?;
        if self.plan.steps.len() == MOST || !is_fusable(definition) {
            return None;
        }
        let Arguments { values, operands, set } = self.arguments(part, n)?;
        let mut members = self.sets.iter().zip(&self.weights).filter(|(of, _)| **of == set);
        if members.any(|(_, weight)| weight.n != n) || self.plan.operands.len() > MOST {
            return None;
        }
        self.add_operands(&operands, set)?;
        let step = self.plan.steps.len();
        self.results =
            (0..part.outputs.len()).map(|part| What::Value(Value::Result { step, part })).collect();
        let stored = part.outputs.iter().map(|view| view.dtype).collect();
        let constants = constants.into();
        // Its set is known by one of its products until all sets are.
        self.plan.steps.push(Step { definition, constants, arguments: values, stored, set });
        Some(())
    }

    /// Returns the columns of the results of a kernel of elements, if they are as many rows as the products'.
    fn columns(&self, part: &Launch) -> Option<usize> {
        let m = self.plan.m;
        let count = part.outputs.first()?.layout.count();
        let n = count / m;
        let is_result = |view: &View| view.layout.count() == count && view.layout.is_contiguous();
        (count == n * m && n > 0 && part.outputs.iter().all(is_result)).then_some(n)
    }

    /// Returns the values that a kernel of elements reads. All products among them become one set; there must be one.
    fn arguments(&mut self, part: &Launch, n: usize) -> Option<Arguments> {
        let (mut values, mut operands, mut set) = (SmallVec::new(), SmallVec::new(), None);
        for view in &part.inputs {
            let value = match self.earlier(view).ok()?.map(|written| written.value) {
                // A turned value is only written.
                Some(What::Value(value)) if !matches!(value, Value::Turned(_)) => {
                    let mine = self.set_of(value)?;
                    let other = *set.get_or_insert(mine);
                    self.sets.iter_mut().filter(|set| **set == mine).for_each(|set| *set = other);
                    value
                }
                Some(_) => return None,
                None => {
                    let at = self.operand(view, n)?;
                    operands.push(at);
                    Value::Operand(at)
                }
            };
            values.push(value);
        }
        Some(Arguments { values, operands, set: set? })
    }

    /// Returns the number of an operand that no part writes.
    fn operand(&mut self, view: &View, n: usize) -> Option<usize> {
        let matrix = self.outside(view, n)?;
        let known = self.plan.operands.iter().position(|operand| *operand == matrix);
        Some(known.unwrap_or_else(|| {
            self.plan.operands.push(matrix);
            self.operand_sets.push(None);
            self.plan.operands.len() - 1
        }))
    }

    /// Adds operands to a set. One of two sets would be two operands.
    fn add_operands(&mut self, operands: &[usize], set: usize) -> Option<()> {
        for &at in operands {
            if self.operand_sets[at].is_some_and(|other| self.root(other) != set) {
                return None;
            }
            self.operand_sets[at] = Some(set);
        }
        Some(())
    }

    /// A rotary embedding, or rows that go to a state, or both.
    fn placed(&mut self, part: &Launch) -> Option<()> {
        let operation: &dyn Any = part.op.operation();
        let scattered = operation.downcast_ref::<RopeScatter>().map(|scatter| &scatter.0);
        if let Some(rope) = operation.downcast_ref::<Rope>().or(scattered) {
            let [x, positions, to @ ..] = &part.inputs[..] else { return None };
            let value = self.turn(*rope, x, positions)?;
            self.results.push(What::Value(value));
            return match (scattered, to) {
                (None, []) => Some(()),
                (Some(_), [index, count @ ..]) => self.scatter(part, index, count),
                _ => None,
            };
        }
        let [index, x, count @ ..] = &part.inputs[..] else { return None };
        if !operation.is::<ScatterRows>() || x.layout.shape().first() != Some(&self.plan.m) {
            return None;
        }
        let value = self.earlier(x).ok()??.value;
        self.results.push(value);
        self.scatter(part, index, count)
    }

    fn turn(&mut self, rope: Rope, x: &View, positions: &View) -> Option<Value> {
        let &[batches, times, heads, size] = x.layout.shape() else { return None };
        let &[p0, p1, p2] = positions.layout.strides() else { return None };
        let What::Value(Value::Product(product)) = self.earlier(x).ok()??.value else { return None };
        let fits = batches * times == self.plan.m && heads * size == self.weights[product].n;
        // All of a head turns, by its position alone.
        let is_plain = rope.dim == size && !rope.frequencies.is_dynamic() && rope.padded == [false; 2];
        let is_known = self.plan.turns.iter().any(|turn| turn.product == product);
        if !fits || !is_plain || is_known || !matches!(self.earlier(positions), Ok(None)) {
            return None;
        }
        let (positions, rows) = (self.input(positions), [batches, times]);
        self.plan.turns.push(Turn { rope, product, size, rows, positions, strides: [p0, p1, p2] });
        Some(Value::Turned(self.plan.turns.len() - 1))
    }

    /// Rows of a state, which is the only output.
    fn scatter(&mut self, part: &Launch, index: &View, count: &[View]) -> Option<()> {
        let (&[n], [state]) = (index.layout.shape(), &part.outputs[..]) else { return None };
        let (&rows, row) = state.layout.shape().split_first()?;
        let What::Value(value) = *self.results.last()? else { return None };
        let set = self.set_of(value)?;
        let member = self.sets.iter().position(|other| *other == set)?;
        let is_outside = |view: &View| matches!(self.earlier(view), Ok(None));
        let fits = n == self.plan.m
            && row.iter().product::<usize>() == self.weights[member].n
            && state.layout.is_contiguous();
        let reads = is_outside(index) && count.len() <= 1 && count.iter().all(is_outside);
        if !fits || !reads || self.kept != 1 {
            return None;
        }
        let (index, stride) = (self.input(index), if n == 1 { 0 } else { index.layout.strides()[0] });
        let count = count.first().map(|count| self.input(count));
        let scatter = Scatter { name: part.op.name(), index, stride, count, rows };
        // The first of the faults is reported, and blocks run in any order: those of the first scatter must be those of all.
        let mut others = self.plan.stores.iter().filter_map(|store| store.scatter);
        if others.any(|other| !other.has_rows_of(&scatter)) {
            return None;
        }
        self.scatter = Some(scatter);
        Some(())
    }

    /// The set of a number that was a set once: sets are numbered by their products.
    fn root(&self, set: usize) -> usize {
        self.sets.get(set).copied().unwrap_or(set)
    }

    /// Returns the set of a value; an operand that no step reads has none.
    fn set_of(&self, value: Value) -> Option<usize> {
        Some(match value {
            Value::Product(i) => self.sets[i],
            Value::Operand(i) => self.root(self.operand_sets[i]?),
            Value::Turned(i) => self.sets[self.plan.turns[i].product],
            Value::Result { step, .. } => self.root(self.plan.steps[step].set),
        })
    }

    /// Adds the current part, whose results are known.
    fn part(&mut self, part: &Launch) -> Option<()> {
        let mut inputs = SmallVec::new();
        for view in &part.inputs {
            let from = match self.earlier(view).ok()? {
                Some(written) => written.from,
                None => From::Input(self.input(view)),
            };
            inputs.push(Place { from, dtype: view.dtype, layout: view.layout });
        }
        let mut outputs = SmallVec::new();
        let results = std::mem::take(&mut self.results);
        for (i, (view, value)) in part.outputs.iter().zip(results).enumerate() {
            let from = if self.kept & 1 << i != 0 {
                self.outputs.push(*view);
                if let (What::Beside, Some(Source::Norm(norm))) = (value, &mut self.source) {
                    norm.outputs[i] = Some(self.outputs.len() - 1);
                }
                if let What::Value(value) = value {
                    let (output, dtype) = (self.outputs.len() - 1, view.dtype);
                    let set = self.set_of(value)?;
                    self.plan.stores.push(Store { value, output, dtype, set, scatter: self.scatter });
                }
                From::Output(self.outputs.len() - 1)
            } else {
                let at = self.between;
                self.between += (view.layout.span() * view.dtype.size()).next_multiple_of(64);
                From::Between(at)
            };
            // Of a state, only some rows are the result.
            let value = if self.scatter.is_some() { What::Beside } else { value };
            self.written.push(Written { view: *view, value, from });
            outputs.push(Place { from, dtype: view.dtype, layout: view.layout });
        }
        self.scatter = None;
        self.parts.push(Part { op: part.op.clone(), inputs, outputs });
        Some(())
    }

    /// The launch.
    fn finish(self) -> Option<Launch> {
        let is_large = self.weights.len() > MOST || self.words() > MOST_WORDS;
        if self.outputs.is_empty() || is_large || !self.is_safe() {
            return None;
        }
        // Sets in the order of their first products, each with as many of them.
        let mut order: Vec<usize> = Vec::new();
        for set in &self.sets {
            if !order.contains(set) {
                order.push(*set);
            }
        }
        let of =
            |set: usize| -> Vec<usize> { (0..self.sets.len()).filter(|i| self.sets[*i] == set).collect() };
        let members: Vec<usize> = order.iter().flat_map(|set| of(*set)).collect();
        let together = members.len() / order.len();
        if together > 1 && !self.plan.turns.is_empty() {
            return None;
        }
        if ![1, 2].contains(&together) || order.iter().any(|set| of(*set).len() != together) {
            return None;
        }
        let number = |set: usize| order.iter().position(|other| *other == set);
        let renamed = |value: Value| match value {
            Value::Product(i) => members.iter().position(|member| *member == i).map(Value::Product),
            other => Some(other),
        };
        let mut plan = self.plan.clone();
        for (step, known) in plan.steps.iter_mut().zip(&self.plan.steps) {
            step.set = number(self.root(known.set))?;
            for value in &mut step.arguments {
                *value = renamed(*value)?;
            }
        }
        for turn in &mut plan.turns {
            turn.product = members.iter().position(|member| *member == turn.product)?;
        }
        for store in &mut plan.stores {
            store.set = number(self.root(store.set))?;
            store.value = renamed(store.value)?;
        }
        plan.weights = members.iter().map(|i| self.weights[*i]).collect();
        plan.together = together;
        plan.source = self.source?;
        if matches!(&plan.source, Source::Norm(norm) if norm.multiplied.is_none()) {
            return None;
        }
        let op = ThinProduct { plan, parts: self.parts, between: self.between };
        Some(Launch { op: op.into(), inputs: self.inputs.into(), outputs: self.outputs.into(), workspace: 0 })
    }

    /// A bound of the words of the kernel's parameter: those of a turn are the most (`RopeParams` of `rope.cuh`), those of
    /// a scatter are `Places`, and everything else is an address with some sizes.
    fn words(&self) -> usize {
        let Plan { operands, steps, turns, stores, .. } = &self.plan;
        let scatters = stores.iter().filter(|store| store.scatter.is_some()).count();
        let views = self.inputs.len() + self.outputs.len() + self.weights.len() + operands.len();
        let numbers: usize = steps.iter().map(|step| step.constants.len()).sum();
        32 * turns.len() + 12 * scatters + 4 * views + numbers + 32
    }

    /// Returns whether no block writes what another one reads: an output may only be at the place of an operand of the same
    /// elements, which the thread that writes one has read.
    fn is_safe(&self) -> bool {
        self.outputs.iter().enumerate().all(|(i, output)| {
            let store = self.plan.stores.iter().find(|store| store.output == i);
            let alone = self.outputs[..i].iter().all(|other| !other.overlaps(output));
            alone
                && self.inputs.iter().enumerate().all(|(at, input)| {
                    !input.overlaps(output)
                        || store.is_some_and(|store| self.is_in_place(*store, at, input, output))
                })
        })
    }

    fn is_in_place(&self, store: Store, at: usize, input: &View, output: &View) -> bool {
        let mut uses =
            self.plan.operands.iter().zip(&self.operand_sets).filter(|(operand, _)| operand.input == at);
        let is_operand = uses.clone().count() > 0
            && uses.all(|(_, set)| set.is_some_and(|set| self.root(set) == self.root(store.set)));
        let is_place = self.plan.turns.iter().any(|turn| turn.positions == at)
            || self
                .plan
                .stores
                .iter()
                .filter_map(|store| store.scatter)
                .any(|to| to.index == at || to.count == Some(at));
        // No other role of the same view.
        let is_read_by_all = match &self.source {
            Some(Source::Memory(rows)) => rows.input == at,
            Some(Source::Norm(norm)) => norm.inputs.iter().any(|matrix| matrix.input == at),
            None => true,
        };
        let is_weight = self
            .weights
            .iter()
            .any(|weight| weight.rows.input == at || weight.bias.is_some_and(|bias| bias.input == at));
        is_operand
            && store.scatter.is_none()
            && !is_read_by_all
            && !is_place
            && !is_weight
            && is_same_place(input, output)
    }
}

/// Returns whether a kernel of elements can be part of another kernel.
fn is_fusable(definition: &Definition) -> bool {
    let mut computes = definition.inputs.iter().map(|(_, compute)| compute).chain(definition.outputs);
    computes.all(|compute| !matches!(compute, Compute::U16 | Compute::Random) && !compute.is_further())
}

/// Strides of a layout as `[m, n]`; those along one element are 0.
fn matrix(layout: &Layout, m: usize, n: usize) -> Option<[usize; 2]> {
    if layout.count() != m * n {
        return None;
    }
    let layout = viewed(layout, &[m, n])?;
    let &[row, col] = layout.strides() else { return None };
    Some([if m == 1 { 0 } else { row }, if n == 1 { 0 } else { col }])
}
