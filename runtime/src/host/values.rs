//! Types of the standard library and of the operations as parts of a key: live-ins, `#[key]`s, `#[config]`
//! fields and results of segments.
//!
//! A map or set is keyed by its entries in key order, so two equal ones have the same key, whatever their
//! iteration order.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fmt::Display,
    num::NonZero,
    ops::{Range, RangeFrom, RangeInclusive, RangeTo},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use crate::{
    Param, ParamVisitor, Params, Result, State, Tensor,
    base::dtype::Element,
    model::params::ConfigValue,
    ops::{
        AttentionConfig, AttentionInput, AttentionMask, AttentionSlopes, AvgPoolConfig, ConvConfig,
        ConvTransposeConfig, LongRopeConfig, MaxPoolConfig, RopeConfig, RopeOptions, RopeScaling, RopeStyle,
        YarnConfig,
    },
    tensor::live_out::{Decoder, LiveOut},
    value::{
        entry::Encoder,
        key::KeyWriter,
        live_in::{DeviceValue, Key, LiveIn},
    },
};

macro_rules! nonzero {
    ($($t:ty),*) => {$(
        impl LiveIn for NonZero<$t> {
            #[inline]
            fn write_key(&self, k: &mut KeyWriter) {
                self.get().write_key(k);
            }
        }
        impl Key for NonZero<$t> {}
        impl ConfigValue for NonZero<$t> {}
        impl<'s> LiveOut<'s> for NonZero<$t> {
            fn encode(&self, e: &mut Encoder) {
                self.get().encode(e);
            }
            fn decode(d: &mut Decoder<'s>) -> Self {
                Self::new(LiveOut::decode(d)).unwrap_or(Self::MIN)
            }
        }
    )*};
}
nonzero! { u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize }

impl LiveIn for Duration {
    fn write_key(&self, k: &mut KeyWriter) {
        self.as_nanos().write_key(k);
    }
}
impl Key for Duration {}
impl ConfigValue for Duration {}
impl<'s> LiveOut<'s> for Duration {
    fn encode(&self, e: &mut Encoder) {
        self.as_secs().encode(e);
        self.subsec_nanos().encode(e);
    }
    fn decode(d: &mut Decoder<'s>) -> Self {
        let seconds = u64::decode(d);
        Self::new(seconds, u32::decode(d))
    }
}

impl<T: LiveIn + PartialOrd> LiveIn for RangeInclusive<T> {
    fn write_key(&self, k: &mut KeyWriter) {
        self.start().write_key(k);
        self.end().write_key(k);
        // A range that was iterated to its end has the same bounds as one that was not.
        k.word(u64::from(self.is_empty()));
    }
}

impl<T: LiveIn> LiveIn for RangeFrom<T> {
    fn write_key(&self, k: &mut KeyWriter) {
        self.start.write_key(k);
    }
}

impl<T: LiveIn> LiveIn for RangeTo<T> {
    fn write_key(&self, k: &mut KeyWriter) {
        self.end.write_key(k);
    }
}

impl<T: Key> Key for Range<T> {}
impl<T: Key + PartialOrd> Key for RangeInclusive<T> {}
impl<T: Key> Key for RangeFrom<T> {}
impl<T: Key> Key for RangeTo<T> {}
impl<T: ConfigValue + PartialOrd> ConfigValue for RangeInclusive<T> {}
impl<T: ConfigValue> ConfigValue for RangeFrom<T> {}
impl<T: ConfigValue> ConfigValue for RangeTo<T> {}

impl<T: LiveIn + ToOwned + ?Sized> LiveIn for Cow<'_, T> {
    fn write_key(&self, k: &mut KeyWriter) {
        k.value(&**self);
    }
}
impl<T: ConfigValue + ToOwned + ?Sized> ConfigValue for Cow<'_, T> {}
impl Key for Cow<'_, str> {}
impl<T: Key> Key for Cow<'_, [T]> {}

impl<T: Key> Key for Box<T> {}
impl<T: Key> Key for Arc<T> {}
impl<T: Key> Key for Rc<T> {}
impl<T: ConfigValue + ?Sized> ConfigValue for Rc<T> {}

