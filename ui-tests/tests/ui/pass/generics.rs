//! Generic elements and constants, several instances, results that are structures.

#![deny(warnings)]

use graphable::prelude::*;

#[derive(GraphOutput)]
struct Halves<'s, T> {
    left: Tensor<'s, T>,
    right: Option<Tensor<'s, T>>,
    width: usize,
}

#[derive(Params)]
struct Gain<T: Element> {
    by: Param<T>,
}

#[graphable]
fn halves<T: Float, const N: usize>(
    #[dims(B, N)] x: &Tensor<T>,
    gain: &Gain<T>,
    #[key] both: bool,
) -> Result<Halves<T>>
where
    T: Clone,
{
    let y = ops::mul(x, &gain.by)?;
    let y = #[eager]
    ops::neg(&y)?;
    let width = N / 2;
    let left = ops::narrow(&y, 1, 0, width)?;
    let right = if both { Some(ops::narrow(&y, 1, width, N - width)?) } else { None };
    Ok(Halves { left, right, width })
}

fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    let narrow = HalvesGraph::<f32, 2>::builder().build(&mut rt)?;
    let wide = HalvesGraph::<f32, 4>::builder().build(&mut rt)?;
    let gain = Gain { by: Param::new(&rt, &[1], &[2.0f32])? };
    for turn in 0..4 {
        let step = rt.step()?;
        let x = step.tensor(&[1, 2], &[1.0f32, 2.0])?;
        let out = narrow.call(&step, &x, &gain, turn % 2 == 0)?;
        assert_eq!((step.read(&out.left)?, out.width), (vec![-2.0], 1));
        assert_eq!(out.right.is_some(), turn % 2 == 0);
        let x = step.tensor(&[1, 4], &[1.0f32, 2.0, 3.0, 4.0])?;
        let out = wide.call(&step, &x, &gain, true)?;
        assert_eq!((step.read(&out.left)?, out.width), (vec![-2.0, -4.0], 2));
    }
    Ok(())
}
