//! Results of `#[eager]` regions: several of different sizes, nested in structs, and kept from step to step. A size that
//! changes from call to call records nothing for segments that do not use it.

use graphable::{KeptTensor, Mode, graphable, prelude::*};

use crate::support::runtime;

/// What a cache gives for one call.
#[derive(GraphOutput, Clone)]
struct Lookup<'s> {
    /// `[2]`
    hit: Tensor<'s, f32>,
    more: More<'s>,
    /// How many rows there are.
    rows: usize,
}

#[derive(GraphOutput, Clone)]
struct More<'s> {
    /// `[n]`, another `n` in each call.
    scores: Tensor<'s, f32>,
    /// Some calls have one, `[n, 2]`.
    rest: Option<Tensor<'s, f32>>,
    /// `[2]` each, as many as there are layers.
    each: Vec<Tensor<'s, f32>>,
}

fn look_up<'s>(h: &Tensor<'s, f32>, n: usize) -> Result<Lookup<'s>> {
    let scores = ops::full(h.scope(), [n], 2.0f32)?;
    let rest = if n.is_multiple_of(3) { None } else { Some(ops::full(h.scope(), [n, 2], 1.0f32)?) };
    let each = vec![ops::neg(h)?, ops::scale(h, 3.0)?];
    Ok(Lookup { hit: ops::scale(h, 2.0)?, more: More { scores, rest, each }, rows: n })
}

/// Three regions with results of different and changing sizes; segments use those that stay as they are.
#[graphable]
fn looked_up(
    #[host]
    #[dims(2)]
    x: &Tensor<f32>,
    sizes: &Sizes,
) -> Result<Tensor<f32>> {
    let h = ops::add(x, x)?;
    let found = #[eager]
    look_up(&h, sizes.next())?;
    let h = ops::add(&h, &found.hit)?;
    let (small, (wide, pair)) = #[eager]
    {
        let n = sizes.next();
        let wide = ops::full(h.scope(), [2, n], 1.0f32)?;
        (ops::neg(&h)?, (wide, [ops::scale(&h, 2.0)?, ops::scale(&h, 3.0)?]))
    };
    let [two, three] = &pair;
    let h = ops::add(&ops::add(two, three)?, &small)?;
    let summed = #[eager]
    {
        let rest = match &found.more.rest {
            Some(rest) => ops::sum(&ops::sum(rest, 0)?, 0)?,
            None => ops::full(h.scope(), (), 0.0f32)?,
        };
        let wide = ops::sum(&ops::sum(&wide, 0)?, 0)?;
        ops::add(&ops::add(&ops::sum(&found.more.scores, 0)?, &rest)?, &wide)?
    };
    let [first, second] = &found.more.each[..] else {
        return Err(Error::Argument { op: "each", reason: "two layers".into() });
    };
    ops::add(&ops::add(&h, &summed)?, &ops::add(first, second)?)
}

/// What host code hands to a region, which no key knows: sizes that nobody foresees.
#[derive(Params)]
struct Sizes {
    weight: Param<f32>,
    #[config]
    seed: Seed,
}

#[derive(Clone, ConfigValue)]
struct Seed;

mod turns {
    use std::cell::Cell;
    thread_local!(pub(super) static TURN: Cell<usize> = const { Cell::new(0) });
}

impl Sizes {
    fn next(&self) -> usize {
        let _ = (&self.weight, &self.seed);
        turns::TURN.with(|turn| {
            turn.set(turn.get() + 1);
            1 + turn.get() * 37 % 101
        })
    }
}

#[test]
fn several_results_of_changing_sizes() {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let sizes = Sizes { weight: Param::new(&rt, &[1], &[1.0]).unwrap(), seed: Seed };
        let g = LookedUpGraph::builder().mode(mode).build(&mut rt).unwrap();
        let mut settled = 0;
        for i in 0..60 {
            let turn = turns::TURN.with(|turn| turn.get());
            let size = |call: usize| 1 + (turn + call) * 37 % 101;
            let step = rt.step().unwrap();
            let y = g.call(&step, &[i as f32, 1.0], &sizes).unwrap();
            // h: 2 x, 6 x, then 12 + 18 - 6 times x; scores, the rest and the wide one; -2 x and 6 x.
            let (n, m) = (size(1) as f32, size(2) as f32);
            let rest = if size(1).is_multiple_of(3) { 0.0 } else { 2.0 * n };
            let expected = |x: f32| 28.0 * x + 2.0 * n + rest + 2.0 * m;
            assert_eq!(step.read(&y).unwrap(), [expected(i as f32), expected(1.0)], "{mode}, call {i}");
            drop(y);
            if i == 30 {
                settled = step.stats().recordings;
            }
        }
        let stats = rt.stats();
        assert_eq!(stats.recordings, settled, "{mode}: {stats:?}");
        // Four segments, each while guesses of where results lie are still corrected.
        assert!(mode == Mode::None || stats.recordings <= 12, "{mode}: {stats:?}");
    }
}

/// A region's results are kept, and enter the next step's call beside results of another size.
#[graphable]
fn carried(
    #[host]
    #[dims(2)]
    x: &Tensor<f32>,
    before: &KeptTensor<f32>,
    #[key] rows: usize,
) -> Result<Lookup<'_>> {
    let h = ops::add(x, before)?;
    let found = #[eager]
    look_up(&h, rows)?;
    let hit = ops::add(&found.hit, &found.more.each[0])?;
    let again = #[eager]
    look_up(&hit, 2 * rows)?;
    let hit = ops::sub(&again.hit, &h)?;
    Ok(Lookup { hit, more: again.more, rows: found.rows + again.rows })
}

#[test]
fn nested_results_across_steps() {
    for mode in [Mode::None, Mode::Piecewise] {
        let mut rt = runtime();
        let g = CarriedGraph::builder().mode(mode).build(&mut rt).unwrap();
        let mut kept = {
            let step = rt.step().unwrap();
            step.keep(&step.tensor(&[2], &[0.0, 0.0]).unwrap()).unwrap()
        };
        // hit of `h` is `2 h - h`, then doubled, less `h`: `h` itself. So the sum of all inputs is carried.
        let mut sum = [0.0, 0.0];
        let mut scores = None;
        for i in 0..80u8 {
            let rows = 1 + usize::from(i) % 4;
            let step = rt.step().unwrap();
            let y = g.call(&step, &[f32::from(i), 1.0], &kept, rows).unwrap();
            sum = [sum[0] + f32::from(i), sum[1] + 1.0];
            assert_eq!(step.read(&y.hit).unwrap(), sum, "{mode}, step {i}");
            assert_eq!(y.rows, 3 * rows);
            assert_eq!(step.read(&y.more.scores).unwrap(), vec![2.0; 2 * rows]);
            assert_eq!(y.more.rest.is_none(), (2 * rows).is_multiple_of(3));
            assert_eq!(step.read(&y.more.each[1]).unwrap(), sum.map(|h| 3.0 * h));
            let next = step.keep(&y.hit).unwrap();
            // The one of another size is alive until the next step has been through.
            scores = Some(step.keep(&y.more.scores).unwrap());
            drop((y, step));
            kept = next;
        }
        assert_eq!(scores.map(|scores| scores.shape().to_vec()), Some(vec![8]));
        let stats = rt.stats();
        assert_eq!(stats.fallbacks, 0);
        assert!(mode == Mode::None || stats.replays > 3 * stats.recordings, "{mode}: {stats:?}");
    }
}
