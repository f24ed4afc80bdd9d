use half::{bf16, f16};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{
    super::operation::{MaskKind, Variant},
    *,
};
use crate::backend::cpu::kernels::real::testing::{Owned, floats, near, stable};

/// Sizes of one attention.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    b: usize,
    t: usize,
    s: usize,
    heads: usize,
    key_heads: usize,
    d: usize,
    dv: usize,
}

const fn sizes(b: usize, t: usize, s: usize, heads: usize, key_heads: usize, d: usize, dv: usize) -> Sizes {
    Sizes { b, t, s, heads, key_heads, d, dv }
}

const SIZES: &[Sizes] = &[
    sizes(1, 1, 1, 1, 1, 1, 1),
    sizes(2, 1, 2500, 6, 2, 16, 8),
    sizes(2, 5, 5, 4, 4, 8, 8),
    sizes(1, 150, 150, 6, 3, 16, 16),
    sizes(1, 40, 170, 9, 3, 8, 12),
    sizes(2, 7, 3, 2, 1, 4, 4),
    sizes(1, 3, 0, 2, 2, 4, 4),
    sizes(1, 0, 3, 2, 2, 4, 4),
    sizes(1, 2, 3, 2, 2, 4, 0),
    sizes(1, 2, 3, 2, 2, 0, 4),
    sizes(1, 1, 4, 100, 1, 4, 4),
];

const MASKS: [MaskKind; 4] = [MaskKind::None, MaskKind::Causal, MaskKind::Lengths, MaskKind::Positions];

struct Case<T> {
    q: Owned<T>,
    k: Owned<T>,
    v: Owned<T>,
    limits: Option<Owned<u32>>,
    mask: MaskKind,
}

impl<T: Real> Case<T> {
    fn new(rng: &mut StdRng, z: Sizes, mask: MaskKind) -> Self {
        let top = z.s as u32 + 2;
        let limits = match mask {
            MaskKind::Lengths => Some(Owned::new(rng, &[z.b], &[], 0, |r| r.random_range(0..top))),
            MaskKind::Positions => Some(Owned::new(rng, &[z.b, z.t], &[], 0, |r| {
                if r.random_bool(0.1) { u32::MAX } else { r.random_range(0..top) }
            })),
            _ => None,
        };
        Self {
            q: floats(rng, &[z.b, z.t, z.heads, z.d], &[]),
            k: floats(rng, &[z.b, z.s, z.key_heads, z.d], &[]),
            v: floats(rng, &[z.b, z.s, z.key_heads, z.dv], &[]),
            limits,
            mask,
        }
    }

    fn moved(&self, by: usize) -> Self {
        let limits = self.limits.as_ref().map(|l| l.moved(by));
        Self { q: self.q.moved(by), k: self.k.moved(by), v: self.v.moved(by), limits, mask: self.mask }
    }

    fn run(&self, scale: f32, out: &mut [T]) {
        let (q, v) = (self.q.view(), self.v.view());
        let rules = Scores {
            kind: self.mask,
            scale,
            variant: Variant::default(),
            limits: self.limits.as_ref().map(|l| l.view()),
            bias: None,
            slopes: None,
            sinks: None,
            real: usize::MAX,
            sizes: [q.layout.shape()[1], v.layout.shape()[1], q.layout.shape()[2]],
        };
        attend(q, self.k.view(), v, &rules, out);
    }

    /// The definition of the mask, in the words of `MaskKind`.
    fn sees(&self, z: Sizes, b: usize, i: usize, j: usize) -> bool {
        let limit = |index: &[usize]| self.limits.as_ref().unwrap().at(index) as usize;
        match self.mask {
            MaskKind::None => true,
            MaskKind::Causal => j as i64 <= i as i64 + z.s as i64 - z.t as i64,
            MaskKind::Lengths => j < limit(&[b]),
            MaskKind::Positions => j <= limit(&[b, i]),
        }
    }

