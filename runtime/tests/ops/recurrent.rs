//! Cells of recurrent networks against plain loops.

use graphable::{Real, bf16, f16, ops};

use crate::{
    fixtures::Fixture,
    harness::{assert_close, cases, for_types, in_step, input, is_shape, size},
    reference::Array,
};

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `x w^T + b`
fn linear(x: &Array, w: &Array, b: &Array) -> Array {
    let inner = x.shape[1];
    Array::from_fn(&[x.shape[0], w.shape[0]], |i| {
        let products = (0..inner).map(|k| x.data[i[0] * inner + k] * w.data[i[1] * inner + k]);
        b.data[i[1]] + products.sum::<f64>()
    })
}

fn cells<T: Real>() {
    // Of 16 bits, the products with input and state are rounded.
    let slack = if T::DTYPE.size() > 2 { 10.0 } else { 1e4 };
    cases(30, |step, rng| {
        let (batch, inner, width) = (size(rng), size(rng), size(rng).max(1));
        let mut drawn = |shape: &[usize]| input::<T>(step, rng, shape, (-1.0, 1.0));
        let ((x, hx), (h, hh), (c, hc)) =
            (drawn(&[batch, inner]), drawn(&[batch, width]), drawn(&[batch, width]));
        for gates in [3, 4] {
            let rows = gates * width;
            let (wi, hwi) = drawn(&[rows, inner]);
            let (wh, hwh) = drawn(&[rows, width]);
            let ((bi, hbi), (bh, hbh)) = (drawn(&[rows]), drawn(&[rows]));
            let (input, hidden) = (linear(&hx, &hwi, &hbi), linear(&hh, &hwh, &hbh));
            let of = |a: &Array, gate: usize, i: &[usize]| a.data[i[0] * rows + gate * width + i[1]];
            let both = |gate: usize, i: &[usize]| of(&input, gate, i) + of(&hidden, gate, i);
            let shape = [batch, width];
            let old = |a: &Array, i: &[usize]| a.data[i[0] * width + i[1]];
            if gates == 4 {
                let (new_h, new_c) = ops::lstm_cell(&x, &h, &c, &wi, &wh, &bi, &bh).unwrap();
                let next =
                    |i: &[usize]| sigmoid(both(1, i)) * old(&hc, i) + sigmoid(both(0, i)) * both(2, i).tanh();
                assert_close(step, &new_c, &Array::from_fn(&shape, next), slack);
                let want = Array::from_fn(&shape, |i| sigmoid(both(3, i)) * next(i).tanh());
                assert_close(step, &new_h, &want, slack);
            } else {
                let y = ops::gru_cell(&x, &h, &wi, &wh, &bi, &bh).unwrap();
                let want = Array::from_fn(&shape, |i| {
                    let (reset, keep) = (sigmoid(both(0, i)), sigmoid(both(1, i)));
                    let candidate = (of(&input, 2, i) + reset * of(&hidden, 2, i)).tanh();
                    (1.0 - keep) * candidate + keep * old(&hh, i)
                });
                assert_close(step, &y, &want, slack);
            }
        }
    });
}

#[test]
fn cells_compute_their_gates() {
    for_types!(cells: f32, f16, bf16, f64);
}

#[test]
fn what_does_not_fit_is_refused() {
    in_step(|step| {
        let zeros = |shape: &[usize]| ops::zeros::<f32>(step.scope(), shape).unwrap();
        let (x, h) = (zeros(&[2, 3]), zeros(&[2, 5]));
        let (wi, wh, b) = (zeros(&[20, 3]), zeros(&[20, 5]), zeros(&[20]));
        assert!(ops::lstm_cell(&x, &h, &h, &wi, &wh, &b, &b).is_ok());
        assert!(is_shape(ops::lstm_cell(&zeros(&[3]), &h, &h, &wi, &wh, &b, &b)), "rank");
        assert!(is_shape(ops::lstm_cell(&x, &zeros(&[1, 5]), &h, &wi, &wh, &b, &b)), "batch");
        assert!(is_shape(ops::lstm_cell(&x, &h, &zeros(&[2, 4]), &wi, &wh, &b, &b)), "cell");
        assert!(is_shape(ops::lstm_cell(&x, &h, &h, &wh, &wh, &b, &b)), "weight of the input");
        assert!(is_shape(ops::lstm_cell(&x, &h, &h, &wi, &wi, &b, &b)), "weight of the state");
        assert!(is_shape(ops::lstm_cell(&x, &h, &h, &wi, &wh, &b, &zeros(&[5]))), "bias");
        assert!(is_shape(ops::gru_cell(&x, &h, &wi, &wh, &b, &b)), "gates");
        let (wi, wh, b) = (zeros(&[15, 3]), zeros(&[15, 5]), zeros(&[15]));
        assert!(ops::gru_cell(&x, &h, &wi, &wh, &b, &b).is_ok());
    });
}

#[test]
fn cells_are_those_of_pytorch() {
    in_step(|step| {
        let case = |name| Fixture::new(include_str!("fixtures/conv.txt"), name);
        let weights = ["w_ih", "w_hh", "b_ih", "b_hh"];
        let lstm = case("lstm_cell");
        let [x, h, c] = ["x", "s0", "s1"].map(|name| lstm.tensor(step, name));
        let [wi, wh, bi, bh] = weights.map(|name| lstm.tensor(step, name));
        let (h, c) = ops::lstm_cell(&x, &h, &c, &wi, &wh, &bi, &bh).unwrap();
        assert_close(step, &h, lstm.array("y0"), 3.0);
        assert_close(step, &c, lstm.array("y1"), 3.0);
        let gru = case("gru_cell");
        let [x, h] = ["x", "s0"].map(|name| gru.tensor(step, name));
        let [wi, wh, bi, bh] = weights.map(|name| gru.tensor(step, name));
        let h = ops::gru_cell(&x, &h, &wi, &wh, &bi, &bh).unwrap();
        assert_close(step, &h, gru.array("y0"), 3.0);
    });
}
