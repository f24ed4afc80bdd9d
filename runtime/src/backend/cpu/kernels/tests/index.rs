use super::*;
use crate::backend::operations::{Counts, Embedding, Gather, SCATTER_ROWS};

/// Random indices below `rows`, with some out of range if requested, in a random layout.
fn indices(rng: &mut StdRng, shape: &[usize], rows: usize, wrong: bool) -> Array {
    let n = shape.iter().product();
    let values: Vec<f64> = (0..n)
        .map(|_| {
            let beyond = rows == 0 || wrong && rng.random_bool(0.1);
            (if beyond { rows + rng.random_range(0..3) } else { rng.random_range(0..rows) }) as f64
        })
        .collect();
    Array::strided(DType::U32, random_layout(rng, shape, false), 1, &values)
}

#[track_caller]
fn assert_fault(fault: Result<(), Fault>, op: impl Into<Op>, indices: &[f64], rows: usize) {
    let op = op.into();
    match (fault, indices.iter().find(|&&i| i >= rows as f64)) {
        (Ok(()), None) => {}
        (Err(Fault::Index { op: name, index, bound }), Some(&first)) => {
            assert_eq!((name, index as f64, bound), (op.name(), first, rows as u64));
        }
        (fault, first) => panic!("{op:?}: {fault:?}, first wrong index {first:?}"),
    }
}

#[test]
fn embeddings_read_rows() {
    let mut rng = StdRng::seed_from_u64(21);
    for dtype in ALL {
        for case in 0..40 {
            let shape = random_shape(&mut rng, case % 4);
            let (rows, d) = (rng.random_range(0..20), rng.random_range(0..40));
            let ids = indices(&mut rng, &shape, rows, case % 2 == 0);
            let table = Array::random(&mut rng, dtype, &[rows, d]);
            let mut y = Array::output(dtype, &[&shape[..], &[d]].concat());
            let fault = run(Embedding { counts: Counts::NONE }, &[&ids, &table], &mut y);
            assert_fault(fault, Embedding { counts: Counts::NONE }, &ids.values(), rows);
            let values = table.values();
            let expected: Vec<f64> = ids
                .values()
                .iter()
                .flat_map(|&id| match id as usize {
                    id if id < rows => values[id * d..(id + 1) * d].to_vec(),
                    _ => vec![0.0; d],
                })
                .collect();
            assert_exact(&y.values(), &expected, &format!("embedding {dtype}"));
        }
    }
}

#[test]
fn gather_picks_slices_along_any_axis() {
    let mut rng = StdRng::seed_from_u64(22);
    for dtype in ALL {
        for case in 0..40 {
            let rank = 1 + case % 4;
            let axis = rng.random_range(0..rank);
            let shape = random_shape(&mut rng, rank);
            let n = rng.random_range(0..9);
            let x = Array::random(&mut rng, dtype, &shape);
            let index = indices(&mut rng, &[n], shape[axis], case % 2 == 0);
            let mut out = shape.clone();
            out[axis] = n;
            let mut y = Array::output(dtype, &out);
            let fault = run(Gather { axis, counts: Counts::NONE }, &[&x, &index], &mut y);
            assert_fault(fault, Gather { axis, counts: Counts::NONE }, &index.values(), shape[axis]);
            let (values, index) = (x.values(), index.values());
            let expected: Vec<f64> = (0..out.iter().product())
                .map(|i| {
                    let mut at = unravel(i, &out);
                    at[axis] = index[at[axis]] as usize;
                    if at[axis] < shape[axis] { values[ravel(&at, &shape)] } else { 0.0 }
                })
                .collect();
            assert_exact(&y.values(), &expected, &format!("gather {dtype} {x:?} along {axis}"));
        }
    }
}

#[test]
fn large_gathers_split() {
    let mut rng = StdRng::seed_from_u64(23);
    for (shape, axis) in [([50, 900], 0), ([900, 50], 1)] {
        let x = Array::random(&mut rng, DType::F32, &shape);
        let index = indices(&mut rng, &[200], 50, false);
        let mut out = shape;
        out[axis] = 200;
        let mut y = Array::output(DType::F32, &out);
        run(Gather { axis, counts: Counts::NONE }, &[&x, &index], &mut y).unwrap();
        let (values, index) = (x.values(), index.values());
        let expected: Vec<f64> = (0..out[0] * out[1])
            .map(|i| {
                let mut at = unravel(i, &out);
                at[axis] = index[at[axis]] as usize;
                values[ravel(&at, &shape)]
            })
            .collect();
        assert_exact(&y.values(), &expected, "large gather");
    }
}

#[test]
fn scatter_writes_rows_in_order() {
    let mut rng = StdRng::seed_from_u64(24);
    for dtype in ALL {
        for case in 0..60 {
            let row = random_shape(&mut rng, case % 3);
            let width: usize = row.iter().product();
            let (n, rows) = (rng.random_range(0..12), rng.random_range(0..9));
            let mut index = indices(&mut rng, &[n], rows, case % 2 == 0).values();
            for i in &mut index {
                if rng.random_bool(0.2) {
                    *i = f64::from(u32::MAX);
                }
            }
            let ids = Array::strided(DType::U32, random_layout(&mut rng, &[n], false), 0, &index);
            let src = Array::random(&mut rng, dtype, &[&[n], &row[..]].concat());
            let count = rng.random_range(0..n + 3);
            let scalar = Array::contiguous(DType::U32, &[], &[count as f64]);
            let start: Vec<f64> = (0..rows * width).map(|_| random_value(&mut rng, dtype)).collect();
            let mut state = Array::contiguous(dtype, &[&[rows], &row[..]].concat(), &start);

            let used = if case % 3 == 0 { n.min(count) } else { n };
            let inputs = if case % 3 == 0 { vec![&ids, &src, &scalar] } else { vec![&ids, &src] };
            let fault = run(SCATTER_ROWS, &inputs, &mut state);

            let counted: Vec<f64> =
                index[..used].iter().copied().filter(|&i| i != f64::from(u32::MAX)).collect();
            assert_fault(fault, SCATTER_ROWS, &counted, rows);
            let (mut expected, values) = (start, src.values());
            for (i, &to) in index[..used].iter().enumerate() {
                let to = to as usize;
                if to < rows {
                    expected[to * width..(to + 1) * width]
                        .copy_from_slice(&values[i * width..(i + 1) * width]);
                }
            }
            assert_exact(&state.values(), &expected, &format!("scatter {dtype}"));
        }
    }
}

#[test]
fn the_row_given_last_wins() {
    let index = Array::contiguous(DType::U32, &[3], &[1.0, 0.0, 1.0]);
    let src = Array::contiguous(DType::F32, &[3, 1], &[10.0, 20.0, 30.0]);
    let mut state = Array::contiguous(DType::F32, &[3, 1], &[0.0, 1.0, 2.0]);
    run(SCATTER_ROWS, &[&index, &src], &mut state).unwrap();
    assert_eq!(state.values(), [20.0, 30.0, 2.0]);
}
