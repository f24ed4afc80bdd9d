//! Padding marks and views, which only the crate itself can access.

use super::*;
use crate::{
    Device, Element, Error, Mode, Number, Real, Result, Runtime, State, Step, Tensor,
    backend::SharedMemory,
    ops::{check::marks_without, shape::viewed},
    record::{ActiveCall, Symbol},
    value::{
        layout::{Layout, PaddedDims},
        owned::OwnerId,
    },
};

/// Symbols of the tests.
const B: Option<u8> = Some(0);
const T: Option<u8> = Some(1);

fn in_step(f: impl for<'s> FnOnce(&Step<'s>)) {
    let mut rt = Runtime::new(Device::cpu()).unwrap();
    let step = rt.step().unwrap();
    f(&step);
}

fn marks(symbols: &[Option<u8>]) -> PaddedDims {
    symbols.iter().enumerate().fold(PaddedDims::NONE, |m, (axis, &s)| m.with(axis, s))
}

/// Zeros of `shape`, with dimensions padded by symbols.
fn padded<'s, E: Element>(step: &Step<'s>, shape: &[usize], symbols: &[Option<u8>]) -> Tensor<'s, E> {
    let x = zeros::<E>(step.scope(), shape).unwrap();
    x.alias(x.raw.layout, 0, marks(symbols))
}

#[track_caller]
fn marked<E>(result: Result<Tensor<'_, E>>, symbols: &[Option<u8>]) {
    assert_eq!(result.unwrap().raw.marks, marks(symbols));
}

#[track_caller]
fn mixes<E>(result: Result<E>, wrong_axis: usize) {
    match result {
        Err(Error::PaddedMix { axis, .. }) => assert_eq!(axis, wrong_axis),
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("not refused"),
    }
}

/// As [`in_step`], inside a call in which 2 of `B` rows and 3 of `T` are real.
fn in_call(f: impl for<'s> FnOnce(&Step<'s>)) {
    in_step(|step| {
        let rt = step.scope().rt;
        let mut counts = vec![0; 32];
        (counts[0], counts[16]) = (2, 3);
        let block = rt.allocate_owned(32, Some(counts.into())).unwrap();
        let symbol = |name, real| Symbol { name, real, padded: 4, bucketed: true, asked: true };
        rt.core.borrow_mut().call.begin(ActiveCall {
            name: "test",
            graph: OwnerId::new(),
            mode: Mode::None,
            symbols: vec![symbol("B", 2), symbol("T", 3)],
            dispatched: false,
            adapters: None,
            numerics: crate::Numerics::default(),
            passes: crate::Passes::default(),
            block: SharedMemory::clone(&block.memory),
            block_id: block.id,
            scalars: 0,
            audit_every: 0,
            limits: crate::Limits::default(),
            policy: None,
            deny_fallback: false,
            eager_conditionals: false,
            warmups_before: 0,
            counted_shape: false,
        });
        f(step);
        rt.core.borrow_mut().call.end();
    });
}

#[test]
fn only_real_rows_are_scattered() {
    in_call(|step| {
        let state = State::<f32>::zeros(step.scope().rt, &[5]).unwrap();
        let ones = ones_like(&padded::<f32>(step, &[4], &[B])).unwrap();
        scatter_rows(&state, &arange::<u32>(step.scope(), ones.dim(0)).unwrap(), &ones).unwrap();
        assert_eq!(step.read(&load(step.scope(), &state).unwrap()).unwrap(), [1.0, 1.0, 0.0, 0.0, 0.0]);
        let index = cast::<_, u32>(&padded::<u8>(step, &[4], &[T])).unwrap();
        let places = add(&index, &arange::<u32>(step.scope(), index.dim(0)).unwrap()).unwrap();
        mixes(scatter_rows(&state, &places, &full(step.scope(), &[4], 2.0f32).unwrap()), 0);
        let twos = full(step.scope(), [index.dim(0)], 2.0f32).unwrap();
        scatter_rows(&state, &places, &twos).unwrap();
        assert_eq!(step.read(&load(step.scope(), &state).unwrap()).unwrap(), [2.0, 2.0, 2.0, 0.0, 0.0]);
    });
}

