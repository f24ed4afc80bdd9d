//! Operations that work on states of certain shapes: statistics of channels, rows of a head, marks of tokens.

use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    generate::{ROWS, WIDTHS},
    instr::Locals,
    program::{Arg, Code, Elem, Size},
};

/// Rows of marks, as many as the largest bucket has, and tokens.
pub(crate) const MARKS: [usize; 2] = [8, ROWS];

fn own(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed ^ 0x57a7 << 32)
}

/// Further states of the program of a seed, besides those of rows: two statistics, or rows of a head.
pub(crate) fn states(seed: u64) -> Vec<Vec<usize>> {
    let mut own = own(seed);
    let width = WIDTHS[own.random_range(0..WIDTHS.len())];
    match own.random_range(0..6) {
        0 => vec![vec![width]; 2],
        1 => vec![vec![ROWS, 1, width]],
        _ => Vec::new(),
    }
}

/// The number of states with marks.
pub(crate) fn marks(seed: u64, states: &[Vec<usize>]) -> usize {
    // Where there is a state, a call that fails is not made again.
    let own = own(seed.rotate_left(7)).random_bool(0.5);
    usize::from(own && !states.is_empty())
}

impl Locals<'_> {
    /// Adds an operation on such a state, if there is one; sometimes none fits.
    pub(crate) fn stated(&mut self, rng: &mut StdRng) {
        for _ in 0..3 {
            if self.attempt_stated(rng).is_some() {
                return;
            }
        }
    }

    fn attempt_stated(&mut self, rng: &mut StdRng) -> Option<()> {
        match rng.random_range(0..4) {
            0 => self.statistics(rng),
            1 => self.rope_scatter(rng),
            2 => self.mark_tokens(rng),
            _ => self.cache_view(rng),
        }
    }

    /// A state whose shape fits.
    fn state_of(&self, rng: &mut StdRng, fits: impl Fn(&[usize]) -> bool) -> Option<(usize, Vec<usize>)> {
        let states: Vec<_> = self.rules.states.iter().enumerate().filter(|(_, s)| fits(s)).collect();
        let (at, shape) = states.get(rng.random_range(0..states.len().max(1)))?;
        Some((*at, (*shape).clone()))
    }

    /// Batch norm as in training, which moves two statistics.
    fn statistics(&mut self, rng: &mut StdRng) -> Option<()> {
        let (mean, shape) = self.state_of(rng, |s| s.len() == 1)?;
        let var = self.rules.states.iter().rposition(|s| *s == shape).filter(|var| *var != mean)?;
        // Sums over the batch, whose order depends on its size.
        if self.pure || !self.linear() {
            return None;
        }
        let constant = |d: &Size| matches!(d, Size::N(_));
        let (x, ty) = self.pick(rng, |ty| {
            ty.elem == Elem::F32
                && ty.dims.get(1) == Some(&Size::N(shape[0]))
                && ty.dims[1..].iter().all(constant)
        })?;
        let x = self.emit(Code::Tanh, vec![Arg::Local(x)], Vec::new(), ty.clone())?;
        let args = vec![Arg::Local(x), Arg::State(mean), Arg::State(var)];
        self.emit(Code::Statistics, args, Vec::new(), ty).map(drop)
    }

    /// Rows that are turned on their way into a state.
    fn rope_scatter(&mut self, rng: &mut StdRng) -> Option<()> {
        let (state, shape) = self.state_of(rng, |s| s.len() == 3)?;
        if self.pure {
            return None;
        }
        let (i, index) = self
            .pick(rng, |ty| ty.elem == Elem::U32 && ty.dims.len() == 1 && (1..=ROWS).contains(&ty.bound))?;
        let rows = [index.dims[0], Size::N(shape[2])];
        let (t, ty) = self.pick(rng, |ty| ty.elem == Elem::F32 && ty.dims == rows)?;
        let t = self.emit(Code::Tanh, vec![Arg::Local(t)], Vec::new(), ty)?;
        self.effect(Code::RopeScatter, vec![Arg::State(state), Arg::Local(i), Arg::Local(t)]);
        Some(())
    }

    fn mark_tokens(&mut self, rng: &mut StdRng) -> Option<()> {
        if self.pure || self.rules.marks == 0 {
            return None;
        }
        let fits = |d: &Size| matches!(d, Size::B) || matches!(d, Size::N(n) if *n <= MARKS[0]);
        let (t, _) =
            self.pick(rng, |ty| ty.elem == Elem::U32 && ty.dims.len() == 1 && ty.dims.iter().all(fits))?;
        self.effect(Code::MarkTokens, vec![Arg::Marks(0), Arg::Local(t)]);
        Some(())
    }

    /// Attention to some rows of a state.
    fn cache_view(&mut self, rng: &mut StdRng) -> Option<()> {
        let (state, shape) = self.state_of(rng, |s| s.len() > 1)?;
        let width = *shape.last()?;
        if !self.linear() {
            return None;
        }
        let (x, ty) =
            self.pick(rng, |ty| ty.elem == Elem::F32 && ty.dims.len() == 2 && ty.dims[1] == Size::N(width))?;
        let start = rng.random_range(0..shape[0]);
        let nums = vec![start, rng.random_range(1..=shape[0] - start)];
        self.emit(Code::CacheView, vec![Arg::Local(x), Arg::State(state)], nums, ty).map(drop)
    }
}
