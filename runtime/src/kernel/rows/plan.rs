//! The division of rows among the threads of a GPU.

use super::{
    super::definition::Rows,
    lang::{LANES, PIECE},
};

/// Threads of a block that has several rows.
const THREADS: usize = 256;
/// Threads of a block that has a part of one row, and the most that it can have.
const OF_ROW: usize = 512;
const MOST: usize = 1024;
/// The most blocks of a cluster, on every device that has clusters.
const CLUSTER: usize = 8;
/// Elements that a thread loads one by one, all of which it keeps.
const SINGLE: usize = 16;
/// Values that a thread keeps, if there are registers for twice as many.
const KEPT: usize = 128;
/// The most words of the lanes that a thread computes at once, and of the values that it loads for them.
const LANE_WORDS: usize = 32;
/// The most words of values and lanes for which a thread has registers where two blocks share a multiprocessor.
const OF_TWO_BLOCKS: usize = 24;
/// The same for kernels that are [sums](is_sum), which need few registers for anything else.
const OF_TWO_SUMS: usize = 36;
/// Large devices have about as many multiprocessors, each of which may have one block.
const MULTIPROCESSORS: usize = 128;
/// Registers of a multiprocessor.
const REGISTERS: usize = 1 << 16;

/// A division.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::kernel) enum Plan {
    /// Neighbouring threads have neighbouring values of a row.
    Along {
        /// Threads of a block that belong to a row.
        threads: usize,
        /// Blocks of a row, which are a cluster.
        blocks: usize,
        /// For rows of whole packs that can be loaded at once.
        packed: Packs,
        /// For all others.
        single: Packs,
    },
    /// Neighbouring threads have neighbouring rows.
    Across {
        /// Rows of a block.
        rows: usize,
        /// Threads of a block that belong to a row.
        threads: usize,
        /// Blocks of a cluster, which have the same rows.
        blocks: usize,
        /// Lanes that a thread computes at once.
        at_once: usize,
        /// The most values of a lane.
        values: usize,
        /// Blocks that a multiprocessor has registers for.
        resident: usize,
    },
}

/// The part of a row that a thread has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::kernel) struct Packs {
    /// Number of packs: all of them if the row is held, otherwise those of a piece.
    pub(in crate::kernel) count: usize,
    /// Elements of a pack.
    pub(in crate::kernel) lanes: usize,
    /// True if the row can be in registers.
    pub(in crate::kernel) held: bool,
    /// True if each thread has as many values.
    pub(in crate::kernel) whole: bool,
}

impl Plan {
    /// Plans that a kernel may be compiled for, one of each sort, for packs of `lanes`.
    pub(super) fn samples(lanes: usize, rows: &Rows, clusters: bool) -> [Self; 5] {
        [
            Self::along(32 * lanes, lanes, rows, clusters),
            Self::along(4 * PIECE, lanes, rows, clusters),
            Self::across(5000, 1024, rows, clusters),
            // Long columns, of which a lane has several values: two blocks share a multiprocessor, or one has all registers.
            Self::across(100_000, 4096, rows, clusters),
            Self::across(100_000, 8192, rows, clusters),
        ]
    }

    /// For rows of `size` elements, loaded in packs of `lanes`; devices without `clusters` have a block for each row.
    ///
    /// Threads of a warp have different rows only if those go the same way: they exchange values.
    pub(super) fn along(size: usize, lanes: usize, rows: &Rows, clusters: bool) -> Self {
        let (packs, pieces) = (size.div_ceil(lanes), size.div_ceil(PIECE));
        let held = rows.held * rows.value_words;
        // Of values of two words, threads that are fewer have registers for the lanes.
        let most_of_team = if rows.value_words > 1 { THREADS } else { LANES };
        let team = (LANES / lanes).min(most_of_team);
        let (mut threads, mut blocks) = (THREADS, 1);
        if pieces == 1 {
            let each = if packs > 64 { 4 } else { 2 };
            threads = packs.div_ceil(each).max(size.div_ceil(SINGLE)).next_power_of_two().min(team);
            // Rows that are not held are read in whole pieces: of these, too few threads would have too many lanes each.
            let holds = |lanes| Packs::new(size, lanes, held, threads, 1).held;
            if !rows.straight || !holds(lanes) || !holds(1) {
                threads = threads.max(32);
            }
        } else if pieces > 1 {
            let cluster = if clusters { CLUSTER } else { 1 };
            let few = pieces <= cluster * (OF_ROW / team) || is_large(rows);
            let most = match () {
                () if rows.value_words > 1 => THREADS,
                () if few => OF_ROW.max(team),
                () => MOST,
            };
            threads = pieces.next_power_of_two().min(most / team) * team;
            blocks = pieces.div_ceil(threads / team).next_power_of_two().min(cluster);
        }
        Self::Along {
            threads,
            blocks,
            packed: Packs::new(size, lanes, held, threads, blocks),
            single: Packs::new(size, 1, held, threads, blocks),
        }
    }

