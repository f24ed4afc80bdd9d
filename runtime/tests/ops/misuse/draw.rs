//! Arguments of calls: mostly what an operation takes, and now and then what it does not.

use std::cell::{Cell, RefCell};

use graphable::{Dim, Element, Number, Result, Rng as Random, Scope, Tensor, ops};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};

use super::Owned;

/// A size that no memory has room for.
const CLAIMED: usize = 1 << 45;

/// What is drawn for one call. The same seed draws the same, whatever the layout and the padding are.
pub(super) struct Draw<'a, 's> {
    scope: Scope<'s>,
    /// The scope of another runtime.
    elsewhere: Option<Scope<'s>>,
    /// A size that may be padded.
    rows: Dim<'s>,
    pub(super) owned: &'a Owned,
    pub(super) random: &'a Random,
    /// Whether tensors are made with their dimensions the other way round in memory.
    turned: bool,
    rng: RefCell<StdRng>,
    /// How likely an argument is a wrong one.
    odds: Cell<f64>,
    wrong: Cell<usize>,
    foreign: Cell<bool>,
    mixes: Cell<bool>,
}

impl<'a, 's> Draw<'a, 's> {
    pub(super) fn new(
        scope: Scope<'s>,
        rows: impl Into<Dim<'s>>,
        (owned, random): (&'a Owned, &'a Random),
        seed: u64,
    ) -> Self {
        let mut rng = StdRng::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // A third of the calls is right.
        let odds = [0.0, 0.2, 0.5][rng.random_range(0..3)];
        let (rng, wrong, odds) = (RefCell::new(rng), Cell::new(0), Cell::new(odds));
        Self {
            scope,
            elsewhere: None,
            rows: rows.into(),
            owned,
            random,
            turned: false,
            rng,
            odds,
            wrong,
            foreign: Cell::new(false),
            mixes: Cell::new(false),
        }
    }

    /// With operands of another runtime among the wrong ones.
    pub(super) fn with_elsewhere(self, scope: Scope<'s>) -> Self {
        Self { elsewhere: Some(scope), ..self }
    }

    pub(super) fn turned(self) -> Self {
        Self { turned: true, ..self }
    }

