//! Kernels of elements in the place of launches of a recording.

use std::fmt;

use smallvec::SmallVec;

use super::{
    definition::{Compute, Constant, Definition, Kernel, Kind, Number, Padded},
    operation::operation,
};
use crate::{
    observe::inspect::PassRefusal,
    program::users::{NewLaunch, Operands, TensorRef},
};

/// A launch of a [`#[kernel]`](macro@crate::kernel) of elements that a [pass](crate::passes::Pass) wants in the place of others: made
/// by [`kernel`].
///
/// The first mistake is kept, and refused by [`Program::replace`](crate::passes::Program::replace).
#[must_use = "`Program::replace` takes it"]
#[derive(Clone)]
pub struct KernelReplacement {
    definition: &'static Definition,
    /// For each parameter so far, the number that it is.
    constants: SmallVec<[Option<Number>; 4]>,
    operands: Operands,
    outputs: usize,
}

/// Starts a launch of the kernel of that name, a function of single values that is marked [`#[kernel]`](macro@crate::kernel): its
/// parameters are named in their order, and then its results. Kernels of rows and of indices do not compile.
///
/// ```compile_fail,E0080
/// # use graphable::{kernel, passes};
/// #[kernel(rows)]
/// fn total(x: Row<f32>) -> f32 {
///     x.sum()
/// }
///
/// let by = passes::kernel::<total>();
/// ```
pub fn kernel<K: Kernel>() -> KernelReplacement {
    const {
        assert!(
            matches!(K::DEFINITION.kind, Kind::Elements),
            "`passes::kernel` takes kernels of single values, not of rows or indices"
        );
    }
    let definition = K::DEFINITION;
    KernelReplacement { definition, constants: SmallVec::new(), operands: Operands::default(), outputs: 0 }
}

impl KernelReplacement {
    /// Passes an input as the next parameter. It is refused if the parameter does not take elements of its type.
    pub fn input(mut self, tensor: TensorRef) -> Self {
        let parameter = self.definition.inputs.get(self.constants.len());
        match parameter {
            Some((_, compute)) if !is_argument(*compute, &tensor) => {
                self.operands.refuse(PassRefusal::OtherType)
            }
            Some(_) => {}
            None => self.operands.refuse(PassRefusal::OtherArguments),
        }
        self.constants.push(None);
        self.operands.input(tensor, tensor.dtype());
        self
    }

    /// Passes a number as the next parameter.
    pub fn number(mut self, value: impl Constant) -> Self {
        let number = value.number();
        match self.definition.inputs.get(self.constants.len()) {
            Some((_, compute)) if *compute == number.compute => {}
            Some(_) => self.operands.refuse(PassRefusal::OtherType),
            None => self.operands.refuse(PassRefusal::OtherArguments),
        }
        self.constants.push(Some(number));
        self
    }

    /// Passes an output as the next result. It is refused if that result has another type.
    pub fn output(mut self, tensor: TensorRef) -> Self {
        match self.definition.outputs.get(self.outputs) {
            Some(compute) if !is_argument(*compute, &tensor) => self.operands.refuse(PassRefusal::OtherType),
            Some(_) => {}
            None => self.operands.refuse(PassRefusal::OtherArguments),
        }
        self.outputs += 1;
        self.operands.output(tensor, tensor.dtype());
        self
    }
}

/// Returns whether tensors with such elements are arguments of that type, as in a call.
fn is_argument(compute: Compute, tensor: &TensorRef) -> bool {
    // `i32` and `u32` fit each other as bits, which is not what a function of the one does with the other.
    let dtype = tensor.dtype();
    match compute {
        Compute::F32 => dtype.is_computed_in_f32(),
        Compute::F64 => dtype == crate::DType::F64,
        Compute::I32 => dtype == crate::DType::I32,
        Compute::I64 => dtype == crate::DType::I64,
        Compute::I8 => dtype == crate::DType::I8,
        Compute::U32 => dtype == crate::DType::U32,
        Compute::U8 => dtype == crate::DType::U8,
        Compute::Bool => dtype == crate::DType::Bool,
        Compute::U16 | Compute::Random => false,
    }
}

impl From<KernelReplacement> for NewLaunch {
    fn from(by: KernelReplacement) -> Self {
        let KernelReplacement { definition, constants, mut operands, outputs } = by;
        if constants.len() != definition.inputs.len() || outputs != definition.outputs.len() {
            operands.refuse(PassRefusal::OtherArguments);
        }
        let shape = operands.outputs().first().map(|first| first.view().layout);
        let mut fits =
            operands.outputs().iter().all(|output| Some(output.shape()) == shape.as_ref().map(|s| s.shape()));
        for input in operands.inputs_mut() {
            let spread = shape.and_then(|shape| input.view().layout.broadcast_to(shape.shape()));
            fits &= spread.is_some();
            spread.into_iter().for_each(|layout| input.set_layout(layout));
        }
        if !fits {
            operands.refuse(PassRefusal::OtherShape);
        }
        operands
            .launch(definition.name, || operation(definition, constants.iter().copied(), Padded::default()))
    }
}

impl fmt::Debug for KernelReplacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelReplacement")
            .field("kernel", &self.definition.name)
            .field("constants", &self.constants)
            .field("operands", &self.operands)
            .finish_non_exhaustive()
    }
}
