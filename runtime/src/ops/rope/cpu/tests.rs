use half::{bf16, f16};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{
    super::{RopeConfig, RopeOptions},
    *,
};
use crate::backend::cpu::kernels::real::testing::{Owned, floats, near, stable};

fn rotation(theta: f32, style: RopeStyle, dim: usize) -> Rope {
    RopeOptions::from(RopeConfig { theta, style, dim: Some(dim) }).operation("rope", dim).unwrap()
}

fn whole(positions: &Owned<u32>) -> Positions<'_> {
    let all = positions.view();
    let shape = all.layout.shape();
    Positions { real: [shape[1], shape[2]], written: None, all }
}

fn check<T: Real>() {
    let mut rng = StdRng::seed_from_u64(6);
    for shape in [[1, 1, 1, 2], [2, 3, 4, 8], [1, 70, 9, 64], [0, 2, 2, 4], [2, 2, 0, 4]] {
        for style in [RopeStyle::Interleaved, RopeStyle::HalfSplit] {
            for dim in [shape[3], shape[3] / 4 * 2, 0] {
                let x = floats::<T>(&mut rng, &shape, &[]);
                let repeated: &[usize] = if rng.random() { &[1] } else { &[] };
                let places = [1, shape[0], shape[1]];
                let positions =
                    Owned::new(&mut rng, &places, repeated, 0, |rng| rng.random_range(0..100_000u32));
                let rotation = rotation(10_000.0, style, dim);
                let mut out = vec![T::narrow(f32::NAN); x.layout.count()];
                rotate(x.view(), whole(&positions), &mut out, rotation);
                for (i, &got) in out.iter().enumerate() {
                    let [_, tn, hn, d] = shape;
                    let (b, t, h, e) = (i / (tn * hn * d), i / (hn * d) % tn, i / d % hn, i % d);
                    let at = |e: usize| f64::from(x.at(&[b, t, h, e]).widen());
                    let (pair, second, other) = match style {
                        _ if e >= dim => {
                            assert_eq!(got.widen(), x.at(&[b, t, h, e]).widen());
                            continue;
                        }
                        RopeStyle::Interleaved => (e / 2, e % 2 == 1, e ^ 1),
                        RopeStyle::HalfSplit => {
                            let half = dim / 2;
                            (e % half, e >= half, if e < half { e + half } else { e - half })
                        }
                    };
                    let position = f64::from(positions.at(&[0, b, t]));
                    let angle = position / 10_000f64.powf(2.0 * pair as f64 / dim as f64);
                    let sign = if second { 1.0 } else { -1.0 };
                    let want = at(e) * angle.cos() + sign * at(other) * angle.sin();
                    near(got, want, 4e-7, (shape, style, dim, i));
                }
            }
        }
    }
}

#[test]
fn rotates_f32() {
    check::<f32>();
}

#[test]
fn rotates_f16() {
    check::<f16>();
}

#[test]
fn rotates_bf16() {
    check::<bf16>();
}

#[test]
fn bits_do_not_depend_on_threads_or_addresses() {
    let mut rng = StdRng::seed_from_u64(7);
    let x = floats::<bf16>(&mut rng, &[2, 40, 9, 64], &[]);
    let positions = Owned::new(&mut rng, &[1, 2, 40], &[1], 0, |rng| rng.random_range(0..8192u32));
    stable(|shift| {
        let mut out = vec![bf16::ZERO; x.layout.count() + shift];
        let rotation = rotation(1e5, RopeStyle::HalfSplit, 64);
        rotate(x.moved(shift).view(), whole(&positions.moved(shift)), &mut out[shift..], rotation);
        out.split_off(shift)
    });
}
