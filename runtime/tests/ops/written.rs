//! Kernels of indices that write a state: places against plain loops, equal places, elements that write nothing, faults,
//! padding, and the modes of graphs.

use graphable::{
    Element, Error, Float, Mode, Result, Runtime, Schedule, State, Tensor, bf16, f16, graphable, kernel, ops,
};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use crate::harness::{device, for_types};

/// Rows of a cache.
#[kernel(index)]
fn put_rows(x: View<f32, 2>, slots: View<u32, 1>, cache: &mut View<f32, 2>, [i, j]: [i32; 2]) {
    cache.set([slots.at([i]), j as u32], x.at([i, j]));
}

/// What a state had is read, whatever is written.
#[kernel(index)]
fn shifted(state: &mut View<f32, 1>, by: i32, [i]: [i32; 1]) {
    let n = state.dim(0);
    state.set([(i + by).rem_euclid(n)], state.at([i]) + 1.0)
}

/// Of `count` equal places, with a hole: the larger values alone.
#[kernel(index)]
fn scattered(x: View<f32, 1>, at: View<i32, 1>, least: f32, to: &mut View<f32, 1>, [i]: [i32; 1]) {
    if x.at([i]) < least {
        return;
    }
    to.set([at.at([i])], x.at([i]));
}

/// The last write of an element counts.
#[kernel(index)]
fn marked(n: View<u8, 1>, to: &mut View<bool, 2>, [i]: [i32; 1]) {
    for k in 0..3 {
        if k < n.at([i]) as i32 {
            to.set([i, k], true);
        }
    }
}

#[kernel(index)]
fn counted(to: &mut View<i32, 3>, #[key] first: i32, [i, j]: [i32; 2]) {
    to.set([i, 0, j], first + i * 10 + j);
}

/// Values that jump, or that write: as in Rust, a place counts once its value is known.
#[kernel(index)]
fn jumping(x: View<f32, 1>, to: &mut View<f32, 1>, [i]: [i32; 1]) {
    for k in 0..3 {
        to.set([i * 4 + k], if x.at([i]) < k as f32 { continue } else { 10.0 + k as f32 });
    }
    to.set(
        [i * 4 + 3],
        if x.at([i]) == 1.0 {
            return;
        } else if x.at([i]) == 2.0 {
            to.set([i * 4], -1.0);
            2.0
        } else {
            1.0
        },
    );
}

fn contents<T: Element>(rt: &mut Runtime, state: &State<T>) -> Vec<T> {
    let step = rt.step().unwrap();
    step.read(&ops::load(step.scope(), state).unwrap()).unwrap()
}

fn rows_are_put<T: Float>() {
    // Also enough for the table by which a GPU finds the last of equal places.
    for (rows, width, slots) in [(5usize, 3usize, 4usize), (300, 40, 50), (1, 1, 1), (700, 9, 1000)] {
        let mut rt = Runtime::new(device()).unwrap();
        let state = State::<T>::zeros(&rt, &[slots, width]).unwrap();
        let mut want = vec![T::from_f64(0.0); slots * width];
        for round in 0..2usize {
            let step = rt.step().unwrap();
            let values: Vec<T> =
                (0..rows * width).map(|i| T::from_f64(((i * 7 + round) % 200) as f64)).collect();
            let at: Vec<u32> = (0..rows).map(|i| ((i * i + 3 * round) % slots) as u32).collect();
            let x = step.tensor(&[rows, width], &values).unwrap();
            put_rows(&x, &step.tensor(&[rows], &at).unwrap(), &state, x.shape()).unwrap();
            step.synchronize().unwrap();
            for (row, slot) in values.chunks(width).zip(&at) {
                want[*slot as usize * width..][..width].copy_from_slice(row);
            }
        }
        assert!(contents(&mut rt, &state) == want, "{rows} rows of {width}, {slots} slots");
    }
}

#[test]
fn the_last_of_equal_places_wins() {
    for_types!(rows_are_put: f32, f16, bf16);
}

#[test]
fn a_state_is_read_as_it_was() {
    let mut rt = Runtime::new(device()).unwrap();
    let values: Vec<f32> = (0..3000).map(|i| i as f32).collect();
    let state = State::new(&rt, &[3000], &values).unwrap();
    let step = rt.step().unwrap();
    shifted(step.scope(), &state, 7, [3000]).unwrap();
    shifted(step.scope(), &state, -7, [3000]).unwrap();
    // Half of the elements.
    shifted(step.scope(), &state, 0, [1500]).unwrap();
    drop(step);
    let want: Vec<f32> = (0..3000).map(|i| (i + if i < 1500 { 3 } else { 2 }) as f32).collect();
    assert_eq!(contents(&mut rt, &state), want);
}