#[test]
fn ragged_results_hold_what_is_real() {
    in_call(|step| {
        let x = ones_like(&padded::<u32>(step, &[4, 2], &[B])).unwrap();
        assert_eq!(step.nonzero(&x).unwrap().read(step).unwrap(), [0, 0, 0, 1, 1, 0, 1, 1]);
        assert_eq!(step.bincount(&x).unwrap().read(step).unwrap(), [0, 4]);
        let mask = step.tensor(&[2], &[true, false]).unwrap();
        assert_eq!(step.masked_select(&x, &mask).unwrap().read(step).unwrap(), [1, 1]);
        mixes(step.masked_select(&x, &padded::<bool>(step, &[4, 1], &[T])), 0);
        let repeats = arange::<u32>(step.scope(), x.dim(0)).unwrap();
        assert_eq!(step.repeat_interleave(&x, &repeats).unwrap().shape(), [1, 2]);
        mixes(step.repeat_interleave(&x, &padded::<u32>(step, &[4], &[T])), 0);
        let (whole, count) = step.unique(&x).unwrap().pad_to(3, 0).unwrap();
        assert_eq!(step.read(&whole).unwrap(), [1, 0, 0]);
        assert_eq!(step.item(&count).unwrap(), 1);
    });
}

#[test]
fn a_refusal_names_operation_and_symbol() {
    in_call(|step| {
        let text = sum(&padded::<f32>(step, &[4, 2], &[B]), 0).unwrap_err().to_string();
        assert!(text.starts_with("sum: axis 0 is padded to a bucket of B"), "{text}");
    });
}

#[test]
fn a_refusal_names_the_masked_form_of_the_operation() {
    in_call(|step| {
        let x = padded::<f32>(step, &[4, 2], &[B]);
        let ones = ones_like(&x).unwrap();
        let index = padded::<f32>(step, &[3, 4], &[None, B]);
        let general = "use an operation that knows the real rows (`ops::masked_sum`";
        let refusals = [
            (sum(&x, 0).map(drop), "use `ops::masked_sum`"),
            (sum_keepdim(&x, 0).map(drop), "use `ops::masked_sum`"),
            (mean(&x, 0).map(drop), "use `ops::masked_mean`"),
            (max(&x, 0).map(drop), "use `ops::masked_max`"),
            (min(&x, 0).map(drop), "use `ops::masked_min`"),
            (argmax(&x, 0).map(drop), "use `ops::masked_argmax`"),
            (argmin(&x, 0).map(drop), "use `ops::masked_argmin`"),
            (prod(&x, 0).map(drop), "use `ops::masked_prod`"),
            (logsumexp(&x, 0).map(drop), "use `ops::masked_logsumexp`"),
            (log_softmax(&x, 0).map(drop), "use `ops::masked_log_softmax`"),
            (softmax(&x, 0).map(drop), "use `ops::masked_softmax`"),
            (matmul(&index, &ones).map(drop), "use `ops::masked_matmul`"),
            (sum(&padded::<i32>(step, &[4], &[B]), 0).map(drop), "use `ops::masked_sum`"),
            (var(&x, 0, 1).map(drop), "use `ops::masked_var`"),
            (std_keepdim(&x, 0, 1).map(drop), "use `ops::masked_std`"),
            (any(&isnan(&x).unwrap(), 0).map(drop), "use `ops::masked_any`"),
            (all(&isnan(&x).unwrap(), 0).map(drop), "use `ops::masked_all`"),
            // One that has no such form, one operand alone, and dimensions that meet.
            (topk(&x, 1, 0).map(drop), general),
            (l2_normalize(&x, 0, 0.1).map(drop), general),
            (matmul(&zeros::<f32>(step.scope(), &[3, 4]).unwrap(), &ones).map(drop), general),
            (maximum(&x, &padded::<f32>(step, &[4, 2], &[T])).map(drop), general),
        ];
        for (refusal, remedy) in refusals {
            let text = refusal.unwrap_err().to_string();
            assert!(text.contains(remedy), "{text}");
        }
    });
}

