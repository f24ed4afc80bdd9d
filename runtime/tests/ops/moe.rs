//! Routes to experts and products of groups, against loops in f64.

use graphable::{
    Error, Float, Mode, Param, Params, Result, Runtime, Schedule, Tensor, bf16, f16, graphable, ops,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    device::gpu,
    harness::{
        assert_close, assert_same, cases, device, for_types, in_step, input, is_argument, is_shape, param,
        size,
    },
    reference::Array,
};

/// Choices of experts, some of them of nobody.
fn choices(rng: &mut StdRng, n: usize, experts: usize) -> Vec<u32> {
    (0..n)
        .map(|_| if rng.random_bool(0.1) { u32::MAX } else { rng.random_range(0..experts as u32) })
        .collect()
}

#[test]
fn routes_are_a_stable_order() {
    cases(60, |step, rng| {
        let (tokens, each) = (size(rng), rng.random_range(0..4));
        let experts = [1, 2, 5, 70][rng.random_range(0..4)];
        let given = choices(rng, tokens * each, experts);
        let routes = ops::moe_route(&step.tensor(&[tokens, each], &given).unwrap(), experts).unwrap();
        let mut order: Vec<usize> = (0..given.len()).collect();
        order.sort_by_key(|&choice| given[choice]);
        let places: Vec<u32> =
            (0..given.len()).map(|choice| order.iter().position(|&o| o == choice).unwrap() as u32).collect();
        let of_tokens: Vec<u32> = order.iter().map(|&choice| (choice / each) as u32).collect();
        let ends: Vec<u32> = (0..experts as u32)
            .map(|expert| given.iter().filter(|&&other| other <= expert).count() as u32)
            .collect();
        assert_eq!(routes.tokens().shape(), [tokens, each]);
        assert_eq!(routes.places().shape(), [tokens, each]);
        assert_eq!(step.read(routes.tokens()).unwrap(), of_tokens);
        assert_eq!(step.read(routes.places()).unwrap(), places);
        assert_eq!(step.read(routes.ends()).unwrap(), ends);
    });
}

fn there_and_back<T: Float>() {
    cases(40, |step, rng| {
        let (tokens, width, each, experts) = (size(rng), size(rng), rng.random_range(1..4), 3);
        let given = choices(rng, tokens * each, experts);
        let routes = ops::moe_route(&step.tensor(&[tokens, each], &given).unwrap(), experts).unwrap();
        let (x, hx) = input::<T>(step, rng, &[tokens, width], (-3.0, 3.0));
        let (weights, hw) = input::<f32>(step, rng, &[tokens, each], (0.0, 1.0));
        let h = ops::moe_permute(&x, &routes).unwrap();
        let of = step.read(routes.tokens()).unwrap();
        let want =
            Array::from_fn(&[tokens, each, width], |i| hx.at(&[of[i[0] * each + i[1]] as usize, i[2]]));
        assert_same(step, &h, &want);
        let y = ops::moe_unpermute(&h, &weights, &routes).unwrap();
        let want = Array::from_fn(&[tokens, width], |i| {
            (0..each).map(|choice| hw.at(&[i[0], choice]) * hx.at(i)).sum()
        });
        assert_close(step, &y, &want, 4.0);
    });
}

#[test]
fn rows_go_to_their_experts_and_back() {
    for_types!(there_and_back: f32, f16, bf16);
}

/// Products of the rows of `x` with the matrix of their group; 0 behind all groups.
fn products(x: &Array, w: &Array, ends: &[u32], transposed: bool) -> Array {
    let (lead, k) = (&x.shape[..x.shape.len() - 1], x.shape[x.shape.len() - 1]);
    let columns = w.shape[if transposed { 1 } else { 2 }];
    let rows: usize = lead.iter().product();
    let group = |row: usize| {
        let mut first = 0;
        ends.iter().position(|&end| {
            let end = (end as usize).min(rows).max(first);
            let within = (first..end).contains(&row);
            first = end;
            within
        })
    };
    let shape = [lead, &[columns]].concat();
    let flat = Array { shape: vec![rows, k], data: x.data.clone() };
    let y = Array::from_fn(&[rows, columns], |i| {
        let Some(group) = group(i[0]) else { return 0.0 };
        let weight = |d: usize| {
            w.data
                [if transposed { (group * columns + i[1]) * k + d } else { (group * k + d) * columns + i[1] }]
        };
        (0..k).map(|d| flat.data[i[0] * k + d] * weight(d)).sum()
    });
    y.reshaped(&shape)
}

