//! The operation that every function of this folder launches.

#[cfg(feature = "cuda")]
use super::cuda::MatMulKernels;
use super::{
    super::prelude::*,
    cpu,
    product::MatMul,
    thin::{few_rows::may_fuse_product, fuse::fuse_product},
};
#[cfg(feature = "cuda")]
use crate::backend::cuda::kernels::Product;
use crate::{Element, Numerics, Scope, backend::Op};

/// Returns `[a: .., M, K; b: .., K, N] -> [y: .., M, N]`, accumulated in f32 (f64: in f64; integers: wrapping), with the switches of the
/// numerics that apply in `scope`. Batch dimensions are already broadcast (stride 0). An optional third input `[N]`,
/// broadcast to the output's shape, is added.
pub(super) fn op<T: Element>(scope: Scope<'_>) -> Op {
    let numerics = scope.numerics().concerning(T::DTYPE);
    Op::fixed(&ALL[usize::from(numerics.bits())])
}

/// With no switch on.
#[cfg(feature = "cuda")]
pub(super) const fn by_default() -> Op {
    Op::fixed(&ALL[0])
}

/// The product with the default switches, for programs of tests.
#[cfg(test)]
pub(crate) fn plain() -> Op {
    Op::fixed(&ALL[0])
}

/// One for each combination of switches.
static ALL: [MatMul; Numerics::COMBINATIONS] = {
    let mut all = [MatMul { numerics: Numerics::of_bits(0) }; Numerics::COMBINATIONS];
    let mut bits = 0;
    while bits < all.len() {
        all[bits] = MatMul { numerics: Numerics::of_bits(bits as u8) };
        bits += 1;
    }
    all
};

impl Operation for MatMul {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_u8(self.numerics.bits());
    }

    fn may_fuse(&self, launch: &Launch) -> bool {
        may_fuse_product(launch)
    }

    fn fuse(&self, parts: &[&Launch], kept: &[u8]) -> Option<Launch> {
        fuse_product(parts, kept)
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        cpu::matmul(access, launch);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn cuda_workspace(
        &self,
        gpu: &mut dyn Submit,
        inputs: &[View],
        outputs: &[View],
        measure: bool,
    ) -> crate::Result<u64> {
        let product = Product::new(inputs, &outputs[0], &MatMulKernels, self.numerics);
        gpu.product_workspace(product, measure)
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> crate::Result<()> {
        let product = Product::new(&launch.inputs, &launch.outputs[0], &MatMulKernels, self.numerics);
        gpu.product(product, launch.workspace)
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{Hash as _, Hasher as _};

    use rustc_hash::{FxHashSet, FxHasher};

    use super::*;
    use crate::{Device, Runtime, bf16};

    fn fingerprint(op: &Op) -> u64 {
        let mut hasher = FxHasher::default();
        op.hash(&mut hasher);
        hasher.finish()
    }

    /// So traces and audits tell them apart, and a capture that is made again has the switches of its body.
    #[test]
    fn the_switches_are_parameters_of_a_product() {
        let mut rt = Runtime::new(Device::cpu()).unwrap();
        let (mut floats, mut halves, mut integers) =
            (FxHashSet::default(), FxHashSet::default(), FxHashSet::default());
        for bits in 0..8 {
            rt.set_numerics(Numerics::of_bits(bits));
            let step = rt.step().unwrap();
            floats.insert(fingerprint(&op::<f32>(step.scope())));
            halves.insert(fingerprint(&op::<bf16>(step.scope())));
            integers.insert(fingerprint(&op::<i32>(step.scope())));
        }
        // f32 has TF32 and the deterministic mode, 16 bits have reductions and the deterministic mode.
        assert_eq!((floats.len(), halves.len(), integers.len()), (4, 4, 1));
    }
}