    pub(super) fn scope(&self) -> Scope<'s> {
        self.scope
    }

    /// Whether nothing was drawn that the operation need not take.
    pub(super) fn is_right(&self) -> bool {
        self.wrong.get() == 0
    }

    /// Whether an operand was one of another runtime, if there is one.
    pub(super) fn is_foreign(&self) -> bool {
        self.foreign.get()
    }

    /// Whether the operation is documented to refuse the padding of what was drawn.
    pub(super) fn is_mixed(&self) -> bool {
        self.mixes.get()
    }

    /// `axis`, along which the operation is documented to refuse padding.
    pub(super) fn mixing(&self, shape: &[Dim<'s>], axis: usize) -> usize {
        // A padded size is no number.
        let is_padded = shape.get(axis).is_some_and(|dim| dim.get().is_err());
        self.mixes.set(self.mixes.get() || is_padded);
        axis
    }

    /// A number below `bound`.
    pub(super) fn below(&self, bound: usize) -> usize {
        self.rng.borrow_mut().random_range(0..bound)
    }

    pub(super) fn flag(&self) -> bool {
        self.below(2) == 1
    }

    /// Whether the next argument is a wrong one.
    fn errs(&self) -> bool {
        let errs = self.rng.borrow_mut().random_bool(self.odds.get());
        self.wrong.set(self.wrong.get() + usize::from(errs));
        errs
    }

    /// Draws what fits.
    pub(super) fn fit<T>(&self, draw: impl FnOnce() -> T) -> T {
        let odds = self.odds.replace(0.0);
        let drawn = draw();
        self.odds.set(odds);
        drawn
    }

    /// `right`, or one of the others.
    pub(super) fn or<T: Copy>(&self, right: T, wrong: &[T]) -> T {
        if self.errs() { *wrong.choose(&mut *self.rng.borrow_mut()).unwrap_or(&right) } else { right }
    }

    // ---- numbers

    /// A small size.
    pub(super) fn n(&self) -> usize {
        1 + self.below(4)
    }

    /// A small size, which may be the padded one.
    pub(super) fn dim(&self) -> Dim<'s> {
        let (own, n) = (self.below(3) == 0, self.n());
        if own { self.rows } else { n.into() }
    }

    /// A parameter from `low` to below `high`.
    pub(super) fn param(&self, low: usize, high: usize) -> usize {
        let right = low + self.below(high - low);
        self.or(right, &[0, high, i32::MAX as usize, 1 << 31, u32::MAX as usize, CLAIMED, usize::MAX])
    }

    /// A size of a result, for which there may be no memory.
    pub(super) fn size(&self) -> usize {
        let right = self.n();
        self.or(right, &[0, 7, CLAIMED, usize::MAX])
    }

    /// An axis of a tensor of this rank.
    pub(super) fn axis(&self, rank: usize) -> usize {
        let right = self.below(rank.max(1));
        self.or(right, &[rank, rank + 1, 6, 64, usize::MAX])
    }

    pub(super) fn real(&self, right: f32) -> f32 {
        self.or(right, &[0.0, -1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN_POSITIVE])
    }

    pub(super) fn int(&self, right: i32) -> i32 {
        self.or(right, &[0, -1, i32::MIN, i32::MAX])
    }

    // ---- shapes

    /// Sizes of `least` to `most` dimensions.
    pub(super) fn shape(&self, least: usize, most: usize) -> Vec<Dim<'s>> {
        let rank = least + self.below(most - least + 1);
        (0..rank).map(|_| self.dim()).collect()
    }

    /// A shape that broadcasts to `shape`.
    pub(super) fn part_of(&self, shape: &[Dim<'s>]) -> Vec<Dim<'s>> {
        let from = self.below(shape.len() + 1);
        shape[from..].iter().map(|&dim| if self.below(4) == 0 { 1.into() } else { dim }).collect()
    }

    /// `shape`, or another one.
    pub(super) fn perhaps(&self, shape: &[Dim<'s>]) -> Vec<Dim<'s>> {
        let mut shape = shape.to_vec();
        if !self.errs() {
            return shape;
        }
        let at = self.below(shape.len() + 1);
        let other = [0.into(), 1.into(), 7.into(), self.rows][self.below(4)];
        match self.below(5) {
            0 if at < shape.len() => drop(shape.remove(at)),
            1 if shape.len() < 6 => shape.insert(at, other),
            2 => shape.clear(),
            _ if at < shape.len() => shape[at] = other,
            _ => shape.resize(6, other),
        }
        shape
    }

    /// A shape without the padded size.
    pub(super) fn plain(&self, least: usize, most: usize) -> Vec<Dim<'s>> {
        let rank = least + self.below(most - least + 1);
        (0..rank).map(|_| self.n().into()).collect()
    }

    /// Sizes of a result: as they are, others, or more than there is memory for.
    pub(super) fn sizes(&self, shape: &[Dim<'s>]) -> Vec<Dim<'s>> {
        let mut sizes = self.perhaps(shape);
        if self.errs() {
            let claimed = [CLAIMED, 1 << 62, usize::MAX][self.below(3)].into();
            match self.below(2) {
                0 if !sizes.is_empty() => sizes[0] = claimed,
                _ => sizes.resize(sizes.len() + self.below(4), 2.into()),
            }
        }
        sizes
    }

    // ---- tensors

    /// A tensor of this shape, or of another one. Elements depend on their places alone.
    pub(super) fn t<T: Element>(&self, shape: &[Dim<'s>]) -> Result<Tensor<'s, T>> {
        let shape = self.perhaps(shape);
        let special = self.below(40);
        if special == 0 && self.errs() {
            return ops::broadcast_to(&ops::full(self.scope, (), T::from_f64(1.0))?, [CLAIMED, 3]);
        }
        let foreign = special == 1 && self.errs();
        self.foreign.set(self.foreign.get() || foreign);
        let values = match self.elsewhere.filter(|_| foreign) {
            // A size of one runtime is none of another.
            Some(elsewhere) => self.places(elsewhere, &vec![2.into(); shape.len()])?,
            None => self.places(self.scope, &shape)?,
        };
        let scale = [3.0, 1.0][self.below(2)];
        ops::cast(&ops::mul(&ops::sin(&values)?, scale)?)
    }

    pub(super) fn f(&self, shape: &[Dim<'s>]) -> Result<Tensor<'s, f32>> {
        self.t(shape)
    }

    /// Integers below `bound`, and perhaps one that is not.
    pub(super) fn index<T: Number>(&self, shape: &[Dim<'s>], bound: usize) -> Result<Tensor<'s, T>> {
        let shape = self.perhaps(shape);
        let places = ops::cast::<f32, u32>(&ops::abs(&self.places(self.scope, &shape)?)?)?;
        let ids = ops::remainder(&places, bound.max(1) as u32)?;
        let beyond = self.or(0, &[bound as u32, 1 << 31, u32::MAX]);
        ops::cast(&ops::maximum(&ids, beyond)?)
    }

    /// A number for each element.
    fn places(&self, scope: Scope<'s>, shape: &[Dim<'s>]) -> Result<Tensor<'s, f32>> {
        let start = self.below(50) as f32;
        let rank = shape.len();
        let order: Vec<usize> = if self.turned { (0..rank).rev().collect() } else { (0..rank).collect() };
        let sizes: Vec<Dim<'s>> = order.iter().map(|&axis| shape[axis]).collect();
        let mut sum = ops::full(scope, sizes, start)?;
        for (at, &axis) in order.iter().enumerate() {
            let factor = [7.0, 3.0, 1.0, 5.0, 11.0, 2.0][axis];
            let mut along = ops::arange_step::<f32>(scope, shape[axis], 0.0, factor)?;
            for _ in at + 1..rank {
                along = ops::unsqueeze(&along, along.rank())?;
            }
            sum = ops::add(&sum, &along)?;
        }
        // Back in the order of the shape, with the memory as it is.
        ops::permute(&sum, &order)
    }
}
