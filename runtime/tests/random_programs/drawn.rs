//! Operations that draw random numbers, and the state of generators.

use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    generate::ROWS,
    instr::Locals,
    program::{Arg, Code, Elem, Size, Ty},
    value::drawn::Kind,
};

/// The number of generators of the program of a seed.
pub(crate) fn generators(seed: u64) -> usize {
    let mut own = StdRng::seed_from_u64(seed ^ 0xd1ce << 32);
    if own.random_bool(0.35) { own.random_range(1..3) } else { 0 }
}

impl Locals<'_> {
    /// Adds an operation that draws, from any generator; sometimes none fits.
    pub(crate) fn draw(&mut self, rng: &mut StdRng) {
        if self.rules.generators > 0 && self.may.draw {
            let generator = rng.random_range(0..self.rules.generators);
            self.draw_from(rng, generator, self.rules.generators);
        }
    }

    /// Likewise, in a branch, which has a generator of its own, or none.
    pub(crate) fn draw_in_branch(&mut self, rng: &mut StdRng, branch: usize) {
        if branch < self.rules.generators && self.may.draw {
            self.draw_from(rng, branch, 1);
        }
    }

    /// From one of so many generators; a second one is that, or the other.
    fn draw_from(&mut self, rng: &mut StdRng, generator: usize, of: usize) {
        for _ in 0..4 {
            if self.attempt_draw(rng, generator, of).is_some() {
                return;
            }
        }
    }

    fn attempt_draw(&mut self, rng: &mut StdRng, generator: usize, of: usize) -> Option<()> {
        let kind = Kind::ALL[rng.random_range(0..Kind::ALL.len())];
        let (t, ty) = match kind {
            Kind::Bernoulli | Kind::Sample if self.rules.approximate => return None,
            Kind::Bernoulli | Kind::Dropout | Kind::Noisy => self.floats(rng, 0)?,
            Kind::Sample => {
                self.pick(rng, |ty| ty.elem == Elem::F32 && matches!(ty.dims.last(), Some(Size::N(_))))?
            }
            _ => self.pick(rng, |_| true)?,
        };
        let made = match kind {
            Kind::Randint => Ty { elem: Elem::U32, bound: ROWS, ..ty },
            Kind::Randperm => Ty { elem: Elem::U32, dims: vec![Size::N(ROWS)], bound: ROWS },
            // `NO_TOKEN` is no index.
            Kind::Sample => {
                let rows = ty.dims[..ty.dims.len() - 1].to_vec();
                Ty { elem: Elem::U32, dims: rows, bound: 0 }
            }
            Kind::State => Ty { elem: Elem::U32, dims: vec![Size::N(4)], bound: 0 },
            _ => Ty { elem: Elem::F32, bound: 0, ..ty },
        };
        let mut args = vec![Arg::Local(t), Arg::Generator(generator)];
        if kind == Kind::Noisy {
            let second = if of == 1 { generator } else { (generator + t) % of };
            args.push(Arg::Generator(second));
        }
        self.emit(Code::Drawn, args, vec![kind as usize], made).map(drop)
    }
}