/// What a refusal says to use takes what was refused, of each type.
#[test]
fn masked_forms_take_what_is_refused() {
    fn numbers<E: Number>(step: &Step<'_>) {
        let x = padded::<E>(step, &[4, 2], &[B]);
        let index = padded::<E>(step, &[3, 4], &[None, B]);
        let mask = full(step.scope(), [4, 1], true).unwrap();
        let mask = &mask.alias(mask.raw.layout, 0, marks(&[B]));
        mixes(sum(&x, 0).and(mean(&x, 0)), 0);
        marked(masked_sum(&x, mask, 0), &[]);
        marked(masked_mean(&x, mask, 0), &[]);
        marked(masked_prod(&x, mask, 0), &[]);
        marked(masked_max(&x, mask, 0), &[]);
        marked(masked_min(&x, mask, 0), &[]);
        marked(masked_argmax(&x, mask, 0), &[]);
        marked(masked_argmin(&x, mask, 0), &[]);
        mixes(matmul(&index, &x), 1);
        marked(masked_matmul(&index, &x), &[]);
        marked(cumsum(&x, 0), &[B]);
        marked(argsort(&x, 0, true), &[B]);
    }
    fn floats<E: Real>(step: &Step<'_>) {
        let x = padded::<E>(step, &[4, 2], &[B]);
        let mask = full(step.scope(), (), true).unwrap();
        mixes(var(&x, 0, 1).and(softmax(&x, 0)), 0);
        marked(masked_var(&x, &mask, 0, 1), &[]);
        marked(masked_std(&x, &mask, 0, 1), &[]);
        marked(masked_logsumexp(&x, &mask, 0), &[]);
        marked(masked_softmax(&x, &mask, 0), &[B]);
        marked(masked_log_softmax(&x, &mask, 0), &[B]);
    }
    in_call(|step| {
        numbers::<f32>(step);
        numbers::<crate::bf16>(step);
        numbers::<f64>(step);
        numbers::<i32>(step);
        numbers::<i64>(step);
        numbers::<i8>(step);
        numbers::<u32>(step);
        numbers::<u8>(step);
        floats::<f32>(step);
        floats::<crate::f16>(step);
        floats::<f64>(step);
        let x = padded::<bool>(step, &[4, 2], &[B]);
        let mask = full(step.scope(), (), true).unwrap();
        mixes(any(&x, 0).and(all(&x, 0)), 0);
        marked(masked_any(&x, &mask, 0), &[]);
        marked(masked_all(&x, &mask, 0), &[]);
    });
}

#[test]
fn element_wise_marks_unite() {
    in_step(|step| {
        let x = padded::<f32>(step, &[4, 3], &[B, None]);
        let y = padded::<f32>(step, &[1, 3], &[None, None]);
        marked(add(&x, &y), &[B, None]);
        marked(add(&padded::<f32>(step, &[4, 1], &[B]), &padded::<f32>(step, &[4], &[T])), &[B, T]);
        marked(neg(&x), &[B, None]);
        marked(lt(&x, &y), &[B, None]);
        marked(cast::<_, u8>(&x), &[B, None]);
        marked(cast::<_, f32>(&x), &[B, None]);
        marked(zeros_like(&x), &[B, None]);
        marked(where_(&lt(&x, &x).unwrap(), &y, &y), &[B, None]);
        mixes(add(&x, &padded::<f32>(step, &[4, 3], &[T, None])), 0);
        // A fixed size is not that of the bucket, even if it is as large; a missing dimension is repeated.
        mixes(mul(&zeros::<f32>(step.scope(), &[2, 4, 3]).unwrap(), &x), 1);
        mixes(add(&x, &zeros::<f32>(step.scope(), &[5, 3]).unwrap()), 0);
        marked(mul(&zeros::<f32>(step.scope(), &[2, 1, 3]).unwrap(), &x), &[None, B, None]);
        marked(sub(&x, &zeros::<f32>(step.scope(), &[1, 1]).unwrap()), &[B, None]);
        // In a bucket of one it is as in all others.
        let one = padded::<f32>(step, &[1, 3], &[B, None]);
        mixes(add(&one, &zeros::<f32>(step.scope(), &[4, 3]).unwrap()), 0);
        marked(add(&one, &one), &[B, None]);
        mixes(add(&one, &padded::<f32>(step, &[4, 3], &[T])), 0);
    });
}

