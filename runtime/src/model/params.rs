//! Structs of weights and state: the trait that `#[derive(Params)]` implements, and those that its fields
//! need.

use std::{collections::BTreeSet, fmt::Write as _, marker::PhantomData, ops::Range, sync::Arc};

use half::{bf16, f16};

use crate::{
    BlockFormat, DType, Element, HostContext, Kept, Param, PinnedLog, Rng, State, Weight,
    value::{key::KeyWriter, live_in::LiveIn},
};

/// A model, a layer, a cache: a struct whose parameters and state have static addresses.
///
/// Derive it. Every field becomes part of the key of a segment that uses the struct; host fields are marked
/// `#[config]` and compared by value.
///
/// ```
/// use graphable::{ParamVisitor, prelude::*};
///
/// #[derive(Params)]
/// struct Norm {
///     weight: Param<f32>,
///     #[config]
///     eps: f32,
/// }
///
/// # fn main() -> Result<()> {
/// let rt = Runtime::new(Device::cpu())?;
/// let norm = Norm { weight: Param::zeros(&rt, &[4])?, eps: 1e-6 };
/// let listed = ParamVisitor::list(&norm);
/// assert_eq!((listed[0].path.as_str(), listed[0].bytes), ("weight", 16));
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a struct of parameters",
    label = "expected a parameter, state, or a `#[derive(Params)]` struct",
    note = "add `#[derive(Params)]` to your struct; a host value is passed as `#[key] x: T` or `#[host] x: &Scalar<T>`"
)]
pub trait Params: LiveIn {
    /// Passes every parameter and state to `v`, in the order of the fields.
    fn visit_params(&self, v: &mut ParamVisitor);
}

/// The way in which segments use memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParamKind {
    /// A [`Param`], a [`Weight`] or a [`Kept`] value, which is only read.
    Param,
    /// A [`State`], which is modified in place.
    State,
}

/// One parameter or state of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParamInfo {
    /// Field names and indices from the root, joined by dots: `layers.3.attn.q`.
    pub path: String,
    /// Its kind.
    pub kind: ParamKind,
    /// Element type; of a weight in blocks, that of the activations that it is multiplied with.
    pub dtype: DType,
    /// The format of a weight in blocks; `None` if elements are stored one by one.
    pub format: Option<BlockFormat>,
    /// Sizes in elements, outermost first.
    pub shape: Vec<usize>,
    /// The size of the memory that it refers to, in bytes.
    pub bytes: u64,
    /// The identity of that memory, equal for two handles of one parameter (tied weights).
    pub id: u64,
}

/// Lists the parameters of a model, with their paths.
#[derive(Debug, Default)]
pub struct ParamVisitor {
    path: String,
    found: Vec<ParamInfo>,
}

impl ParamVisitor {
    /// Returns every parameter and state of `model`, in the order of its fields.
    pub fn list(model: &(impl Params + ?Sized)) -> Vec<ParamInfo> {
        let mut visitor = Self::default();
        model.visit_params(&mut visitor);
        visitor.found
    }

    /// Returns the number of bytes of device memory that `model` owns; memory shared by several fields counts
    /// once.
    pub fn bytes(model: &(impl Params + ?Sized)) -> u64 {
        let mut seen = BTreeSet::new();
        Self::list(model).iter().filter(|p| seen.insert(p.id)).map(|p| p.bytes).sum()
    }

    /// Visits a part of the struct, under the name of its field.
    pub fn field(&mut self, name: impl std::fmt::Display, visit: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        let dot = if length == 0 { "" } else { "." };
        // Writing to a string cannot fail.
        let _ = write!(self.path, "{dot}{name}");
        visit(self);
        self.path.truncate(length);
    }

    fn leaf(&mut self, kind: ParamKind, dtype: DType, shape: &[usize], bytes: u64, id: u64) {
        let (path, shape) = (self.path.clone(), shape.to_vec());
        self.found.push(ParamInfo { path, kind, dtype, format: None, shape, bytes, id });
    }
}

impl<T: Element> Params for Param<T> {
    fn visit_params(&self, v: &mut ParamVisitor) {
        v.leaf(ParamKind::Param, T::DTYPE, self.shape(), self.owned.memory.len(), self.owned.id.get());
    }
}

impl<T: Element> Params for Weight<T> {
    fn visit_params(&self, v: &mut ParamVisitor) {
        let owned = self.owned();
        v.leaf(ParamKind::Param, T::DTYPE, self.shape(), owned.memory.len(), owned.id.get());
        if let Some(leaf) = v.found.last_mut() {
            leaf.format = self.format();
        }
    }
}

impl<T: Element> Params for State<T> {
    fn visit_params(&self, v: &mut ParamVisitor) {
        v.leaf(ParamKind::State, T::DTYPE, self.shape(), self.owned.memory.len(), self.owned.id.get());
    }
}

impl Params for Rng {
    fn visit_params(&self, v: &mut ParamVisitor) {
        self.state.visit_params(v);
    }
}

impl<T> Params for PinnedLog<T> {
    fn visit_params(&self, v: &mut ParamVisitor) {
        self.state.visit_params(v);
    }
}

