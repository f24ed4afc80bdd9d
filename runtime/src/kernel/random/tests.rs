use super::*;

fn numbers(count: u64) -> impl Iterator<Item = Random> {
    (0..count).map(|index| Random::at(RngState { seed: 1, counter: 5 }, index))
}

#[test]
fn words_of_elements_are_those_of_their_block() {
    let state = RngState { seed: 0x2_0000_0001, counter: 0x4_0000_0003 };
    let index = 0xe_0000_000a;
    let [a, b, c, d] = philox([5, 7, 3, 4], [1, 2]);
    assert_eq!(Random::at(state, index).words(), (a, b));
    assert_eq!(Random::at(state, index + 1).words(), (c, d));
}

#[test]
fn ends_are_finite() {
    for first in [0, 1, (1 << 31) - 1, 1 << 31, u32::MAX - 1, u32::MAX] {
        for second in [0, 1, 1 << 31, u32::MAX] {
            let r = Random::of(first, second);
            assert!((0.0..1.0).contains(&r.uniform()));
            assert!(r.normal().is_finite() && r.normal().abs() < 6.8, "{r:?} {}", r.normal());
            assert!(r.exponential() > 0.0 && r.exponential() < 45.5, "{r:?} {}", r.exponential());
            assert!(r.gumbel().is_finite(), "{r:?} {}", r.gumbel());
            for n in [0, 1, 2, 3, 1 << 31, u32::MAX] {
                assert!(r.below(n) < n.max(1), "{r:?} {n}");
            }
        }
    }
    assert_eq!(Random::of(u32::MAX, u32::MAX).below(u32::MAX), u32::MAX - 1);
}

/// The halves of the tail meet where the function changes, and it falls everywhere.
#[test]
fn exponential_is_monotone() {
    let all = (0..=u32::MAX).step_by(1 << 20).chain([(1 << 31) - 1, 1 << 31]);
    let mut firsts: Vec<u32> = all.collect();
    firsts.sort_unstable();
    let values: Vec<f32> = firsts.iter().map(|first| Random::of(*first, 0).exponential()).collect();
    let order: Vec<bool> = values.windows(2).map(|pair| pair[0] <= pair[1]).collect();
    let (near, far) = order.split_at(firsts.iter().position(|first| *first >= 1 << 31).unwrap());
    assert!(near.iter().all(|grows| *grows) && far.iter().skip(1).all(|grows| *grows), "{order:?}");
}

#[test]
fn below_is_the_upper_part_of_the_product() {
    for r in numbers(1000) {
        for n in [1, 2, 10, 1 << 20, u32::MAX] {
            let bits = u128::from(r.first) << 32 | u128::from(r.second);
            assert_eq!(u128::from(r.below(n)), (bits * u128::from(n)) >> 64);
        }
    }
}