#[test]
fn reductions_refuse_a_padded_axis() {
    in_step(|step| {
        let x = padded::<f32>(step, &[4, 5, 3], &[B, T, None]);
        marked(sum(&x, 2), &[B, T]);
        mixes(sum(&x, 1), 1);
        mixes(mean(&x, 0), 0);
        mixes(max(&x, 0), 0);
        mixes(argmax(&x, 1), 1);
        marked(argmax(&x, 2), &[B, T]);
        mixes(softmax(&x, 1), 1);
        mixes(log_softmax(&x, 0), 0);
        mixes(l2_normalize(&x, 0, 0.1), 0);
        marked(softmax(&x, 2), &[B, T, None]);
        let w = zeros::<f32>(step.scope(), &[3]).unwrap();
        marked(rms_norm(&x, &w, 0.1), &[B, T, None]);
        marked(layer_norm(&x, &w, &w, 0.1), &[B, T, None]);
        let last = padded::<f32>(step, &[2, 3], &[None, T]);
        mixes(rms_norm(&last, &w, 0.1), 1);
        mixes(layer_norm(&last, &w, &w, 0.1), 1);
        let mask = padded::<bool>(step, &[4, 5, 1], &[B, T]);
        marked(masked_mean(&x, &mask, 1), &[B, None]);
        mixes(masked_mean(&x, &padded::<bool>(step, &[4, 5, 1], &[T, T]), 1), 0);
    });
}

#[test]
fn what_depends_on_a_whole_axis_refuses_a_padded_one() {
    in_step(|step| {
        let x = padded::<f32>(step, &[4, 5, 3], &[B, T, None]);
        mixes(min(&x, 1), 1);
        mixes(argmin(&x, 0), 0);
        mixes(prod(&x, 1), 1);
        mixes(var(&x, 0, 1), 0);
        mixes(logsumexp(&x, 1), 1);
        mixes(any(&isnan(&x).unwrap(), 1), 1);
        marked(min(&x, 2), &[B, T]);
        marked(std_keepdim(&x, 2, 0), &[B, T, None]);
        marked(cumsum(&x, 1), &[B, T, None]);
        marked(sort(&x, 0, false).map(|(values, _)| values), &[B, T, None]);
        mixes(topk(&x, 1, 1), 1);
        marked(cumsum(&x, 2), &[B, T, None]);
        marked(argsort(&x, 2, true), &[B, T, None]);
        marked(topk(&x, 2, 2).map(|(values, _)| values), &[B, T, None]);
        mixes(flip(&x, 0), 0);
        mixes(roll(&x, 1, 1), 1);
        mixes(repeat(&x, &[1, 2, 1]), 1);
        marked(flip(&x, 2), &[B, T, None]);
        marked(roll(&x, 1, 2), &[B, T, None]);
        marked(repeat(&x, &[1, 1, 2]), &[B, T, None]);
        marked(stack(&[&x, &x], 1), &[B, None, T, None]);
        marked(tril(&x, 0), &[B, T, None]);
        marked(one_hot::<f32>(&padded(step, &[4], &[B]), 3), &[B, None]);
        let labels = padded::<i32>(step, &[4, 5], &[B, T]);
        marked(cross_entropy(&x, &labels, 0, 0.0), &[B, T]);
        mixes(cross_entropy(&x, &zeros(step.scope(), &[4, 5]).unwrap(), 0, 0.0), 0);
        mixes(nll_loss(&padded::<f32>(step, &[4, 5], &[None, T]), &zeros(step.scope(), &[4]).unwrap(), 0), 1);
        mixes(masked_fill(&zeros::<f32>(step.scope(), &[4]).unwrap(), &padded(step, &[4], &[B]), 0.0), 0);
        mixes(masked_fill(&zeros::<f32>(step.scope(), &[1]).unwrap(), &padded(step, &[1], &[B]), 0.0), 0);
    });
}