impl<T: LiveIn + ?Sized> LiveIn for Rc<T> {
    #[inline]
    fn write_key(&self, k: &mut KeyWriter) {
        k.value(&**self);
    }
}
impl<T: DeviceValue + ?Sized> DeviceValue for Rc<T> {}

impl<'s, T: LiveOut<'s>> LiveOut<'s> for Rc<T> {
    fn encode(&self, e: &mut Encoder) {
        (**self).encode(e);
    }
    fn decode(d: &mut Decoder<'s>) -> Self {
        Self::new(T::decode(d))
    }
}

impl<'s, T: LiveOut<'s>> LiveOut<'s> for Arc<T> {
    fn encode(&self, e: &mut Encoder) {
        (**self).encode(e);
    }
    fn decode(d: &mut Decoder<'s>) -> Self {
        Self::new(T::decode(d))
    }
}

/// Writes the entries in order, after their number.
fn entries<'a, K: LiveIn + 'a, V: LiveIn + 'a>(
    k: &mut KeyWriter,
    count: usize,
    entries: impl Iterator<Item = (&'a K, &'a V)>,
) {
    k.word(count as u64);
    for (key, value) in entries {
        key.write_key(k);
        value.write_key(k);
    }
}

fn sorted<K: Ord, V, S>(map: &HashMap<K, V, S>) -> impl Iterator<Item = (&K, &V)> {
    let mut all: Vec<(&K, &V)> = map.iter().collect();
    all.sort_by(|a, b| a.0.cmp(b.0));
    all.into_iter()
}

impl<K: LiveIn, V: LiveIn> LiveIn for BTreeMap<K, V> {
    fn write_key(&self, k: &mut KeyWriter) {
        entries(k, self.len(), self.iter());
    }
}

impl<K: LiveIn + Ord, V: LiveIn, S> LiveIn for HashMap<K, V, S> {
    fn write_key(&self, k: &mut KeyWriter) {
        entries(k, self.len(), sorted(self));
    }
}

impl<K: LiveIn> LiveIn for BTreeSet<K> {
    fn write_key(&self, k: &mut KeyWriter) {
        entries(k, self.len(), self.iter().map(|key| (key, &())));
    }
}

impl<K: LiveIn + Ord, S> LiveIn for HashSet<K, S> {
    fn write_key(&self, k: &mut KeyWriter) {
        let mut all: Vec<&K> = self.iter().collect();
        all.sort();
        entries(k, all.len(), all.into_iter().map(|key| (key, &())));
    }
}

impl<K: LiveIn, V: DeviceValue> DeviceValue for BTreeMap<K, V> {}
impl<K: LiveIn + Ord, V: DeviceValue, S> DeviceValue for HashMap<K, V, S> {}
impl<K: Key, V: Key> Key for BTreeMap<K, V> {}
impl<K: Key> Key for BTreeSet<K> {}
impl<K: Key + Ord, V: Key, S: Clone> Key for HashMap<K, V, S> {}
impl<K: Key + Ord, S: Clone> Key for HashSet<K, S> {}
impl<K: ConfigValue, V: ConfigValue> ConfigValue for BTreeMap<K, V> {}
impl<K: ConfigValue> ConfigValue for BTreeSet<K> {}
impl<K: ConfigValue + Ord, V: ConfigValue, S> ConfigValue for HashMap<K, V, S> {}
impl<K: ConfigValue + Ord, S> ConfigValue for HashSet<K, S> {}

/// The names of the entries are their keys.
impl<K: LiveIn + Display, V: Params> Params for BTreeMap<K, V> {
    fn visit_params(&self, v: &mut ParamVisitor) {
        for (key, value) in self {
            v.field(key, |v| value.visit_params(v));
        }
    }
}

/// The names of the entries are their keys, and they are ordered by key.
impl<K: LiveIn + Display + Ord, V: Params, S> Params for HashMap<K, V, S> {
    fn visit_params(&self, v: &mut ParamVisitor) {
        for (key, value) in sorted(self) {
            v.field(key, |v| value.visit_params(v));
        }
    }
}

impl<T: Params + ?Sized> Params for Rc<T> {
    fn visit_params(&self, v: &mut ParamVisitor) {
        (**self).visit_params(v);
    }
}

