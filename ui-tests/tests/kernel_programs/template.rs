#![allow(warnings)]
use graphable::prelude::*;

pub const OFFSET: i32 = -7;
pub const LAST: u8 = 255;
pub const ON: bool = true;
pub const FAR: i64 = -3_000_000_000;
pub const THIRD: f64 = 1.0 / 3.0;

/// Elements from bits.
pub trait Bits: Element {
    const NAME: &'static str;
    fn of(bits: u64) -> Self;
    fn bits(self) -> u64;
}

macro_rules! bits {
    ($($t:ident $name:literal $b:ident => $of:expr, $v:ident => $bits:expr;)*) => {$(
        impl Bits for $t {
            const NAME: &'static str = $name;
            fn of($b: u64) -> Self { $of }
            fn bits(self) -> u64 { let $v = self; $bits }
        }
    )*};
}

bits! {
    f32 "f32" b => f32::from_bits(b as u32), v => if v.is_nan() { 0x7fc0_0000 } else { v.to_bits().into() };
    f16 "f32" b => f16::from_f32(f32::from_bits(b as u32)), v => v.to_f32().bits();
    bf16 "f32" b => bf16::from_f32(f32::from_bits(b as u32)), v => v.to_f32().bits();
    f64 "f64" b => f64::from_bits(b), v => if v.is_nan() { 0x7ff8 << 48 } else { v.to_bits() };
    i32 "i32" b => b as i32, v => u64::from(v as u32);
    i64 "i64" b => b as i64, v => v as u64;
    i8 "i8" b => b as i8, v => u64::from(v as u8);
    u32 "u32" b => b as u32, v => u64::from(v);
    u8 "u8" b => b as u8, v => u64::from(v);
    bool "bool" b => b & 1 == 1, v => u64::from(v);
}

pub fn input<'s, T: Bits>(
    step: &'s Step<'s>,
    seed: u64,
    parameter: usize,
    shape: &[usize],
    axes: &[usize],
    cut: Option<(usize, usize, usize)>,
) -> Result<Tensor<'s, T>> {
    let count = shape.iter().product();
    let values: Vec<T> = (0..count).map(|i| T::of(bits(seed, parameter, i, T::NAME))).collect();
    let x = ops::permute(&step.tensor(shape, &values)?, axes)?;
    match cut {
        Some((axis, start, len)) => ops::narrow(&x, axis, start, len),
        None => Ok(x),
    }
}

pub fn device() -> Device {
    if std::env::var_os("GRAPHABLE_KERNEL_GPU").is_some() { Device::cuda(0) } else { Device::cpu() }
}

pub fn compile<K: graphable::__private::kernel::Kernel, T: Float>(seed: u64, arch: &str) {
    let check = graphable::backend::cuda::Check::new(arch);
    if let Err(error) = graphable::__private::kernel::compile::<T>(K::DEFINITION, &check) {
        panic!("seed {seed} for {arch}: {error}");
    }
}

/// Draws by some calls.
pub fn draw(step: &Step<'_>, rng: &Rng, calls: u64) -> Result<()> {
    for _ in 0..calls {
        ops::uniform::<f32>(rng, step.scope(), [5], 0.0..1.0)?;
    }
    Ok(())
}

/// Prints whether a write was out of range.
pub fn fault(step: &Step<'_>, seed: u64) -> Result<()> {
    let found = match step.synchronize() {
        Ok(()) => false,
        Err(Error::IndexOutOfRange { .. }) => true,
        Err(error) => return Err(error),
    };
    println!("{seed} 1 {}", u32::from(found));
    Ok(())
}

pub fn show<T: Bits>(step: &Step<'_>, seed: u64, result: usize, y: &Tensor<'_, T>) -> Result<()> {
    let bits: Vec<String> = step.read(y)?.into_iter().map(|v| format!("{:x}", v.bits())).collect();
    println!("{seed} {result} {}", bits.join(" "));
    Ok(())
}