#[test]
fn masked_reductions_see_what_is_real() {
    in_call(|step| {
        // 2 of 4 rows are real; the others hold the largest and the smallest number.
        let places = arange::<f32>(step.scope(), padded::<f32>(step, &[4], &[B]).dim(0)).unwrap();
        let beyond = gt(&places, 1.0).unwrap();
        let x = where_(&beyond, &mul(&sub(&places, 2.5).unwrap(), 100.0).unwrap(), &places).unwrap();
        let all = zeros_like(&beyond).and_then(|x| logical_not(&x)).unwrap();
        marked(masked_max(&x, &all, 0), &[]);
        let read = |y: Result<Tensor<'_, f32>>| step.read(&y.unwrap()).unwrap();
        assert_eq!(read(masked_max(&x, &all, 0)), [1.0]);
        assert_eq!(read(masked_min(&x, &all, 0)), [0.0]);
        assert_eq!(step.read(&masked_argmax(&neg(&x).unwrap(), &all, 0).unwrap()).unwrap(), [0]);
        marked(masked_softmax(&x, &all, 0), &[B]);
        let equal = mul(&x, 0.0).unwrap();
        assert_eq!(read(masked_softmax(&equal, &all, 0)), [0.5, 0.5]);
        // Not a number in the padding.
        let x = where_(&beyond, f32::NAN, &places).unwrap();
        marked(masked_prod(&x, &all, 0), &[]);
        marked(masked_argmin(&x, &all, 0), &[]);
        marked(masked_logsumexp(&x, &all, 0), &[]);
        marked(masked_log_softmax(&x, &all, 0), &[B]);
        assert_eq!(read(masked_prod(&add(&x, 2.0).unwrap(), &all, 0)), [6.0]);
        assert_eq!(step.read(&masked_argmin(&neg(&x).unwrap(), &all, 0).unwrap()).unwrap(), [1]);
        let same = where_(&beyond, f32::NAN, 0.0).unwrap();
        let near = |y: Vec<f32>, want: f32| assert!(y.iter().all(|v| (v - want).abs() < 1e-6), "{y:?}");
        near(read(masked_logsumexp(&same, &all, 0)), 2.0f32.ln());
        near(read(masked_log_softmax(&same, &all, 0)), -(2.0f32.ln()));
        // Labels in the padding are not looked at, and neither are its rows when lines are sorted.
        let logits = zeros::<f32>(step.scope(), (x.dim(0), 2)).unwrap();
        let labels = cast::<_, i32>(&mul(&places, &places).unwrap()).unwrap();
        assert_eq!(read(nll_loss(&logits, &labels, -1)), [0.0, 0.0]);
        let (values, _) = topk(&add(&logits, &unsqueeze(&places, 1).unwrap()).unwrap(), 1, 1).unwrap();
        assert_eq!(step.read(&values).unwrap(), [0.0, 1.0]);
    });
}

