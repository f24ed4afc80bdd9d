//! Gathers, rolls and upsampling written with `#[kernel(index)]`, beside the built-in gather of the same elements.

use graphable::{Error, Float, Result, Runtime, Step, bf16, kernel, ops};

#[kernel(index)]
fn rows(ids: View<u32, 1>, x: View<f32, 2>, [i, j]: [i32; 2]) -> f32 {
    x.at([ids.at([i]), j])
}

#[kernel(index)]
fn columns(ids: View<u32, 1>, x: View<f32, 2>, [i, j]: [i32; 2]) -> f32 {
    x.at([i, ids.at([j]) as i32])
}

#[kernel(index)]
fn roll(x: View<f32, 2>, shift: i32, [i, j]: [i32; 2]) -> f32 {
    let from = j - shift;
    x.at([i, if from < 0 { from + x.dim(1) } else { from }])
}

#[kernel(index)]
fn upsample(x: View<f32, 2>, [i, j]: [i32; 2]) -> f32 {
    x.at([i / 2, j])
}

type Call<'a> = Box<dyn Fn() -> Result<()> + 'a>;

/// Returns the microseconds that a call takes.
type Time<'t> = &'t dyn Fn(&Step<'_>, &dyn Fn() -> Result<()>) -> Result<f64>;

/// Measures, for each shape, each of the two.
pub(crate) fn measure(rt: &mut Runtime, shapes: &[(usize, usize)], time: Time<'_>) -> Result<(), Error> {
    of::<f32>(rt, shapes, time)?;
    of::<bf16>(rt, shapes, time)
}

fn of<T: Float>(rt: &mut Runtime, shapes: &[(usize, usize)], time: Time<'_>) -> Result<(), Error> {
    for &(count, size) in shapes {
        // As many bytes in every type.
        let count = count * 4 / T::DTYPE.size();
        let step = rt.step()?;
        let values: Vec<T> =
            (0..count * size).map(|i| T::from_f64((i % 1013) as f64 / 500.0 - 1.0)).collect();
        let x = &step.tensor(&[count, size], &values)?;
        let numbers = |count: usize, of: &dyn Fn(usize) -> usize| {
            let all: Vec<u32> = (0..count).map(|i| of(i) as u32).collect();
            step.tensor(&[count], &all)
        };
        let apart = &numbers(count, &|i| i * 7919 % count)?;
        let rolled = &numbers(size, &|i| (i + 3) % size)?;
        let halves = &numbers(count, &|i| i / 2)?;
        let shift = size as i32 - 3;
        let all: [(&str, Call<'_>, Call<'_>); 4] = [
            (
                "rows",
                Box::new(|| ops::gather(x, 0, apart).map(drop)),
                Box::new(|| rows(apart, x, x.shape()).map(drop)),
            ),
            (
                "columns",
                Box::new(|| ops::gather(x, 1, rolled).map(drop)),
                Box::new(|| columns(rolled, x, x.shape()).map(drop)),
            ),
            (
                "roll",
                Box::new(|| ops::gather(x, 1, rolled).map(drop)),
                Box::new(|| roll(x, shift, x.shape()).map(drop)),
            ),
            (
                "upsample",
                Box::new(|| ops::gather(x, 0, halves).map(drop)),
                Box::new(|| upsample(x, x.shape()).map(drop)),
            ),
        ];
        for (name, built_in, own) in &all {
            let (before, after) = (time(&step, built_in)?, time(&step, own)?);
            let ratio = before / after;
            let case = format!("{} {count}x{size}", T::DTYPE);
            println!("{{\"figure\":\"indexed\",\"case\":\"{name} {case}\",\"launch_us\":{before:.2}}}");
            println!(
                "{{\"figure\":\"indexed\",\"case\":\"{name}Twin {case}\",\"launch_us\":{after:.2},\"first_over_this\":{ratio:.3}}}"
            );
        }
    }
    Ok(())
}