#[test]
fn an_element_may_write_nothing() {
    let mut rng = StdRng::seed_from_u64(1);
    for _ in 0..10 {
        let (n, size) = (rng.random_range(1..3000usize), rng.random_range(1..90usize));
        let x: Vec<f32> = (0..n).map(|_| rng.random_range(-1.0..1.0)).collect();
        let at: Vec<i32> = (0..n).map(|_| rng.random_range(0..size as i32)).collect();
        let mut rt = Runtime::new(device()).unwrap();
        let state = State::new(&rt, &[size], &vec![9.0f32; size]).unwrap();
        let step = rt.step().unwrap();
        let (tx, ta) = (step.tensor(&[n], &x).unwrap(), step.tensor(&[n], &at).unwrap());
        scattered(&tx, &ta, 0.25, &state, [n]).unwrap();
        let mut want = vec![9.0f32; size];
        for (x, at) in x.iter().zip(&at).filter(|(x, _)| **x >= 0.25) {
            want[*at as usize] = *x;
        }
        assert_eq!(step.read(&ops::load(step.scope(), &state).unwrap()).unwrap(), want);
    }
}

#[test]
fn a_value_that_jumps_writes_nothing() {
    let mut rt = Runtime::new(device()).unwrap();
    let state = State::<f32>::zeros(&rt, &[12]).unwrap();
    let step = rt.step().unwrap();
    // Writes of 1 and 2, of which the last counts; then a jump, a write within a write, and neither.
    let x = step.tensor(&[3], &[1.0f32, 2.0, 0.0]).unwrap();
    jumping(&x, &state, [3]).unwrap();
    drop((x, step));
    let mut want = vec![0.0; 12];
    (want[1], want[7], want[11]) = (11.0, 2.0, 1.0);
    assert_eq!(contents(&mut rt, &state), want);
}

#[test]
fn bytes_and_numbers_are_written() {
    let mut rt = Runtime::new(device()).unwrap();
    let (marks, numbers) =
        (State::<bool>::zeros(&rt, &[3, 3]).unwrap(), State::<i32>::zeros(&rt, &[2, 2, 2]).unwrap());
    let step = rt.step().unwrap();
    marked(&step.tensor(&[3], &[2u8, 0, 3]).unwrap(), &marks, [3]).unwrap();
    counted(step.scope(), &numbers, 5, [2, 2]).unwrap();
    // Nothing to be written.
    counted(step.scope(), &numbers, 7, [0, 2]).unwrap();
    drop(step);
    let t = true;
    assert_eq!(contents(&mut rt, &marks), [false, t, false, false, false, false, false, false, t]);
    assert_eq!(contents(&mut rt, &numbers), [5, 6, 0, 0, 15, 16, 0, 0]);
}

#[test]
fn an_element_can_be_tried() {
    let cache = (&[0.0; 6][..], [3, 2]);
    assert_eq!(put_rows::element((&[1.0, 2.0], [1, 2]), (&[2], [1]), cache, [0, 1]), Some((5, 2.0)));
    assert_eq!(put_rows::element((&[1.0, 2.0], [1, 2]), (&[3], [1]), cache, [0, 1]), None);
    assert_eq!(scattered::element((&[1.0], [1]), (&[0], [1]), 2.0, (&[0.0], [1]), [0]), None);
    assert_eq!(shifted::element((&[1.0, 2.0], [2]), -1, [0]), Some((1, 2.0)));
    assert_eq!(marked::element((&[2], [1]), (&[false; 3], [1, 3]), [0]), Some((1, true)));
}

#[test]
fn a_place_out_of_range_is_a_fault_and_is_not_written() -> Result<()> {
    let mut rt = Runtime::new(device())?;
    let state = State::new(&rt, &[3], &[1.0f32, 2.0, 3.0])?;
    let step = rt.step()?;
    let x = step.tensor(&[3], &[7.0f32, 8.0, 9.0])?;
    scattered(&x, &step.tensor(&[3], &[2, -1, 0])?, 0.0, &state, [3])?;
    let now = ops::load(step.scope(), &state)?;
    let error = step.read(&now).unwrap_err();
    let Error::IndexOutOfRange { op, index, bound } = error else { panic!("{error}") };
    assert_eq!((op, index, bound), ("scattered", u64::from(u32::MAX), 3));
    assert_eq!(step.read(&now)?, [9.0, 2.0, 7.0]);
    Ok(())
}

