//! Handles as live-ins.

use crate::{
    Dim, Element, Param, PinnedLog, Rng, Scalar, Scope, Shape, State, Tensor,
    value::{
        key::KeyWriter,
        live_in::{DeviceValue, Key, LiveIn},
    },
};

impl KeyWriter {
    #[inline]
    fn live_in<T>(&mut self, tensor: &Tensor<'_, T>) {
        self.part_of(tensor.rt.id());
        self.tensor(&tensor.raw);
    }

    /// A size: one recording is made for each, as for the shape that contains it.
    pub(crate) fn size(&mut self, dim: &Dim<'_>) {
        if let Some(rt) = dim.rt.filter(|_| dim.is_padded()) {
            self.part_of(rt.id());
        }
        self.raw_size(dim.raw);
    }
}

macro_rules! device {
    ($($t:ident => |$v:ident, $k:ident| $write:expr;)*) => {$(
        impl<T> LiveIn for $t<'_, T> {
            #[inline]
            fn write_key(&self, $k: &mut KeyWriter) {
                let $v = self;
                $write;
            }
        }
        impl<T> DeviceValue for $t<'_, T> {}
    )*};
}

device! {
    Tensor => |t, k| k.live_in(t);
    Scalar => |s, k| k.live_in(s.tensor());
}

impl<T: Element> LiveIn for Param<T> {
    #[inline]
    fn write_key(&self, k: &mut KeyWriter) {
        k.owned(&self.owned, T::DTYPE, &self.layout);
    }
}

impl<T: Element> LiveIn for State<T> {
    #[inline]
    fn write_key(&self, k: &mut KeyWriter) {
        k.owned(&self.owned, T::DTYPE, &self.layout);
    }
}

impl LiveIn for Rng {
    #[inline]
    fn write_key(&self, k: &mut KeyWriter) {
        self.state.write_key(k);
    }
}

impl<T> LiveIn for PinnedLog<T> {
    #[inline]
    fn write_key(&self, k: &mut KeyWriter) {
        self.state.write_key(k);
    }
}

impl LiveIn for Dim<'_> {
    fn write_key(&self, k: &mut KeyWriter) {
        k.size(self);
    }
}
impl Key for Dim<'_> {}

impl LiveIn for Shape<'_> {
    fn write_key(&self, k: &mut KeyWriter) {
        k.word(self.len() as u64);
        self.iter().for_each(|dim| k.size(dim));
    }
}
impl Key for Shape<'_> {}

// A scope is the runtime, and a key belongs to one runtime.
impl LiveIn for Scope<'_> {
    fn write_key(&self, _: &mut KeyWriter) {}
}
impl DeviceValue for Scope<'_> {}