    fn want(&self, z: Sizes, scale: f64, (b, i, h): (usize, usize, usize)) -> Vec<f64> {
        let kv = h / (z.heads / z.key_heads);
        let seen: Vec<usize> = (0..z.s).filter(|&j| self.sees(z, b, i, j)).collect();
        let value = |x: &Owned<T>, index: [usize; 4]| f64::from(x.at(&index).widen());
        let weights: Vec<f64> = seen
            .iter()
            .map(|&j| {
                let dot: f64 =
                    (0..z.d).map(|e| value(&self.q, [b, i, h, e]) * value(&self.k, [b, j, kv, e])).sum();
                (scale * dot).exp()
            })
            .collect();
        let total: f64 = weights.iter().sum();
        (0..z.dv)
            .map(|e| {
                let sum: f64 =
                    seen.iter().zip(&weights).map(|(&j, w)| w * value(&self.v, [b, j, kv, e])).sum();
                if seen.is_empty() { 0.0 } else { sum / total }
            })
            .collect()
    }

    fn check(&self, z: Sizes) {
        let scale = 1.5f32;
        let mut out = vec![T::narrow(f32::NAN); z.b * z.t * z.heads * z.dv];
        self.run(scale, &mut out);
        for (row, out) in out.chunks_exact(z.dv.max(1)).enumerate() {
            let at = (row / z.heads / z.t, row / z.heads % z.t, row % z.heads);
            for (e, want) in self.want(z, f64::from(scale), at).into_iter().enumerate() {
                near(out[e], want, 3e-6, (z, self.mask, at, e));
            }
        }
    }
}

fn check<T: Real>() {
    let mut rng = StdRng::seed_from_u64(8);
    for &z in SIZES {
        for mask in MASKS {
            Case::<T>::new(&mut rng, z, mask).check(z);
        }
    }
}

#[test]
fn attends_in_f32() {
    check::<f32>();
}

#[test]
fn attends_in_f16() {
    check::<f16>();
}

#[test]
fn attends_in_bf16() {
    check::<bf16>();
}

#[test]
fn unseen_keys_may_hold_anything() {
    let mut rng = StdRng::seed_from_u64(9);
    for z in [sizes(1, 1, 2500, 3, 1, 8, 8), sizes(2, 60, 200, 4, 2, 8, 8)] {
        for mask in [MaskKind::Lengths, MaskKind::Positions] {
            let mut case = Case::<f32>::new(&mut rng, z, mask);
            // Query 0 of each batch sees the least; what it does not see turns into NaN.
            for b in 0..z.b {
                let limits = case.limits.as_mut().unwrap();
                let index: &[usize] = if mask == MaskKind::Lengths { &[b] } else { &[b, 0] };
                limits.set(index, 90);
                for j in 91..z.s {
                    for (head, e) in (0..z.key_heads).flat_map(|h| (0..8).map(move |e| (h, e))) {
                        case.k.set(&[b, j, head, e], f32::NAN);
                        case.v.set(&[b, j, head, e], f32::NAN);
                    }
                }
            }
            let mut out = vec![0.0; z.b * z.t * z.heads * z.dv];
            case.run(1.0, &mut out);
            for b in 0..z.b {
                for h in 0..z.heads {
                    for (e, want) in case.want(z, 1.0, (b, 0, h)).into_iter().enumerate() {
                        assert!(want.is_finite());
                        near(out[(b * z.t * z.heads + h) * z.dv + e], want, 3e-6, (z, mask, b, h));
                    }
                }
            }
        }
    }
}

#[test]
fn large_scores_do_not_overflow() {
    let mut rng = StdRng::seed_from_u64(10);
    let z = sizes(1, 2, 300, 2, 1, 8, 4);
    let case = Case::<f32>::new(&mut rng, z, MaskKind::None);
    let mut out = vec![0.0; 16];
    case.run(1e4, &mut out);
    assert!(out.iter().all(|v| v.abs() <= 1.0));
}

#[test]
fn bits_do_not_depend_on_threads_or_addresses() {
    fn check<T: Real>(z: Sizes, mask: MaskKind) {
        let case = Case::<T>::new(&mut StdRng::seed_from_u64(11), z, mask);
        stable(|shift| {
            let mut out = vec![T::narrow(0.0); z.b * z.t * z.heads * z.dv + shift];
            case.moved(shift).run(0.5, &mut out[shift..]);
            out.split_off(shift)
        });
    }
    for mask in MASKS {
        check::<f32>(sizes(1, 1, 3000, 9, 3, 64, 64), mask);
        check::<bf16>(sizes(2, 90, 130, 4, 2, 32, 32), mask);
    }
}