#[test]
fn misuse_is_an_error() -> Result<()> {
    let (mut rt, other) = (Runtime::new(device())?, Runtime::new(device())?);
    let (state, strange) = (State::<f32>::zeros(&rt, &[3])?, State::<f32>::zeros(&other, &[3])?);
    let step = rt.step()?;
    let error = shifted(step.scope(), &strange, 1, [3]).unwrap_err();
    assert!(matches!(error, Error::DifferentRuntimes { op: "shifted" }), "{error}");
    let error = shifted(step.scope(), &state, 1, [3, 1]).unwrap_err();
    assert!(error.to_string().contains("the results have 1 dimension"), "{error}");
    let x = step.tensor(&[1, 3], &[1.0f32; 3])?;
    let error = put_rows(&x, &step.tensor(&[1], &[0u32])?, &state, [1, 3]).unwrap_err();
    assert!(error.to_string().contains("`cache` must have 2 dimensions"), "{error}");
    Ok(())
}

#[graphable]
fn kept(
    #[host]
    #[dims(B)]
    ids: &Tensor<u32>,
    #[host]
    #[dims(B)]
    slots: &Tensor<u32>,
    table: &graphable::Param<f32>,
    cache: &State<f32>,
) -> Result<Tensor<f32>> {
    let x = ops::embedding(ids, table)?;
    put_rows(&x, slots, cache, x.shape())?;
    let y = #[eager]
    ops::scale(&x, 2.0)?;
    // What was written is there.
    ops::add(&ops::embedding(slots, cache)?, &y)
}

#[test]
fn writes_are_recorded_and_replayed_in_every_mode() -> Result<()> {
    let values: Vec<f32> = (0..60).map(|i| i as f32).collect();
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(device())?;
        let table = graphable::Param::new(&rt, &[10, 6], &values)?;
        let cache = State::<f32>::zeros(&rt, &[8, 6])?;
        let graph = KeptGraph::builder().bucket("B", Schedule::new([2, 4])).mode(mode).build(&mut rt)?;
        let mut want = vec![0.0f32; 48];
        for round in 0..12u32 {
            let rows = round % 4 + 1;
            let ids: Vec<u32> = (0..rows).map(|row| (row * 3 + round) % 10).collect();
            let slots: Vec<u32> = (0..rows).map(|row| (row * round + 1) % 8).collect();
            for (id, slot) in ids.iter().zip(&slots) {
                want[*slot as usize * 6..][..6].copy_from_slice(&values[*id as usize * 6..][..6]);
            }
            let step = rt.step()?;
            let y = graph.call(&step, &ids[..], &slots[..], &table, &cache)?;
            let y = step.read(&y)?;
            for (row, (id, slot)) in ids.iter().zip(&slots).enumerate() {
                for j in 0..6 {
                    let sum = want[*slot as usize * 6 + j] + 2.0 * values[*id as usize * 6 + j];
                    assert_eq!(y[row * 6 + j], sum, "{mode:?}, round {round}, row {row}");
                }
            }
        }
        assert!(mode == Mode::None || rt.stats().replays > 0);
        // Padded rows, whose slot is 0, have written nothing.
        assert_eq!(contents(&mut rt, &cache), want, "{mode:?}");
    }
    Ok(())
}

#[test]
fn the_source_of_a_write_can_be_printed() {
    let source = put_rows::cuda_source();
    let want = "\
template <class C, class X0, class X1, class X2> DEVICE Tuple2<f32, u32> put_rows_0(C& cx, const X0& x_0, const X1& slots_1, const X2& cache_2, i32 i_3, i32 j_4) {
    f32 __written_5 = 0.0f;
    u32 __place_6 = 0u;
    {
        u32 __known_place_7 = views::place(cx, cache_2, lang::to_u32(views::at(cx, slots_1, lang::to_u32(i_3))), lang::to_u32(lang::to_u32(j_4)));
        f32 __known_value_8 = views::at(cx, x_0, lang::to_u32(i_3), lang::to_u32(j_4));
        __place_6 = __known_place_7;
        __written_5 = __known_value_8;
    }
    return Tuple2<f32, u32>{__written_5, __place_6};
}
";
    assert_eq!(source.trim_end(), want.trim_end());
}
