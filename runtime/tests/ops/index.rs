use graphable::{Element, Error, bf16, f16, ops};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    harness::{assert_same, cases, for_types, in_step, indices, input, param, shape, size, state},
    reference::Array,
};

fn lookups<T: Element>() {
    cases(40, |step, rng| {
        let (rows, d) = (rng.random_range(1..8), size(rng));
        let (table, host) = input::<T>(step, rng, &[rows, d], (-9.0, 9.0));
        let dims = shape(rng, 0, 3);
        let (ids, hi) = indices(step, rng, &dims, rows as u32);
        let want = Array::from_fn(&[&dims[..], &[d]].concat(), |i| {
            let (&column, id) = i.split_last().unwrap();
            host.at(&[hi.at(id) as usize, column])
        });
        assert_same(step, &ops::embedding(&ids, &table).unwrap(), &want);

        let mut dims = shape(rng, 1, 4);
        let axis = rng.random_range(0..dims.len());
        dims[axis] = dims[axis].max(1);
        let (x, host) = input::<T>(step, rng, &dims, (-9.0, 9.0));
        let n = size(rng);
        let (index, hi) = indices(step, rng, &[n], dims[axis] as u32);
        let mut out = dims.clone();
        out[axis] = n;
        let want = Array::from_fn(&out, |i| {
            let mut source = i.to_vec();
            source[axis] = hi.data[i[axis]] as usize;
            host.at(&source)
        });
        assert_same(step, &ops::gather(&x, axis, &index).unwrap(), &want);
    });
}

#[test]
fn embedding_and_gather() {
    for_types!(lookups: f32, f16, bf16, i32, i64, u32, u8, bool);
}

#[test]
fn an_id_out_of_range_is_reported_and_reads_as_zeros() {
    let mut rt = graphable::Runtime::new(crate::harness::device()).unwrap();
    let (table, host) = param::<f32>(&rt, &mut StdRng::seed_from_u64(0), &[3, 2]);
    let step = rt.step().unwrap();
    let ids = step.tensor(&[3], &[2u32, 3, 0]).unwrap();
    let rows = ops::embedding(&ids, &table).unwrap();
    match step.read(&rows) {
        Err(Error::IndexOutOfRange { op: "embedding", index: 3, bound: 3 }) => {}
        other => panic!("{other:?}"),
    }
    let want = [host.data[4], host.data[5], 0.0, 0.0, host.data[0], host.data[1]].map(|v| v as f32);
    assert_eq!(step.read(&rows).unwrap(), want);

    let x = step.tensor(&[2, 2], &[1i32, 2, 3, 4]).unwrap();
    let picked = ops::gather(&x, 1, &step.tensor(&[2], &[u32::MAX, 1]).unwrap()).unwrap();
    assert!(matches!(step.read(&picked), Err(Error::IndexOutOfRange { op: "gather", bound: 2, .. })));
    assert_eq!(step.read(&picked).unwrap(), [0, 2, 0, 4]);
}

fn scatters<T: Element>() {
    let mut rt = graphable::Runtime::new(crate::harness::device()).unwrap();
    for seed in 0..40 {
        let rng = &mut StdRng::seed_from_u64(seed);
        let row: Vec<usize> = shape(rng, 0, 2);
        let lead: Vec<usize> = (0..rng.random_range(1..3)).map(|_| rng.random_range(1..5)).collect();
        let rows: usize = lead.iter().product();
        let all = [lead, row.clone()].concat();
        let (target, mut host) = state::<T>(&rt, rng, &all);
        let step = rt.step().unwrap();
        let n = size(rng);
        let (src, hs) = input::<T>(&step, rng, &[&[n], &row[..]].concat(), (-9.0, 9.0));
        let index: Vec<u32> = (0..n)
            .map(|_| if rng.random_bool(0.2) { u32::MAX } else { rng.random_range(0..rows as u32) })
            .collect();
        let width: usize = row.iter().product();
        for (i, &to) in index.iter().enumerate().filter(|(_, to)| **to != u32::MAX) {
            let from = i * width..(i + 1) * width;
            host.data[to as usize * width..][..width].copy_from_slice(&hs.data[from]);
        }
        ops::scatter_rows(&target, &step.tensor(&[n], &index).unwrap(), &src).unwrap();
        assert_same(&step, &ops::load(step.scope(), &target).unwrap(), &host);
    }
}

#[test]
fn scatter_rows_writes_in_place_and_the_last_wins() {
    for_types!(scatters: f32, f16, bf16, i32, i64, u32, u8, bool);
}