macro_rules! tuples {
    ($($name:ident $at:tt)*) => {
        impl<$($name: Params),*> Params for ($($name,)*) {
            fn visit_params(&self, v: &mut ParamVisitor) {
                $(v.field($at, |v| self.$at.visit_params(v));)*
            }
        }
    };
}
tuples! { A 0 }
tuples! { A 0 B 1 }
tuples! { A 0 B 1 C 2 }
tuples! { A 0 B 1 C 2 D 3 }
tuples! { A 0 B 1 C 2 D 3 E 4 }
tuples! { A 0 B 1 C 2 D 3 E 4 F 5 }
tuples! { A 0 B 1 C 2 D 3 E 4 F 5 G 6 }
tuples! { A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 }

// The only property of a model by which eager code can choose is the location of its parameters.
impl<T: Element> DeviceValue for Param<T> {}
impl<T: Element> DeviceValue for State<T> {}

impl LiveIn for RopeStyle {
    fn write_key(&self, k: &mut KeyWriter) {
        k.word(*self as u64);
    }
}
impl Key for RopeStyle {}
impl ConfigValue for RopeStyle {}

impl LiveIn for RopeConfig {
    fn write_key(&self, k: &mut KeyWriter) {
        self.theta.write_key(k);
        self.style.write_key(k);
        self.dim.write_key(k);
    }
}
impl ConfigValue for RopeConfig {}

impl LiveIn for RopeScaling {
    fn write_key(&self, k: &mut KeyWriter) {
        match *self {
            Self::None => k.word(0),
            Self::Linear { factor } => [1.0, factor].write_key(k),
            Self::Ntk { factor } => [2.0, factor].write_key(k),
            Self::DynamicNtk { factor, original_max_position_embeddings } => {
                ([3.0, factor], original_max_position_embeddings).write_key(k);
            }
            Self::Yarn(yarn) => yarn.write_key(k),
            Self::LongRope(config) => config.write_key(k),
            Self::Llama3 { factor, low_freq_factor, high_freq_factor, original_max_position_embeddings } => {
                let numbers = [4.0, factor, low_freq_factor, high_freq_factor];
                (numbers, original_max_position_embeddings).write_key(k);
            }
        }
    }
}
impl ConfigValue for RopeScaling {}

impl LiveIn for YarnConfig {
    fn write_key(&self, k: &mut KeyWriter) {
        let Self { factor, original, beta, truncate, attention_factor, mscale } = *self;
        k.word(5);
        (factor, original, beta, truncate, attention_factor, mscale).write_key(k);
    }
}
impl ConfigValue for YarnConfig {}

impl LiveIn for LongRopeConfig {
    fn write_key(&self, k: &mut KeyWriter) {
        let Self { divisors, original, most, attention_factor } = *self;
        k.word(6);
        (original, most, attention_factor).write_key(k);
        divisors.short.write_key(k);
        divisors.long.write_key(k);
    }
}
impl ConfigValue for LongRopeConfig {}

impl LiveIn for RopeOptions {
    fn write_key(&self, k: &mut KeyWriter) {
        let Self { config, scaling, sections } = self;
        config.write_key(k);
        scaling.write_key(k);
        (sections.pairs, sections.count, sections.take_turns).write_key(k);
    }
}
impl ConfigValue for RopeOptions {}

/// The movement of windows over `N` dimensions.
macro_rules! windows {
    ($($name:ident { $($field:ident),* })*) => {$(
        impl<const N: usize> LiveIn for $name<N> {
            fn write_key(&self, k: &mut KeyWriter) {
                let Self { $($field),* } = self;
                $($field.write_key(k);)*
            }
        }
        impl<const N: usize> Key for $name<N> {}
        impl<const N: usize> ConfigValue for $name<N> {}
    )*};
}

windows! {
    ConvConfig { stride, padding, dilation, groups }
    ConvTransposeConfig { stride, padding, output_padding, dilation, groups }
    MaxPoolConfig { kernel, stride, padding, dilation, ceil_mode }
    AvgPoolConfig { kernel, stride, padding, ceil_mode, count_include_pad }
}

impl LiveIn for AttentionMask<'_, '_> {
    fn write_key(&self, k: &mut KeyWriter) {
        match self {
            Self::None => k.word(0),
            Self::Causal => k.word(1),
            Self::Lengths(lengths) => {
                k.word(2);
                lengths.write_key(k);
            }
            Self::Positions(positions) => {
                k.word(3);
                positions.write_key(k);
            }
        }
    }
}
impl DeviceValue for AttentionMask<'_, '_> {}
impl ConfigValue for AttentionMask<'_, '_> {}