impl<T> Params for HostContext<T> {
    /// It is not on the device.
    fn visit_params(&self, _: &mut ParamVisitor) {}
}

impl<O> Params for Kept<O> {
    fn visit_params(&self, v: &mut ParamVisitor) {
        for (memory, _, dtype, layout) in self.tensors() {
            let owned = memory.owned();
            v.leaf(ParamKind::Param, dtype, layout.shape(), owned.memory.len(), owned.id.get());
        }
    }
}

macro_rules! through {
    ($t:ident: $($pointer:ty),*) => {$(
        impl<$t: Params + ?Sized> Params for $pointer {
            fn visit_params(&self, v: &mut ParamVisitor) {
                (**self).visit_params(v);
            }
        }
    )*};
}
through! { T: &T, Box<T>, Arc<T> }

impl<T: Params> Params for [T] {
    fn visit_params(&self, v: &mut ParamVisitor) {
        for (i, item) in self.iter().enumerate() {
            v.field(i, |v| item.visit_params(v));
        }
    }
}

impl<T: Params> Params for Vec<T> {
    fn visit_params(&self, v: &mut ParamVisitor) {
        self[..].visit_params(v);
    }
}

impl<T: Params, const N: usize> Params for [T; N] {
    fn visit_params(&self, v: &mut ParamVisitor) {
        self[..].visit_params(v);
    }
}

impl<T: Params> Params for Option<T> {
    fn visit_params(&self, v: &mut ParamVisitor) {
        if let Some(value) = self {
            value.visit_params(v);
        }
    }
}

impl<T: ?Sized> Params for PhantomData<T> {
    fn visit_params(&self, _: &mut ParamVisitor) {}
}

/// The requirement on a field without `#[config]` in a `#[derive(Params)]` struct. It is the same as
/// [`Params`], with a message suited to a field.
#[diagnostic::on_unimplemented(
    message = "[G058] `{Self}` is a host value; mark the field `#[config]`",
    label = "not a parameter, state or `#[derive(Params)]` struct",
    note = "`#[config]` fields are part of the key and compared by value: numbers, strings, containers of them, and `#[derive(ConfigValue)]` types",
    note = "a struct of weights needs `#[derive(Params)]` itself; tensors live within one step and belong in a `#[derive(GraphOutput)]` struct"
)]
pub trait ParamField {
    /// Writes the field's part of the key.
    #[doc(hidden)]
    fn field_key(&self, k: &mut KeyWriter);
    /// Visits the field's parameters.
    #[doc(hidden)]
    fn field_params(&self, v: &mut ParamVisitor);
}

#[diagnostic::do_not_recommend]
impl<T: Params + ?Sized> ParamField for T {
    #[inline]
    fn field_key(&self, k: &mut KeyWriter) {
        k.value(self);
    }
    fn field_params(&self, v: &mut ParamVisitor) {
        self.visit_params(v);
    }
}

/// A host value that a `#[config]` field can hold: compared by value on every call (floats by bits).
///
/// Derive it for structs and enums of such values.
///
/// Maps and sets are compared by their entries. The order in which a `HashMap` or `HashSet` is iterated is not in the key, because it differs
/// between equal ones: a segment whose operations depend on an order iterates a `BTreeMap` or a `Vec`. Nor is the identity of an
/// allocation, which `Arc::ptr_eq` compares.
#[diagnostic::on_unimplemented(
    message = "[G059] `{Self}` cannot be a `#[config]` field",
    label = "not comparable by value",
    note = "numbers, `bool`, `char`, strings, and options, vectors, arrays and tuples of them can; add `#[derive(ConfigValue)]` to a struct or enum of them",
    note = "types with interior mutability (`Cell`, `RefCell`, atomics, locks) cannot: a replay would not see a change; make it a `State`, or a `#[host]` parameter"
)]
pub trait ConfigValue: LiveIn {
    /// Writes the field's part of the key.
    #[doc(hidden)]
    #[inline]
    fn config_key(&self, k: &mut KeyWriter) {
        self.write_key(k);
    }
}

macro_rules! config {
    ($($t:ty),*) => {$(impl ConfigValue for $t {})*};
}
config! {
    u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64, f16, bf16, bool, char, str,
    String, DType, ()
}

impl<T: ConfigValue + ?Sized> ConfigValue for &T {}
impl<T: ConfigValue + ?Sized> ConfigValue for Box<T> {}
impl<T: ConfigValue + ?Sized> ConfigValue for Arc<T> {}
impl<T: ConfigValue> ConfigValue for Option<T> {}
impl<T: ConfigValue> ConfigValue for Vec<T> {}
impl<T: ConfigValue> ConfigValue for [T] {}
impl<T: ConfigValue, const N: usize> ConfigValue for [T; N] {}
impl<T: ConfigValue> ConfigValue for Range<T> {}
impl<T: ?Sized> ConfigValue for PhantomData<T> {}

macro_rules! tuples {
    ($first:ident $($rest:ident)*) => {
        impl<$first: ConfigValue, $($rest: ConfigValue),*> ConfigValue for ($first, $($rest,)*) {}
        tuples! { $($rest)* }
    };
    () => {};
}
tuples! { A B C D E F G H I J K L }