    /// The most threads that a piece of a row can have, in packs of `lanes`.
    pub(in crate::kernel) fn most_of_piece(lanes: usize) -> usize {
        LANES / lanes
    }

    /// For `count` rows of `size` elements that are neighbours in memory.
    pub(super) fn across(count: usize, size: usize, rows: &Rows, clusters: bool) -> Self {
        // A cache line of f32; half of it if there would be too few blocks.
        let least = if count.div_ceil(32) >= THREADS / CLUSTER { 32 } else { 16 };
        // Threads of a row that is short have eight lanes each.
        let threads = (Self::lanes(size) / 8).clamp(1, OF_ROW / least);
        let columns = OF_ROW / threads;
        let values = size.div_ceil(LANES).clamp(1, PIECE / LANES);
        // More loads at a time take the registers of other blocks, which would have as many.
        let of_lane = values * rows.value_words;
        let few = (16 / of_lane).max(4 / rows.value_words).max(1).next_power_of_two();
        let loaded = of_lane * rows.count().max(1);
        let kept = 1 << (LANE_WORDS / loaded).max(1).ilog2();
        let at_once = few.min(kept).min(Self::lanes(size) / threads).min(most_lanes(rows));
        let enough = THREADS.div_ceil(count.div_ceil(columns).max(1)).next_power_of_two();
        let most = (Self::lanes(size) / (threads * at_once)).max(1);
        let blocks = if clusters { enough.min(most).min(CLUSTER) } else { 1 };
        let words = at_once * (loaded + rows.sum_words);
        let room = if is_sum(rows) { OF_TWO_SUMS } else { OF_TWO_BLOCKS };
        let share = count.div_ceil(columns) * blocks > MULTIPROCESSORS && words <= room;
        Self::Across { rows: columns, threads, blocks, at_once, values, resident: if share { 2 } else { 1 } }
    }

    /// Lanes of all pieces, of which every thread has equally many.
    pub(super) fn lanes(size: usize) -> usize {
        let pieces = size.div_ceil(PIECE).next_power_of_two();
        pieces * if size < LANES { size.next_power_of_two() } else { LANES }
    }

    /// Lanes that each thread of neighbouring rows has: none in the other division.
    pub(super) fn run(self, size: usize) -> usize {
        match self {
            Self::Along { .. } => 0,
            Self::Across { threads, blocks, at_once, .. } => {
                (Self::lanes(size) / (threads * blocks)).max(at_once)
            }
        }
    }

    /// Threads of a block.
    pub(super) fn block(self) -> usize {
        match self {
            Self::Along { threads, .. } => block(threads),
            Self::Across { rows, threads, .. } => rows * threads,
        }
    }

    /// Rows of a block, and the blocks of each.
    pub(super) fn of_block(self) -> (usize, usize) {
        match self {
            Self::Along { threads, blocks, .. } => (self.block() / threads, blocks),
            Self::Across { rows, blocks, .. } => (rows, blocks),
        }
    }

    /// Blocks that a multiprocessor should have room for: otherwise the compiler takes registers from few values that would
    /// hide the time of more loads. There must be enough registers for the lanes.
    pub(super) fn resident(self, rows: &Rows) -> usize {
        let (threads, packed, single) = match self {
            Self::Across { resident, .. } => return resident,
            Self::Along { threads, packed, single, .. } => (threads, packed, single),
        };
        let lanes = packed.sums(threads).max(single.sums(threads));
        let sums = lanes * rows.sum_words;
        let values = packed.count * packed.lanes * rows.held.max(1) * rows.value_words + (sums - lanes);
        if !packed.held || sums > 16 {
            return 1;
        }
        // Given the choice, the compiler takes nearly all registers for loads of several rows.
        let most = match is_large(rows) {
            true if rows.sum_words > 2 || values > KEPT / 2 => return 1,
            // Rows of few packs for each of many threads: a third block waits for memory while the others compute.
            true if values <= 16 && has_four_rows(rows) && self.block() >= THREADS => MOST * 3 / 4,
            true => OF_ROW,
            false if values > 32 => return 1,
            false if sums <= 8 => MOST,
            false => MOST * 3 / 4,
        };
        (most / self.block()).max(1)
    }
}