fn grouped<T: Float>() {
    cases(60, |step, rng| {
        let lead: Vec<usize> = (0..rng.random_range(1..3)).map(|_| size(rng)).collect();
        let rows: usize = lead.iter().product();
        let (groups, k, n) = (rng.random_range(1..5), size(rng), size(rng));
        // Mostly ascending; some groups are empty, and some end before they begin, or behind the rows.
        let mut ends: Vec<u32> = (0..groups).map(|_| rng.random_range(0..=rows as u32)).collect();
        if rng.random_bool(0.8) {
            ends.sort_unstable();
        }
        if rng.random_bool(0.1) {
            ends[groups - 1] = u32::MAX;
        }
        let (x, hx) = input::<T>(step, rng, &[&lead[..], &[k]].concat(), (-2.0, 2.0));
        let given = step.tensor(&[groups], &ends).unwrap();
        let (w, hw) = input::<T>(step, rng, &[groups, k, n], (-2.0, 2.0));
        let y = ops::grouped_mm(&x, &w, &given).unwrap();
        assert_close(step, &y, &products(&hx, &hw, &ends, false), 10.0);
        let (w, hw) = input::<T>(step, rng, &[groups, n, k], (-2.0, 2.0));
        let y = ops::grouped_mm_nt(&x, &w, &given).unwrap();
        assert_close(step, &y, &products(&hx, &hw, &ends, true), 10.0);
    });
}

#[test]
fn groups_have_matrices_of_their_own() {
    for_types!(grouped: f32, f16, bf16);
}

/// More rows, columns and terms than a tile has, in groups that end anywhere.
#[test]
fn groups_of_several_tiles() {
    for (rows, groups, k, n) in [(200, 2, 70, 130), (90, 9, 33, 65), (1, 3, 300, 5)] {
        in_step(|step| {
            let rng = &mut StdRng::seed_from_u64(rows as u64);
            let mut ends: Vec<u32> = (0..groups).map(|_| rng.random_range(0..=rows as u32)).collect();
            ends.sort_unstable();
            let given = step.tensor(&[groups], &ends).unwrap();
            let (x, hx) = input::<f32>(step, rng, &[rows, k], (-1.0, 1.0));
            let (w, hw) = input::<f32>(step, rng, &[groups, n, k], (-1.0, 1.0));
            let y = ops::grouped_mm_nt(&x, &w, &given).unwrap();
            assert_close(step, &y, &products(&hx, &hw, &ends, true), 10.0);
        });
    }
}