#[test]
fn products_contract_only_what_is_real() {
    in_step(|step| {
        let x = padded::<f32>(step, &[4, 5, 3], &[B, T, None]);
        let w = zeros::<f32>(step.scope(), &[7, 3]).unwrap();
        let b = zeros::<f32>(step.scope(), &[7]).unwrap();
        marked(linear(&x, &w), &[B, T, None]);
        marked(linear_bias(&x, &w, &b), &[B, T, None]);
        marked(matmul_nt(&x, &w), &[B, T, None]);
        marked(matmul_nt(&x, &x), &[B, T, T]);
        mixes(matmul(&matmul_nt(&x, &x).unwrap(), &x), 2);
        mixes(matmul(&transpose(&x, 1, 2).unwrap(), &zeros::<f32>(step.scope(), &[5, 2]).unwrap()), 2);
        let k = padded::<f32>(step, &[2, 5], &[None, T]);
        mixes(linear(&k, &zeros::<f32>(step.scope(), &[7, 5]).unwrap()), 1);
        mixes(linear(&zeros::<f32>(step.scope(), &[7, 5]).unwrap(), &k), 1);
        mixes(matmul(&x, &padded::<f32>(step, &[4, 3, 2], &[T])), 0);
    });
}

#[test]
fn attention_sees_no_padding_unless_masked() {
    in_step(|step| {
        let q = padded::<f32>(step, &[2, 4, 2, 8], &[B, T]);
        let cache = padded::<f32>(step, &[2, 4, 1, 8], &[B]);
        let kv = padded::<f32>(step, &[2, 4, 1, 8], &[B, T]);
        let lengths = padded::<u32>(step, &[2], &[B]);
        let positions = padded::<u32>(step, &[2, 4], &[B, T]);
        marked(attention(&q, &cache, &cache, AttentionMask::None, 1.0), &[B, T]);
        mixes(attention(&q, &kv, &kv, AttentionMask::None, 1.0), 1);
        mixes(attention(&q, &cache, &kv, AttentionMask::None, 1.0), 1);
        let fixed = zeros::<f32>(step.scope(), &[2, 4, 1, 8]).unwrap();
        mixes(attention(&q, &fixed, &fixed, AttentionMask::None, 1.0), 0);
        marked(attention(&q, &kv, &kv, AttentionMask::Causal, 1.0), &[B, T]);
        mixes(attention(&q, &cache, &cache, AttentionMask::Causal, 1.0), 1);
        mixes(attention(&cache, &kv, &kv, AttentionMask::Causal, 1.0), 1);
        marked(attention(&q, &kv, &kv, AttentionMask::Lengths(&lengths), 1.0), &[B, T]);
        mixes(attention(&cache, &kv, &kv, AttentionMask::Positions(&positions), 1.0), 1);
        marked(attention(&q, &kv, &kv, AttentionMask::Positions(&positions), 1.0), &[B, T]);
        let wrong = padded::<u32>(step, &[2], &[T]);
        mixes(attention(&q, &kv, &kv, AttentionMask::Lengths(&wrong), 1.0), 0);
        let heads = padded::<f32>(step, &[2, 4, 2, 8], &[B, T, T]);
        mixes(attention(&heads, &kv, &kv, AttentionMask::Causal, 1.0), 2);

        let flat = padded::<f32>(step, &[4, 2, 8], &[T]);
        let keys = padded::<f32>(step, &[4, 1, 8], &[T]);
        let places = padded::<u32>(step, &[4], &[T]);
        marked(attention(&flat, &keys, &keys, AttentionMask::Causal, 1.0), &[T]);
        marked(attention(&flat, &keys, &keys, AttentionMask::Positions(&places), 1.0), &[T]);
        mixes(attention(&flat, &keys, &keys, AttentionMask::None, 1.0), 0);

        let config = RopeConfig::new(1e4, RopeStyle::HalfSplit);
        mixes(rope(&cache, &positions, config), 1);
        marked(rope(&q, &positions, config), &[B, T]);
        marked(rope(&q, &places, config), &[B, T]);
        marked(rope(&flat, &places, config), &[T]);
        mixes(rope(&flat, &padded::<u32>(step, &[4], &[B]), config), 0);
        mixes(rope(&padded::<f32>(step, &[4, 2, 8], &[T, None, B]), &places, config), 2);
    });
}

