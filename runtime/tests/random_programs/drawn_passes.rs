//! Passes over recordings: all, none, or some in any order.

use graphable::{Passes, Result, Runtime};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::SliceRandom as _};

use crate::users_pass::{NAME as USERS, Same};

/// The number of built-in passes.
const PASSES: usize = 4;

/// The passes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    All,
    None,
    /// All, and before them one of a user.
    Users,
    /// Some in some order, as this seed draws them.
    Drawn(u64),
}

impl Chosen {
    /// The names of the passes, in their order.
    pub(crate) fn names(self) -> Vec<&'static str> {
        let mut names: Vec<_> = Passes::default().names().collect();
        match self {
            Self::All | Self::Users => {}
            Self::None => names.clear(),
            Self::Drawn(seed) => {
                let mut own = StdRng::seed_from_u64(seed ^ 0xface << 32);
                names.shuffle(&mut own);
                names.truncate(own.random_range(1..=PASSES));
            }
        }
        names
    }

    /// The passes.
    pub(crate) fn passes(self) -> Result<Passes> {
        match self {
            Self::Users => Ok(Passes::default().with_at(0, Same)),
            _ => Passes::default().only(self.names()),
        }
    }
}

/// What passes did in runs, in the order of [`Passes::default`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Runs in which a pass was the only one.
    pub(crate) alone: [u64; PASSES],
    /// `before[i][j]`: runs in which pass `i` came before pass `j`.
    pub(crate) before: [[u64; PASSES]; PASSES],
    /// Operations that a pass made of several, in recordings that are there at the end.
    pub(crate) made: [u64; PASSES],
    /// Operations that the pass of a user replaced.
    pub(crate) by_users: u64,
}

impl Counts {
    /// Of a run that has ended.
    pub(crate) fn of(rt: &Runtime) -> Self {
        let all: Vec<_> = Passes::default().names().collect();
        assert_eq!(all.len(), PASSES, "a pass is neither drawn nor counted");
        let number = |name: &str| all.iter().position(|known| *known == name).expect("a built-in pass");
        let mut counts = Self::default();
        let run: Vec<usize> = rt.passes().names().filter(|name| *name != USERS).map(number).collect();
        if let [only] = run[..] {
            counts.alone[only] += 1;
        }
        for (at, &first) in run.iter().enumerate() {
            run[at + 1..].iter().for_each(|&second| counts.before[first][second] += 1);
        }
        for report in rt.tree().recordings.iter().flat_map(|node| &node.passes) {
            let made = report.made.iter().map(|made| made.count as u64).sum::<u64>();
            match report.pass {
                USERS => counts.by_users += made,
                pass => counts.made[number(pass)] += made,
            }
        }
        counts
    }

    pub(crate) fn add(&mut self, other: &Self) {
        fn all(counts: &mut Counts) -> impl Iterator<Item = &mut u64> {
            counts.alone.iter_mut().chain(counts.before.as_flattened_mut()).chain(&mut counts.made)
        }
        self.by_users += other.by_users;
        let mut other = *other;
        all(self).zip(all(&mut other)).for_each(|(mine, other)| *mine += *other);
    }

    /// What must happen, with how often it did.
    pub(crate) fn expected(&self) -> Vec<(String, u64)> {
        let names: Vec<_> = Passes::default().names().collect();
        let mut all = Vec::new();
        for (i, first) in names.iter().enumerate() {
            all.push((format!("runs with `{first}` alone"), self.alone[i]));
            all.push((format!("operations that `{first}` made"), self.made[i]));
            for (j, second) in names.iter().enumerate().filter(|(j, _)| *j != i) {
                all.push((format!("runs with `{first}` before `{second}`"), self.before[i][j]));
            }
        }
        all
    }
}
