//! A closure must find what it meant: another closure that it calls, constants and functions.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let half = |t: &Tensor<f32>| ops::scale(t, 0.5);
    let quarter = |t: &Tensor<f32>| half(&half(t)?);
    let a = #[eager]
    ops::neg(x)?;
    let half = half(&a)?;
    let b = #[eager]
    ops::neg(&half)?;
    quarter(&b)
}

const BY: f32 = 2.0;

#[graphable]
fn items(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let scaled = |t: &Tensor<f32>| ops::scale(t, BY);
    let by = Some(BY);
    let a = #[eager]
    ops::neg(x)?;
    if BY > 1.0 {
        const BY: f32 = 3.0;
        let b = #[eager]
        ops::scale(&a, BY)?;
        return ops::scale(&scaled(&b)?, by.unwrap());
    }
    scaled(&a)
}

mod other {
    pub const BY: f32 = 3.0;
}

#[graphable]
fn imports(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let scaled = |t: &Tensor<f32>| ops::scale(t, BY);
    let a = #[eager]
    ops::neg(x)?;
    let b = {
        use other::*;
        let b = #[eager]
        ops::scale(&a, BY)?;
        scaled(&b)?
    };
    scaled(&b)
}

#[graphable]
fn macros(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    macro_rules! by {
        () => {
            1.0f32
        };
    }
    let scaled = |t: &Tensor<f32>| ops::scale(t, by!());
    let a = #[eager]
    ops::neg(x)?;
    macro_rules! by {
        () => {
            50.0f32
        };
    }
    scaled(&a)
}

#[graphable]
fn macros_of_macros(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    macro_rules! by {
        () => {
            1.0f32
        };
    }
    macro_rules! twice {
        () => {
            by!() * 2.0
        };
    }
    let scaled = |t: &Tensor<f32>| ops::scale(t, twice!());
    let a = #[eager]
    ops::neg(x)?;
    macro_rules! by {
        () => {
            50.0f32
        };
    }
    ops::scale(&scaled(&a)?, by!())
}

trait Rate {
    fn rate(&self) -> f32;
}
impl Rate for Tensor<'_, f32> {
    fn rate(&self) -> f32 {
        2.0
    }
}

#[graphable]
fn traits(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let scaled = |t: &Tensor<f32>| ops::scale(t, t.rate());
    let a = #[eager]
    ops::neg(x)?;
    let b = {
        trait Other {
            fn rate(self) -> f32;
        }
        impl Other for &&Tensor<'_, f32> {
            fn rate(self) -> f32 {
                3.0
            }
        }
        let b = #[eager]
        ops::scale(&a, Other::rate(&&a))?;
        scaled(&b)?
    };
    scaled(&b)
}

fn main() {}
