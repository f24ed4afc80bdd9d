//! What programs append to logs, which the host reads when the step has ended.

use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    instr::Locals,
    program::{Arg, Code, Elem, Size},
};

/// Elements for which a log has room. Steps of few programs append more, and lose as many elements in every run.
pub(crate) const ROOM: usize = 4096;

/// The number of logs of the program of a seed.
pub(crate) fn logs(seed: u64, states: &[Vec<usize>]) -> usize {
    // Where there is a state, a call that fails is not made again.
    let own = StdRng::seed_from_u64(seed ^ 0x1065 << 32).random_bool(0.6);
    usize::from(own && !states.is_empty())
}

impl Locals<'_> {
    /// Appends a value with this probability, if there is one whose real elements are the first ones.
    pub(crate) fn append(&mut self, rng: &mut StdRng, probability: f64) {
        if self.rules.logs == 0 || self.pure || !rng.random_bool(probability) {
            return;
        }
        let constant = |d: &Size| matches!(d, Size::N(_));
        let fits = |dims: &[Size]| dims.get(1..).is_none_or(|rest| rest.iter().all(constant));
        let log = rng.random_range(0..self.rules.logs);
        if let Some((t, _)) = self.pick(rng, |ty| ty.elem == Elem::F32 && fits(&ty.dims)) {
            self.effect(Code::Append, vec![Arg::Log(log), Arg::Local(t)]);
        }
    }
}