/// The most lanes that a thread computes at once, a power of two: there are registers for [`LANE_WORDS`].
pub(super) fn most_lanes(rows: &Rows) -> usize {
    (1 << (LANE_WORDS / rows.sum_words).max(1).ilog2()).min(16)
}

/// Returns whether a kernel may need more registers than each of [`MOST`] threads can have.
fn is_large(rows: &Rows) -> bool {
    // Values of a row, such as a label, are in registers, too.
    rows.count() > 3 || rows.inputs.len() + rows.outputs.len() > 6 || rows.sum_words > 2
}

/// Returns whether a kernel makes one value of one row, with a word for each lane, as a sum does.
fn is_sum(rows: &Rows) -> bool {
    rows.count() == 1 && rows.inputs.len() + rows.outputs.len() == 2 && rows.sum_words == 1
}

/// Returns whether a kernel is large only because it has four rows, as a norm with a weight and a bias does.
fn has_four_rows(rows: &Rows) -> bool {
    rows.count() == 4 && rows.inputs.len() + rows.outputs.len() <= 6
}

/// Threads of a block, of which `threads` have a row.
fn block(threads: usize) -> usize {
    if threads <= 32 { THREADS } else { threads }
}

impl Packs {
    /// For rows of `size` elements, `rows` words of each of which are used more than once, that belong to `threads` of each of `blocks`.
    pub(in crate::kernel) fn new(
        size: usize,
        lanes: usize,
        rows: usize,
        threads: usize,
        blocks: usize,
    ) -> Self {
        let team = threads.min(LANES / lanes);
        let (pieces, teams) = (size.div_ceil(PIECE), threads / team * blocks);
        let exact = if pieces > 1 { PIECE } else { size }.div_ceil(team * lanes);
        let fills = lanes > 1 && size == threads * blocks * exact * lanes;
        // Of rows that leave threads without a value, kernels for a few numbers of packs will do.
        let count = if fills { exact } else { exact.next_power_of_two() };
        let kept = KEPT.min(REGISTERS / (2 * block(threads)));
        let held =
            (1..=teams).contains(&pieces) && (lanes > 1 || count <= SINGLE) && count * lanes * rows <= kept;
        let count = if held { count } else { PIECE / (team * lanes) };
        Self { count, lanes, held, whole: held && fills }
    }

