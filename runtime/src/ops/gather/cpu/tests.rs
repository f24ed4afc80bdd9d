use rand::{Rng, SeedableRng, rngs::StdRng};

use super::super::operation::{Counts, Embedding, Gather};
use crate::{DType, backend::cpu::kernels::testing::*};

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
            let fault = run(Gather { name: "gather", axis, counts: Counts::NONE }, &[&x, &index], &mut y);
            assert_fault(
                fault,
                Gather { name: "gather", axis, counts: Counts::NONE },
                &index.values(),
                shape[axis],
            );
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
        run(Gather { name: "gather", axis, counts: Counts::NONE }, &[&x, &index], &mut y).unwrap();
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