impl<T: Element> LiveIn for AttentionInput<'_, '_, T> {
    fn write_key(&self, k: &mut KeyWriter) {
        match self {
            Self::Tensor(x) => {
                k.word(0);
                x.write_key(k);
            }
            Self::Param(x) => {
                k.word(1);
                x.write_key(k);
            }
            Self::State(x) => {
                k.word(2);
                x.write_key(k);
            }
        }
    }
}
impl<T: Element> DeviceValue for AttentionInput<'_, '_, T> {}
impl<T: Element> ConfigValue for AttentionInput<'_, '_, T> {}

impl<T: Element> LiveIn for AttentionConfig<'_, '_, T> {
    fn write_key(&self, k: &mut KeyWriter) {
        let Self { mask, bias, slopes, window, soft_cap, sinks } = self;
        mask.write_key(k);
        bias.write_key(k);
        match slopes {
            AttentionSlopes::None => k.word(0),
            AttentionSlopes::Standard => k.word(1),
            AttentionSlopes::Given(slopes) => {
                k.word(2);
                slopes.write_key(k);
            }
        }
        window.write_key(k);
        soft_cap.write_key(k);
        sinks.write_key(k);
    }
}
impl<T: Element> DeviceValue for AttentionConfig<'_, '_, T> {}
impl<T: Element> ConfigValue for AttentionConfig<'_, '_, T> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn words<T: LiveIn + ?Sized>(value: &T) -> Vec<u64> {
        let mut k = KeyWriter::default();
        value.write_key(&mut k);
        k.shape
    }

    #[test]
    fn a_map_is_keyed_by_its_entries_whatever_their_order() {
        let names: Vec<String> = (0..64).map(|i| format!("n{i}")).collect();
        let forth: HashMap<_, _> = names.iter().cloned().zip(0u32..64).collect();
        let back: HashMap<_, _> = names.iter().cloned().zip(0u32..64).rev().collect();
        assert_eq!(words(&forth), words(&back));
        assert_eq!(words(&forth), words(&forth.clone().into_iter().collect::<BTreeMap<_, _>>()));
        let mut other = back.clone();
        other.insert("n3".into(), 99);
        assert_ne!(words(&forth), words(&other));
        let set: HashSet<u32> = (0..9).collect();
        assert_eq!(words(&set), words(&set.iter().copied().collect::<BTreeSet<_>>()));
        assert_ne!(words(&BTreeMap::from([(1u32, 2u32)])), words(&BTreeMap::from([(2u32, 1u32)])));
    }

    #[test]
    fn ranges_and_durations_count_by_value() {
        assert_ne!(words(&(0..=3u32)), words(&(0..=4u32)));
        let mut done = 3..=3u32;
        done.next();
        assert_ne!(words(&done), words(&(3..=3u32)));
        assert_ne!(words(&Duration::from_nanos(1)), words(&Duration::from_nanos(2)));
        assert_ne!(words(&NonZero::new(1u8)), words(&NonZero::new(0u8)));
        assert_eq!(words(&Cow::Borrowed("ab")), words("ab"));
    }

    #[test]
    fn settings_of_operations_count_by_value() {
        let rope = RopeConfig::new(1e4, RopeStyle::HalfSplit);
        let others = [
            RopeConfig { theta: 1e5, ..rope },
            RopeConfig { style: RopeStyle::Interleaved, ..rope },
            RopeConfig { dim: Some(2), ..rope },
        ];
        assert!(others.iter().all(|o| words(o) != words(&rope)));
        let scaled = rope.scaling(RopeScaling::Linear { factor: 2.0 });
        let yarn = |yarn: YarnConfig| rope.scaling(RopeScaling::Yarn(yarn));
        let plain = YarnConfig::new(2.0, 64);
        let mut all = vec![
            RopeOptions::from(rope),
            scaled,
            rope.scaling(RopeScaling::Linear { factor: 3.0 }),
            rope.scaling(RopeScaling::Ntk { factor: 2.0 }),
            rope.sections([1, 2]),
            rope.sections([1, 2, 0]),
            rope.interleaved_sections([1, 2]),
            scaled.sections([1, 2]),
        ];
        for original_max_position_embeddings in [64, 65] {
            all.push(rope.scaling(RopeScaling::DynamicNtk { factor: 2.0, original_max_position_embeddings }));
            all.push(rope.scaling(RopeScaling::Llama3 {
                factor: 2.0,
                low_freq_factor: 1.0,
                high_freq_factor: 4.0,
                original_max_position_embeddings,
            }));
        }
        all.extend(
            [plain, plain.beta(9.0, 1.0), plain.truncate(false), plain.attention_factor(1.0)].map(yarn),
        );
        all.push(yarn(plain.mscale(1.0, 1.0)));
        let long = |short: &[f32], long: &[f32], original, most| {
            RopeScaling::LongRope(LongRopeConfig::new(short, long, original, most))
        };
        let longs = [
            long(&[1.0, 2.0], &[3.0, 4.0], 8, 16),
            long(&[1.0, 2.0], &[3.0, 5.0], 8, 16),
            long(&[1.5, 2.0], &[3.0, 4.0], 8, 16),
            long(&[1.0, 2.0], &[3.0, 4.0], 9, 16),
            long(&[1.0, 2.0], &[3.0, 4.0], 8, 17),
        ];
        all.extend(longs.map(|scaling| rope.scaling(scaling)));
        let given = LongRopeConfig::new(&[1.0, 2.0], &[3.0, 4.0], 8, 16).attention_factor(1.0);
        all.push(rope.scaling(RopeScaling::LongRope(given)));
        let keys: HashSet<Vec<u64>> = all.iter().map(words).collect();
        assert_eq!(keys.len(), all.len());
        assert_ne!(words(&AttentionMask::None), words(&AttentionMask::Causal));
        let plain = AttentionConfig::<f32>::new(AttentionMask::None);
        let all = [
            plain,
            AttentionMask::Causal.into(),
            plain.alibi(),
            plain.window(1, 2),
            plain.window(2, 1),
            plain.soft_cap(1.0),
            plain.soft_cap(2.0),
        ];
        assert_eq!(all.iter().map(words).collect::<HashSet<_>>().len(), all.len());
        let conv = ConvConfig::<2>::new();
        let others = [conv.stride(2), conv.padding(1), conv.dilation(2), conv.groups(2)];
        assert!(others.iter().all(|o| words(o) != words(&conv)));
        let pool = MaxPoolConfig::<2>::new(3);
        let others =
            [pool.stride(2), pool.padding(1), pool.dilation(2), MaxPoolConfig { ceil_mode: true, ..pool }];
        assert!(others.iter().all(|o| words(o) != words(&pool)));
        let pool = AvgPoolConfig::<2>::new(3);
        let others = [pool.stride(2), pool.padding(1), AvgPoolConfig { count_include_pad: false, ..pool }];
        assert!(others.iter().all(|o| words(o) != words(&pool)));
        let conv = ConvTransposeConfig::<2>::new();
        let others =
            [conv.stride(2), conv.padding(1), conv.output_padding(1), conv.dilation(2), conv.groups(2)];
        assert!(others.iter().all(|o| words(o) != words(&conv)));
    }
}

// A function, compared by its address: if two are equal, the same code is called. (One function may have
// several addresses, which costs an additional recording.)
macro_rules! functions {
    ($([$($g:ident),*] $t:ty;)*) => {$(
        impl<$($g),*> LiveIn for $t {
            #[inline]
            fn write_key(&self, k: &mut KeyWriter) {
                k.word(*self as usize as u64);
            }
        }
        impl<$($g),*> Key for $t {}
        impl<$($g),*> ConfigValue for $t {}
    )*};
}
functions! {
    [T, U] for<'a, 's> fn(&'a Tensor<'s, T>) -> Result<Tensor<'s, U>>;
    [T, U] for<'a, 's> fn(&'a Tensor<'s, T>, f32) -> Result<Tensor<'s, U>>;
    [T, U] for<'a, 's> fn(&'a Tensor<'s, T>, usize) -> Result<Tensor<'s, U>>;
    [T, U] for<'a, 'b, 's> fn(&'a Tensor<'s, T>, &'b Tensor<'s, T>) -> Result<Tensor<'s, U>>;
}
