//! Element-wise operations beside `#[kernel]` functions of the same text: device time of one launch, of many in one
//! graph.

use graphable::{Element, Float, Step, bf16, f16, graphable, prelude::*};

use crate::{
    timing::{Rounds, check_launches},
    twins,
};

/// A graph of equal launches.
macro_rules! figures {
    ($($name:ident $x:ident $y:ident: $element:ty = $op:expr;)*) => {$(
        #[graphable]
        fn $name<T: Float>($x: &Tensor<T>, $y: &Tensor<T>, #[key] launches: u32) -> Result<Tensor<$element>> {
            let mut out = $op?;
            for _ in 1..launches {
                out = $op?;
            }
            Ok(out)
        }
    )*};
}

figures! {
    add x y: T = ops::add(x, y);
    add_twin x y: T = twins::add(x, y);
    silu_mul x y: T = ops::silu_mul(x, y);
    silu_mul_twin x y: T = twins::silu_mul(x, y);
    gelu x _y: T = ops::gelu(x);
    gelu_tanh x _y: T = ops::gelu_tanh(x);
    gelu_tanh_twin x _y: T = twins::gelu_tanh(x);
    exp x _y: T = ops::exp(x);
    exp_twin x _y: T = twins::exp(x);
    lt x y: bool = ops::lt(x, y);
    lt_twin x y: bool = twins::lt(x, y);
}

/// Of all types.
#[graphable]
fn to_f32<T: Float>(x: &Tensor<T>, _y: &Tensor<T>, #[key] launches: u32) -> Result<Tensor<f32>> {
    let mut out = ops::cast::<T, f32>(x)?;
    for _ in 1..launches {
        out = ops::cast::<T, f32>(x)?;
    }
    Ok(out)
}

/// How the operands lie.
#[derive(Clone, Copy, Debug)]
enum Lies {
    /// Both contiguous.
    Flat,
    /// The second one row, for all.
    Row,
    /// The first transposed.
    Transposed,
}

impl Lies {
    fn operands<'s, T: Float>(self, step: &'s Step<'_>, shape: [usize; 2]) -> Result<[Tensor<'s, T>; 2]> {
        let [rows, columns] = shape;
        let flat = || ops::full(step.scope(), &shape[..], T::from_f64(0.5));
        Ok(match self {
            Self::Flat => [flat()?, flat()?],
            Self::Row => [flat()?, ops::full(step.scope(), &[columns], T::from_f64(0.5))?],
            Self::Transposed => {
                let x = ops::full(step.scope(), &[columns, rows], T::from_f64(0.5))?;
                [ops::transpose(&x, 0, 1)?, flat()?]
            }
        })
    }
}

/// Sizes, by rows and columns: few elements, many, and 64 MiB.
fn shapes<T: Element>() -> [[usize; 2]; 3] {
    [[4, 1024], [1024, 1024], [4096, 4096 * 4 / T::DTYPE.size()]]
}

/// Microseconds of a launch of each graph.
macro_rules! measure {
    ($rt:expr, $t:ty, $lies:ident, $($graph:ident)*) => {
        for shape in shapes::<$t>() {
            let (rt, lies) = (&mut *$rt, Lies::$lies);
            let small = shape[0] * shape[1] <= 1 << 20;
            let (launches, rounds) = if small { (400u32, 30) } else { (20, 30) };
            let mut names = Vec::new();
            let mut times = Vec::new();
            $({
                let graph = $graph::<$t>::builder().build(rt)?;
                for _ in 0..3 {
                    let step = rt.step()?;
                    let [x, y] = lies.operands::<$t>(&step, shape)?;
                    graph.call(&step, &x, &y, launches)?;
                }
                check_launches(rt, launches)?;
                let step = rt.step()?;
                let [x, y] = lies.operands::<$t>(&step, shape)?;
                let mut all = Rounds::default();
                for _ in 0..rounds {
                    all.measure(4, |_| graph.call(&step, &x, &y, launches).map(drop), || step.synchronize())?;
                }
                names.push(stringify!($graph));
                times.push(all.medians().1 / f64::from(launches));
            })*
            for (name, us) in names.iter().zip(&times) {
                let [rows, columns] = shape;
                let case = format!("{} {} {:?} {rows}x{columns}", name.trim_end_matches("Graph"), <$t>::DTYPE, lies);
                println!(
                    "{{\"figure\":\"kernels\",\"case\":\"{case}\",\"launch_us\":{us:.3},\"first_over_this\":{:.3}}}",
                    times[0] / us
                );
            }
        }
    };
}

pub(crate) fn run() -> Result<()> {
    let mut rt = crate::timing::runtime_without_passes()?;
    let rt = &mut rt;
    measure!(rt, f32, Flat, AddGraph AddTwinGraph);
    measure!(rt, bf16, Flat, AddGraph AddTwinGraph);
    measure!(rt, bf16, Row, AddGraph AddTwinGraph);
    measure!(rt, f32, Transposed, AddGraph AddTwinGraph);
    measure!(rt, f32, Flat, SiluMulGraph SiluMulTwinGraph);
    measure!(rt, bf16, Flat, SiluMulGraph SiluMulTwinGraph);
    measure!(rt, bf16, Flat, GeluGraph);
    measure!(rt, bf16, Flat, GeluTanhGraph GeluTanhTwinGraph);
    measure!(rt, bf16, Flat, ExpGraph ExpTwinGraph);
    measure!(rt, f16, Flat, LtGraph LtTwinGraph);
    measure!(rt, bf16, Flat, ToF32Graph);
    Ok(())
}
