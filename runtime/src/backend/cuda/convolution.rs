//! Convolutions by a library, where there is one.

use std::sync::Arc;

use super::{
    CudaBackend,
    dnn::Dnn,
    kernels::{Convolution, ConvolutionAddresses},
};
use crate::Result;

impl CudaBackend {
    fn dnn(&mut self) -> Option<&mut Dnn> {
        let (shared, bound) = (&self.shared, self.options.convolution_plans);
        let open = || {
            // SAFETY: the stream is of the context, and `drop` of the backend lets go of the library before the stream.
            unsafe { Dnn::open(shared.context.raw() as usize, shared.stream.raw(), bound) }
        };
        self.dnn.get_or_insert_with(open).as_mut()
    }

    /// Returns the workspace of a convolution; `None` if there is no library for it.
    pub(super) fn workspace_of_convolution(&mut self, of: &Convolution) -> Result<Option<u64>> {
        let context = Arc::clone(&self.shared.context);
        let _bound = context.bind()?;
        // The library may load code or allocate when it is asked, which would invalidate a capture.
        let asked = context.unordered(|| self.dnn().map_or(Ok(None), |dnn| dnn.workspace(of)));
        asked.map_err(|error| context.or_lost(error))
    }

    /// Launches a convolution with the workspace that
    /// [`workspace_of_convolution`](Self::workspace_of_convolution) requested.
    pub(super) fn launch_convolution(
        &mut self,
        of: &Convolution,
        at: ConvolutionAddresses,
        workspace: u64,
    ) -> Result<()> {
        let context = Arc::clone(&self.shared.context);
        self.after_kernel = false;
        self.watched(false, |backend| {
            let Some(dnn) = backend.dnn() else {
                return Err(backend.failed("launch", "a convolution without the library".into()));
            };
            // The library may load a kernel now, which would invalidate a capture.
            let run = context.unordered(|| {
                // SAFETY: the operation made `of` of these operands, which it has aligned; the core keeps them and the
                // workspace until the convolution has run.
                unsafe { dnn.run(of, at, workspace) }
            });
            run.map_err(|error| context.or_lost(error))
        })
    }
}