#[test]
fn a_row_out_of_range_is_reported_and_not_written() {
    let mut rt = graphable::Runtime::new(crate::harness::device()).unwrap();
    let target = graphable::State::<u8>::zeros(&rt, &[2, 2]).unwrap();
    let step = rt.step().unwrap();
    let src = step.tensor(&[2, 2], &[1u8, 2, 3, 4]).unwrap();
    ops::scatter_rows(&target, &step.tensor(&[2], &[2u32, 1]).unwrap(), &src).unwrap();
    let now = ops::load(step.scope(), &target).unwrap();
    assert!(matches!(
        step.read(&now),
        Err(Error::IndexOutOfRange { op: "scatter_rows", index: 2, bound: 2 })
    ));
    assert_eq!(step.read(&now).unwrap(), [0, 0, 3, 4]);
}

#[test]
fn store_and_load_copy_all_of_it_in_order() {
    let mut rt = graphable::Runtime::new(crate::harness::device()).unwrap();
    let target = graphable::State::<f32>::zeros(&rt, &[2, 3]).unwrap();
    {
        let step = rt.step().unwrap();
        let before = ops::load(step.scope(), &target).unwrap();
        let x = step.tensor(&[3, 2], &[1.0f32, 4.0, 2.0, 5.0, 3.0, 6.0]).unwrap();
        ops::store(&target, &ops::transpose(&x, 0, 1).unwrap()).unwrap();
        let after = ops::load(step.scope(), &target).unwrap();
        assert_eq!(step.read(&before).unwrap(), [0.0; 6]);
        assert_eq!(step.read(&after).unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    }
    let step = rt.step().unwrap();
    assert_eq!(step.read(&ops::load(step.scope(), &target).unwrap()).unwrap()[5], 6.0);
    in_step(|other| {
        let foreign = ops::load(other.scope(), &target);
        assert!(matches!(foreign, Err(Error::DifferentRuntimes { .. })));
    });
}

/// More rows than are looked through: on a GPU those go by a table. Each state row gets its last source row.
#[test]
fn the_last_of_many_equal_rows_wins() {
    let mut rt = graphable::Runtime::new(crate::harness::device()).unwrap();
    let rng = &mut StdRng::seed_from_u64(7);
    for (n, rows, d) in [(2049usize, 100usize, 3usize), (6000, 5000, 8), (70_000, 40_000, 1), (9000, 1, 4)] {
        let initial: Vec<f32> = (0..rows * d).map(|i| -1.0 - i as f32).collect();
        let target = graphable::State::new(&rt, &[rows, d], &initial).unwrap();
        let index: Vec<u32> = (0..n)
            .map(|_| if rng.random_bool(0.05) { u32::MAX } else { rng.random_range(0..rows as u32) })
            .collect();
        let mut want = initial;
        for (i, &row) in index.iter().enumerate().filter(|(_, row)| **row != u32::MAX) {
            (0..d).for_each(|e| want[row as usize * d + e] = (i * d + e) as f32);
        }
        let step = rt.step().unwrap();
        let x: Vec<f32> = (0..n * d).map(|i| i as f32).collect();
        let (x, index) = (step.tensor(&[n, d], &x).unwrap(), step.tensor(&[n], &index).unwrap());
        for round in 0..3 {
            ops::scatter_rows(&target, &index, &x).unwrap();
            let got = step.read(&ops::load(step.scope(), &target).unwrap()).unwrap();
            assert!(got == want, "{n} rows into {rows}, round {round}");
        }
    }
}

#[test]
fn a_row_out_of_range_among_many_is_reported() {
    let mut rt = graphable::Runtime::new(crate::harness::device()).unwrap();
    let target = graphable::State::<f32>::zeros(&rt, &[10, 1]).unwrap();
    let step = rt.step().unwrap();
    let mut index: Vec<u32> = (0..5000).map(|i| i % 9).collect();
    (index[3000], index[4000]) = (77, 78);
    let x: Vec<f32> = (0..5000).map(|i| i as f32).collect();
    let (x, index) = (step.tensor(&[5000, 1], &x).unwrap(), step.tensor(&[5000], &index).unwrap());
    ops::scatter_rows(&target, &index, &x).unwrap();
    let now = ops::load(step.scope(), &target).unwrap();
    let fault = step.read(&now);
    assert!(matches!(fault, Err(Error::IndexOutOfRange { index: 77, bound: 10, .. })), "{fault:?}");
    let got = step.read(&now).unwrap();
    assert_eq!(got, [4995.0, 4996.0, 4997.0, 4998.0, 4999.0, 4991.0, 4992.0, 4993.0, 4994.0, 0.0]);
}