#[test]
fn indices_name_real_rows() {
    let mut rt = Runtime::new(Device::cpu()).unwrap();
    let state = State::<f32>::zeros(&rt, &[4, 3]).unwrap();
    let cache = State::<f32>::zeros(&rt, &[4, 2, 8]).unwrap();
    let step = rt.step().unwrap();
    let ids = padded::<u32>(&step, &[4, 2], &[B, T]);
    marked(embedding(&ids, &padded::<f32>(&step, &[9, 3], &[T])), &[B, T]);
    let index = padded::<u32>(&step, &[4], &[B]);
    let x = padded::<f32>(&step, &[2, 5], &[None, T]);
    marked(gather(&x, 1, &index), &[None, B]);
    marked(gather(&x, 0, &index), &[B, T]);
    let src = padded::<f32>(&step, &[4, 3], &[B]);
    scatter_rows(&state, &index, &src).unwrap();
    mixes(scatter_rows(&state, &padded::<u32>(&step, &[4], &[T]), &src), 0);
    mixes(scatter_rows(&state, &index, &padded::<f32>(&step, &[4, 3], &[B, T])), 1);
    mixes(store(&state, &src), 0);

    let config = RopeConfig::new(1e4, RopeStyle::HalfSplit);
    let heads = padded::<f32>(&step, &[4, 2, 8], &[B]);
    rope_scatter(&cache, &index, &heads, &padded::<u32>(&step, &[4], &[B]), config).unwrap();
    mixes(rope_scatter(&cache, &index, &heads, &padded::<u32>(&step, &[4], &[T]), config), 0);
}

