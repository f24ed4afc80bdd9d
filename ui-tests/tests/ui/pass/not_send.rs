//! What lives in a step stays on its thread; a runtime may move to another one.

use graphable::prelude::*;

trait AmbiguousIfSend<A> {
    fn check() {}
}
impl<T: ?Sized> AmbiguousIfSend<()> for T {}
impl<T: ?Sized + Send> AmbiguousIfSend<u8> for T {}

fn send<T: Send>() {}

fn main() {
    <Tensor<'static, f32> as AmbiguousIfSend<_>>::check();
    <Scalar<'static, u32> as AmbiguousIfSend<_>>::check();
    <Step<'static> as AmbiguousIfSend<_>>::check();
    send::<Runtime>();
}
