use graphable::{Element, Number, Result, Tensor, bf16, f16, ops};

use crate::{
    harness::{assert_same, cases, for_types, in_step, input, part_of, shape},
    reference::{Array, broadcast_shape},
};

fn compare<T: Element>(
    op: impl for<'s> Fn(&Tensor<'s, T>, &Tensor<'s, T>) -> Result<Tensor<'s, bool>>,
    reference: impl Fn(f64, f64) -> bool,
) {
    cases(30, |step, rng| {
        let all = shape(rng, 0, 4);
        let (sa, sb) = (part_of(rng, &all), part_of(rng, &all));
        // Whole numbers, so that equal pairs are common.
        let (a, ha) = input::<T>(step, rng, &sa, (-2.0, 2.0));
        let (b, hb) = input::<T>(step, rng, &sb, (-2.0, 2.0));
        let want = Array::from_fn(&broadcast_shape(&[&sa, &sb]), |i| {
            f64::from(u8::from(reference(ha.at(i), hb.at(i))))
        });
        assert_same(step, &op(&a, &b).unwrap(), &want);
        if sa.len() == sb.len() {
            assert_same(step, &op(&a, &a).unwrap(), &ha.map(|v| f64::from(u8::from(reference(v, v)))));
        }
    });
}

fn order<T: Number>() {
    compare::<T>(|a, b| ops::lt(a, b), |a, b| a < b);
    compare::<T>(|a, b| ops::le(a, b), |a, b| a <= b);
    compare::<T>(|a, b| ops::gt(a, b), |a, b| a > b);
    compare::<T>(|a, b| ops::ge(a, b), |a, b| a >= b);
}

fn equality<T: Element>() {
    compare::<T>(|a, b| ops::eq(a, b), |a, b| a == b);
    compare::<T>(|a, b| ops::ne(a, b), |a, b| a != b);
}

#[test]
fn comparisons() {
    for_types!(order: f32, f16, bf16, f64, i32, i64, i8, u32, u8);
    for_types!(equality: f32, f16, bf16, f64, i32, i64, i8, u32, u8, bool);
}

#[test]
fn nan_equals_nothing() {
    in_step(|step| {
        let x = step.tensor(&[2], &[f32::NAN, 1.0]).unwrap();
        assert_eq!(step.read(&ops::eq(&x, &x).unwrap()).unwrap(), [false, true]);
        assert_eq!(step.read(&ops::ne(&x, &x).unwrap()).unwrap(), [true, false]);
        assert_eq!(step.read(&ops::le(&x, &x).unwrap()).unwrap(), [false, true]);
        assert_eq!(step.read(&ops::gt(&x, &x).unwrap()).unwrap(), [false, false]);
    });
}

fn select<T: Element>() {
    cases(40, |step, rng| {
        let all = shape(rng, 0, 4);
        let [sc, sa, sb] = [(); 3].map(|()| part_of(rng, &all));
        let (c, hc) = input::<bool>(step, rng, &sc, (0.0, 1.0));
        let (a, ha) = input::<T>(step, rng, &sa, (-9.0, 9.0));
        let (b, hb) = input::<T>(step, rng, &sb, (-9.0, 9.0));
        let want = Array::from_fn(&broadcast_shape(&[&sc, &sa, &sb]), |i| {
            if hc.at(i) != 0.0 { ha.at(i) } else { hb.at(i) }
        });
        assert_same(step, &ops::where_(&c, &a, &b).unwrap(), &want);
    });
}

#[test]
fn where_picks() {
    for_types!(select: f32, f16, bf16, f64, i32, i64, i8, u32, u8, bool);
    in_step(|step| {
        let cond = step.tensor(&[2], &[true, false]).unwrap();
        let nan = ops::full(step.scope(), &[2], f32::NAN).unwrap();
        let zero = ops::zeros::<f32>(step.scope(), &[2]).unwrap();
        assert_eq!(step.read(&ops::where_(&cond, &zero, &nan).unwrap()).unwrap()[0], 0.0);
    });
}

#[test]
fn where_moves_bits() {
    in_step(|step| {
        let cond = step.tensor(&[2], &[true, false]).unwrap();
        // A NaN that signals.
        let odd = step.tensor(&[1], &[bf16::from_bits(0x7f81)]).unwrap();
        let one = step.tensor(&[1], &[bf16::from_bits(0xffc5)]).unwrap();
        let bits = step.read(&ops::where_(&cond, &odd, &one).unwrap()).unwrap();
        assert_eq!(bits.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), [0x7f81, 0xffc5]);
        let odd = step.tensor(&[1], &[f32::from_bits(0x7f80_0001)]).unwrap();
        let bits = step.read(&ops::where_(&cond, &odd, &odd).unwrap()).unwrap();
        assert_eq!(bits.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), [0x7f80_0001; 2]);
    });
}

#[test]
fn numbers_are_rounded_to_the_type_of_the_tensor() {
    fn check<T: graphable::Float>()
    where
        f32: for<'s> graphable::Argument<'s, T>,
    {
        in_step(|step| {
            let x = step.tensor(&[2], &[T::from_f64(0.3), T::from_f64(0.5)]).unwrap();
            let read = |y: Result<Tensor<'_, bool>>| step.read(&y.unwrap()).unwrap();
            assert_eq!(read(ops::eq(&x, 0.3)), [true, false]);
            assert_eq!(read(ops::ne(&x, 0.3)), [false, true]);
            assert_eq!(
                (read(ops::lt(&x, 0.3)), read(ops::gt(&x, 0.3))),
                (vec![false, false], vec![false, true])
            );
            assert_eq!(
                (read(ops::le(&x, 0.3)), read(ops::ge(&x, 0.3))),
                (vec![true, false], vec![true, true])
            );
        });
    }
    for_types!(check: f32, f16, bf16);
}
