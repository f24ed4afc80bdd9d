//! Functions that `macro_rules!` made: a name that the macro was given and its own one of the same text are two
//! variables.

use graphable::{graphable, prelude::*};

use crate::support::{attention, gives};

macro_rules! written_in_a_loop {
    ($name:ident, $h:ident) => {
        #[graphable]
        fn $name(x: &Tensor<f32>) -> Result<Tensor<f32>> {
            let mut $h = ops::scale(x, 2.0)?;
            let h = ops::scale(x, 3.0)?;
            for _ in 0..2 {
                $h = ops::add(&$h, &h)?;
                let a = #[eager]
                attention(&$h)?;
                let h = ops::add(&a, x)?;
                $h = ops::sub(&h, x)?;
            }
            ops::add(&$h, &h)
        }
    };
}
written_in_a_loop!(first, h);

macro_rules! residual {
    ($name:ident, $h:ident, $body:block) => {
        #[graphable]
        fn $name($h: &Tensor<f32>) -> Result<Tensor<f32>> {
            let h = ops::scale($h, 5.0)?;
            let a = #[eager]
            attention(&h)?;
            let $h = $body;
            let h = ops::add(&h, &a)?;
            assert!(h.rank() == 1, "{h:?}{{h}} {}", $h.rank());
            let b = #[eager]
            attention(&$h)?;
            ops::add(&h, &b)
        }
    };
}
residual!(second, h, { ops::neg(h)? });

struct Both<'a, 's> {
    h: &'a Tensor<'s, f32>,
    k: f32,
}

macro_rules! closures_and_patterns {
    ($name:ident, $h:ident, $k:ident) => {
        #[graphable]
        fn $name(x: &Tensor<f32>) -> Result<Tensor<f32>> {
            let $h = ops::scale(x, 2.0)?;
            let h = ops::scale(x, 7.0)?;
            let k = 2.0;
            let $k = 3.0;
            let f = |t| ops::scale(t, k);
            let a = #[eager]
            attention(&$h)?;
            let Both { h: inner, k: by } = Both { h: &h, k: $k };
            let y = ops::scale(&ops::add(inner, &f(&a)?)?, by)?;
            let b = #[eager]
            attention(&y)?;
            let h = &$h;
            ops::add(&b, Both { h, k }.h)
        }
    };
}
closures_and_patterns!(third, h, k);

#[test]
fn names_of_macros() {
    // 2 -> 5 -> 8, and 3
    gives!(FirstGraph, 11.0);
    // 5 + 5, and -1
    gives!(SecondGraph, 9.0);
    // (7 + 2 * 2) * 3 + 2
    gives!(ThirdGraph, 35.0);
}

macro_rules! labels {
    ($name:ident, $outer:lifetime) => {
        #[graphable]
        fn $name(x: &Tensor<f32>) -> Result<Tensor<f32>> {
            let mut h = ops::scale(x, 1.0)?;
            $outer: for i in 0..4 {
                'outer: for j in 0..4 {
                    h = ops::scale(&h, 2.0)?;
                    if j == 1 {
                        break 'outer;
                    }
                    if i == 2 {
                        break $outer;
                    }
                }
                h = #[eager]
                attention(&h)?;
            }
            $outer: loop {
                let v = 'outer: loop {
                    h = ops::add(&h, x)?;
                    if h.rank() == 1 {
                        break 'outer ops::scale(&h, 2.0)?;
                    }
                    break $outer;
                };
                h = #[eager]
                attention(&v)?;
                break $outer;
            }
            Ok(h)
        }
    };
}
labels!(labelled, 'outer);

#[test]
fn labels_of_a_macro_and_of_its_caller_are_two() {
    gives!(LabelledGraph, 66.0);
}
