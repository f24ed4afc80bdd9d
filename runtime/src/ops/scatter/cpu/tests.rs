use rand::{Rng, SeedableRng, rngs::StdRng};

use super::super::operation::SCATTER_ROWS;
use crate::{DType, backend::cpu::kernels::testing::*};

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