#[test]
fn views_keep_padded_dimensions_apart() {
    in_step(|step| {
        let x = padded::<f32>(step, &[4, 6], &[B, None]);
        marked(transpose(&x, 0, 1), &[None, B]);
        marked(permute(&x, &[1, 0]), &[None, B]);
        marked(unsqueeze(&x, 0), &[None, B, None]);
        marked(unsqueeze(&x, 1), &[B, None, None]);
        let b = x.dim(0);
        marked(broadcast_to(&x, (2, b, 6)), &[None, B, None]);
        marked(broadcast_to(&zeros::<f32>(step.scope(), (1, 6)).unwrap(), x.shape()), &[B, None]);
        mixes(broadcast_to(&x, &[2, 4, 6]), 1);
        marked(reshape(&x, (b, 2, 3)), &[B, None, None]);
        marked(reshape(&x, (1, b, 6)), &[None, B, None]);
        mixes(reshape(&x, &[4, 2, 3]), 0);
        mixes(reshape(&x, (6, b)), 0);
        mixes(reshape(&zeros::<f32>(step.scope(), [24]).unwrap(), (b, 6)), 0);
        mixes(reshape(&x, &[24]), 0);
        mixes(reshape(&x, &[2, 12]), 0);
        mixes(reshape(&x, &[6, 4]), 0);
        marked(reshape(&transpose(&x, 0, 1).unwrap(), (2, 3, b)), &[None, None, B]);
        marked(contiguous(&transpose(&x, 0, 1).unwrap()), &[None, B]);

        marked(narrow(&x, 1, 2, 3), &[B, None]);
        marked(narrow(&x, 0, 0, b), &[B, None]);
        mixes(narrow(&x, 0, 0, 4), 0);
        mixes(narrow(&x, 0, 0, 5), 0);
        marked(narrow(&zeros::<f32>(step.scope(), (9, 6)).unwrap(), 0, 2, b), &[B, None]);
        marked(narrow(&x, 0, 0, 1), &[None, None]);
        mixes(narrow(&x, 0, 0, 3), 0);
        mixes(narrow(&x, 0, 1, 1), 0);
        mixes(split(&x, 0, 2), 0);
        mixes(split_at(&x, 0, &[1, 3]), 0);
        mixes(split_at(&x, 0, [4]), 0);
        marked(Ok(split_at(&x, 0, [b]).unwrap().remove(0)), &[B, None]);
        mixes(split_at(&zeros::<f32>(step.scope(), (4, 6)).unwrap(), 0, [b]), 0);
        marked(Ok(split(&x, 1, 2).unwrap().remove(1)), &[B, None]);
        mixes(concat(&[&x, &x], 0), 0);
        let y = padded::<f32>(step, &[4, 6], &[None, T]);
        mixes(concat(&[&y, &x], 0), 0);
        marked(concat(&[&x, &zeros::<f32>(step.scope(), (b, 1)).unwrap()], 1), &[B, None]);
        mixes(concat(&[&x, &zeros::<f32>(step.scope(), &[4, 1]).unwrap()], 1), 0);
        mixes(concat(&[&x, &padded::<f32>(step, &[4, 1], &[T])], 1), 0);

        // In a bucket of one, the dimension is as much its own as in the others.
        let one = padded::<f32>(step, &[1, 1, 6], &[None, B, None]);
        mixes(squeeze(&one, 1), 1);
        marked(squeeze(&one, 0), &[B, None]);
        let b = one.dim(1);
        marked(reshape(&one, (1, b, 2, 3)), &[None, B, None, None]);
        marked(reshape(&one, (b, 6)), &[B, None]);
        mixes(reshape(&one, &[1, 6]), 1);
        mixes(reshape(&one, &[6]), 1);
        let both = padded::<f32>(step, &[1, 1, 6], &[B, T, None]);
        let t = both.dim(1);
        marked(reshape(&both, (both.dim(0), t, 6)), &[B, T, None]);
        mixes(reshape(&both, (t, both.dim(0), 6)), 0);
        mixes(reshape(&both, (both.dim(0), 6)), 1);
        let none = padded::<f32>(step, &[0, 4], &[None, B]);
        marked(reshape(&none, (0, none.dim(1), 1)), &[None, B, None]);
    });
}

#[test]
fn a_view_is_found_exactly_where_the_strides_allow_one() {
    let wide = Layout::strided(&[2, 3, 4], &[24, 8, 1]).unwrap();
    assert_eq!(viewed(&wide, &[6, 4]).unwrap().strides(), [8, 1]);
    assert_eq!(viewed(&wide, &[2, 3, 2, 2]).unwrap().strides(), [24, 8, 2, 1]);
    assert!(viewed(&wide, &[24]).is_none());
    assert!(viewed(&wide, &[2, 12]).is_none());
    let swapped = Layout::strided(&[3, 2], &[1, 3]).unwrap();
    assert!(viewed(&swapped, &[6]).is_none());
    assert_eq!(viewed(&swapped, &[3, 1, 2]).unwrap().offset_of(&[2, 0, 1]), 5);
    let repeated = Layout::strided(&[2, 3], &[0, 0]).unwrap();
    assert_eq!(viewed(&repeated, &[6]).unwrap().strides(), [0]);
    let mixed = Layout::strided(&[2, 3], &[0, 1]).unwrap();
    assert!(viewed(&mixed, &[6]).is_none());
    assert_eq!(viewed(&mixed, &[2, 3, 1]).unwrap().offset_of(&[1, 2, 0]), 2);
}

#[test]
fn marks_move_up_when_an_axis_goes() {
    assert_eq!(marks_without(marks(&[B, None, T]), 0), marks(&[None, T]));
    assert_eq!(marks_without(marks(&[B, None, T]), 1), marks(&[B, T]));
    assert_eq!(marks_without(marks(&[B, None, T, None, None, B]), 2), marks(&[B, None, None, None, B]));
}