    /// Lanes that each of `threads` of a row computes at once.
    fn sums(self, threads: usize) -> usize {
        let team = threads.min(LANES / self.lanes);
        self.count.min(LANES / (team * self.lanes)) * self.lanes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::definition::Extent;

    /// A kernel of one row, `held` of whose rows are used more than once.
    fn rows(held: usize, straight: bool) -> Rows {
        Rows {
            inputs: &[Extent::Row],
            outputs: &[],
            held,
            indexed: false,
            straight,
            sum_words: 1,
            columns: None,
            value_words: 1,
        }
    }

    /// Kernels whose lanes have so many words.
    fn of_words() -> impl Iterator<Item = Rows> {
        let all = [1, 2, 3, 6, 12, 17, 64].into_iter();
        all.flat_map(|sum_words| [1, 2].map(|value_words| Rows { sum_words, value_words, ..rows(2, true) }))
    }

    #[test]
    fn every_value_belongs_to_a_thread() {
        for size in
            (0..300).chain([1000, 1024, 4095, 8191, 8192, 8193, 32_768, 128_256, 262_144, 262_145, 5_000_000])
        {
            for (lanes, kernel) in
                [4, 8, 16].into_iter().flat_map(|lanes| of_words().map(move |k| (lanes, k)))
            {
                let lanes = most_lanes(&kernel).min(lanes);
                for (clusters, straight) in [(false, true), (true, true), (true, false)] {
                    let plan = Plan::along(size, lanes, &Rows { straight, ..kernel }, clusters);
                    let Plan::Along { threads, blocks, packed, single } = plan else { unreachable!() };
                    assert!(threads.is_power_of_two() && blocks.is_power_of_two() && plan.block() <= MOST);
                    assert!(blocks <= if clusters { CLUSTER } else { 1 });
                    for packs in [packed, single] {
                        let team = threads.min(LANES / packs.lanes);
                        let pieces = size.div_ceil(PIECE);
                        if packs.held {
                            assert!(pieces <= threads / team * blocks, "{size} {plan:?}");
                            assert!(packs.count * packs.lanes * team >= size.min(PIECE), "{size} {plan:?}");
                        } else {
                            assert_eq!(packs.count * packs.lanes * team, PIECE, "{size} {plan:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn no_thread_has_more_lanes_than_registers() {
        for size in 1..=PIECE {
            for lanes in [4, 8, 16] {
                for held in [0, 1, 2, 5, 9, 17, 40, 200] {
                    let plan = Plan::along(size, lanes, &rows(held, true), true);
                    let Plan::Along { threads, packed, single, .. } = plan else { unreachable!() };
                    assert!(packed.sums(threads).max(single.sums(threads)) <= 32, "{size} {held} {plan:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_kept_leaves_registers_for_the_rest() {
        for size in [1000, 8192, 8193, 32_768, 65_536, 131_072, 262_144] {
            for lanes in [1, 4, 8, 16] {
                for held in 1..5 {
                    let plan = Plan::along(size, lanes, &rows(held, true), true);
                    let Plan::Along { packed, single, .. } = plan else { unreachable!() };
                    let each = REGISTERS / plan.block();
                    for packs in [packed, single] {
                        let kept = if packs.held { packs.count * packs.lanes * held } else { 0 };
                        assert!(kept <= each / 2, "{size} {plan:?}");
                    }
                    assert!(plan.resident(&rows(held, true)) * plan.block() <= MOST, "{size} {plan:?}");
                }
            }
        }
    }

    #[test]
    fn blocks_that_share_a_multiprocessor_have_registers_for_what_they_keep() {
        let three: &[Extent] = &[Extent::Row; 3];
        let mut shared = 0;
        for size in [64, 576, 1000, 1024, 2048, 4096, 8192, 16_384, 32_768] {
            for (lanes, held) in
                [4, 8, 16].into_iter().flat_map(|lanes| (0..6).map(move |held| (lanes, held)))
            {
                for inputs in [&[Extent::Row], three] {
                    let kernel = Rows { inputs, outputs: &[Extent::Row], ..rows(held, true) };
                    let plan = Plan::along(size, lanes, &kernel, true);
                    let Plan::Along { packed, .. } = plan else { unreachable!() };
                    let resident = plan.resident(&kernel);
                    if resident > 1 {
                        let each = REGISTERS / (resident * plan.block());
                        assert!(packed.count * packed.lanes * held <= each / 2, "{size} {held} {plan:?}");
                        shared += 1;
                    }
                }
            }
        }
        assert!(shared > 100, "{shared}");
    }

    #[test]
    fn rows_of_all_lengths_share_few_plans() {
        let plans = |sizes: std::ops::RangeInclusive<usize>| {
            let all: std::collections::HashSet<Plan> =
                sizes.map(|size| Plan::along(size, 4, &rows(2, true), true)).collect();
            all.len()
        };
        assert!(plans(1..=8192) <= 34, "{}", plans(1..=8192));
        assert!(plans(8193..=1_000_000) <= 24, "{}", plans(8193..=1_000_000));
    }

    #[test]
    fn every_lane_belongs_to_a_thread() {
        let mut shared = 0;
        for size in (1..300).chain([1023, 1024, 1025, 8192, 8193, 131_072, 1_000_000]) {
            for count in [1, 100, 4096, 100_000] {
                for kernel in of_words() {
                    let plan = Plan::across(count, size, &kernel, true);
                    let Plan::Across { rows, threads, blocks, at_once, values, resident } = plan else {
                        unreachable!()
                    };
                    if resident > 1 {
                        let words = at_once * (values * kernel.value_words + kernel.sum_words);
                        let each = REGISTERS / (resident * rows * threads);
                        assert!(words <= each / 2, "registers are left for the rest: {plan:?}");
                        assert!(
                            count.div_ceil(rows) * blocks > MULTIPROCESSORS,
                            "one has all otherwise: {plan:?}"
                        );
                        shared += 1;
                    }
                    assert!(at_once * kernel.sum_words <= LANE_WORDS.max(kernel.sum_words));
                    assert!(rows * threads <= MOST && blocks <= CLUSTER);
                    assert!(size.min(PIECE) <= values * LANES && at_once * values <= 64);
                    let run = plan.run(size);
                    assert_eq!(run % at_once, 0);
                    assert!(run * threads * blocks >= Plan::lanes(size));
                    assert!(run.is_power_of_two());
                    assert!(run * (threads - 1) < Plan::lanes(size), "every thread has a lane");
                }
            }
        }
        assert!(shared > 100, "{shared}");
    }
}