#[test]
fn an_expert_out_of_range_is_reported_and_is_nobody() {
    for bad in [3u32, 1 << 31, u32::MAX - 1] {
        let mut rt = Runtime::new(device()).unwrap();
        let step = rt.step().unwrap();
        let routes = ops::moe_route(&step.tensor(&[2, 2], &[2, bad, 0, 2]).unwrap(), 3).unwrap();
        match step.read(routes.ends()) {
            Err(Error::IndexOutOfRange { op: "moe_route", index, bound: 3 }) => {
                assert_eq!(index, u64::from(bad));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(step.read(routes.ends()).unwrap(), [1, 1, 3]);
        assert_eq!(step.read(routes.places()).unwrap(), [1, 3, 0, 2]);
        assert_eq!(step.read(routes.tokens()).unwrap(), [1, 0, 1, 0]);
    }
}

#[derive(Params)]
struct Experts {
    router: Param<f32>,
    up: Param<f32>,
    down: Param<f32>,
}

const EXPERTS: usize = 5;

#[graphable]
fn mixture(
    #[host]
    #[dims(T, 6)]
    x: &Tensor<f32>,
    model: &Experts,
) -> Result<Tensor<f32>> {
    let (logits, choices) = ops::topk(&ops::linear(x, &model.router)?, 2, 1)?;
    let weights = ops::softmax(&logits, 1)?;
    let routes = ops::moe_route(&choices, EXPERTS)?;
    let h = ops::moe_permute(x, &routes)?;
    // Routes cross a boundary.
    let h = #[eager(support = Always)]
    ops::grouped_mm_nt(&h, &model.up, routes.ends())?;
    let h = ops::grouped_mm(&ops::silu(&h)?, &model.down, routes.ends())?;
    ops::moe_unpermute(&h, &weights, &routes)
}

fn mixed(x: &[f64], router: &Array, up: &Array, down: &Array) -> Vec<f64> {
    let dot = |w: &[f64], x: &[f64]| -> f64 { w.iter().zip(x).map(|(a, b)| a * b).sum() };
    let logits: Vec<f64> = router.data.chunks(6).map(|w| dot(w, x)).collect();
    let mut order: Vec<usize> = (0..EXPERTS).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    let powers = [0, 1].map(|i| (logits[order[i]] - logits[order[0]]).exp());
    let mut y = vec![0.0; 6];
    for (&expert, power) in order.iter().zip(powers) {
        let h: Vec<f64> = up.data[expert * 24..][..24].chunks(6).map(|w| dot(w, x)).collect();
        let h: Vec<f64> = h.iter().map(|v| v / (1.0 + (-v).exp())).collect();
        for (j, y) in y.iter_mut().enumerate() {
            let column: Vec<f64> = (0..4).map(|i| down.data[expert * 24 + i * 6 + j]).collect();
            *y += power / powers.iter().sum::<f64>() * dot(&column, &h);
        }
    }
    y
}

/// One recording for each bucket serves every choice of experts.
#[test]
fn a_mixture_is_one_recording_for_every_routing() {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(device()).unwrap();
        let rng = &mut StdRng::seed_from_u64(5);
        let (router, hr) = param::<f32>(&rt, rng, &[EXPERTS, 6]);
        let (up, hu) = param::<f32>(&rt, rng, &[EXPERTS, 4, 6]);
        let (down, hd) = param::<f32>(&rt, rng, &[EXPERTS, 4, 6]);
        let model = Experts { router, up, down };
        let buckets = Schedule::new([4, 8]);
        let graph = MixtureGraph::builder().bucket("T", buckets).mode(mode).build(&mut rt).unwrap();
        let plain = MixtureGraph::builder().mode(Mode::None).build(&mut rt).unwrap();
        let mut recordings = 0;
        for round in 0..16 {
            let tokens = [3, 8, 4, 1][round % 4];
            let x: Vec<f32> = (0..tokens * 6).map(|_| rng.random_range(-2.0..2.0)).collect();
            let step = rt.step().unwrap();
            let y = graph.call(&step, &x, &model).unwrap();
            let wide: Vec<f64> = x.iter().map(|&v| v.into()).collect();
            let data = wide.chunks(6).flat_map(|x| mixed(x, &hr, &hu, &hd)).collect();
            assert_close(&step, &y, &Array { shape: vec![tokens, 6], data }, 20.0);
            let same = plain.call(&step, &x, &model).unwrap();
            // On a GPU, the library of products may choose another algorithm for more rows.
            let exact = gpu().is_none() || tokens == 8;
            assert!(!exact || step.read(&y).unwrap() == step.read(&same).unwrap(), "{mode}, round {round}");
            drop((y, same, step));
            if round == 11 {
                recordings = rt.stats().recordings;
            }
        }
        assert_eq!(rt.stats().recordings, recordings, "{mode}: recorded for another routing");
        if mode == Mode::Full {
            assert_eq!((recordings, rt.stats().fallbacks), (2, 0), "one for each bucket");
        }
    }
}

#[test]
fn misuse_is_refused() {
    in_step(|step| {
        let zeros = |dims: &[usize]| ops::zeros::<f32>(step.scope(), dims).unwrap();
        let numbers = |dims: &[usize]| ops::zeros::<u32>(step.scope(), dims).unwrap();
        assert!(is_shape(ops::moe_route(&numbers(&[4]), 2)));
        assert!(is_argument(ops::moe_route(&numbers(&[4, 2]), 0)));
        assert!(is_argument(ops::moe_route(&numbers(&[4, 2]), usize::MAX)));
        let routes = ops::moe_route(&numbers(&[4, 2]), 2).unwrap();
        assert!(is_shape(ops::moe_permute(&zeros(&[3, 5]), &routes)));
        assert!(is_shape(ops::moe_permute(&zeros(&[4]), &routes)));
        let weights = zeros(&[4, 2]);
        for wrong in [&[4, 2][..], &[4, 1, 5], &[3, 2, 5]] {
            assert!(is_shape(ops::moe_unpermute(&zeros(wrong), &weights, &routes)), "{wrong:?}");
        }
        assert!(is_shape(ops::moe_unpermute(&zeros(&[4, 2, 5]), &zeros(&[4, 1]), &routes)));
        let (x, w, ends) = (zeros(&[4, 3]), zeros(&[2, 3, 5]), numbers(&[2]));
        assert!(ops::grouped_mm(&x, &w, &ends).is_ok() && is_shape(ops::grouped_mm_nt(&x, &w, &ends)));
        assert!(is_shape(ops::grouped_mm(&x, &w, &numbers(&[3]))), "ends");
        assert!(is_shape(ops::grouped_mm(&x, &zeros(&[3, 5]), &ends)), "one matrix");
        assert!(is_shape(ops::grouped_mm(&zeros(&[]), &w, &ends)), "no row");
        assert!(is_shape(ops::grouped_mm_nt(&x, &zeros(&[3, 5]), &ends)), "one matrix");
    });
}
