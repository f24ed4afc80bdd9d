//! Matrix products: by the kernels that came with them where their rule says so, and otherwise by those or by the library,
//! whichever was measured to be faster.

use std::sync::Arc;

use super::{
    CudaBackend,
    blas::{Addresses, Blas, Plan},
    driver::Event,
    kernels::Product,
};
use crate::{Error, Result};

/// Runs of a candidate that are timed, after one that is not.
const RUNS: u32 = 5;

impl CudaBackend {
    fn blas(&mut self) -> Option<&mut Blas> {
        let props = self.shared.context.props();
        let context = self.shared.context.raw() as usize;
        let (opened, disk, plans) = (&mut self.blas, &self.disk, self.options.product_plans);
        opened.get_or_insert_with(|| Blas::open(context, props, disk, plans)).as_mut()
    }

    /// Returns how to compute a product; `None` if its kernels must: by rule, or because the library cannot or is not
    /// available.
    fn plan(&mut self, product: Product<'_>) -> Result<Option<Plan>> {
        if product.output.layout.count() == 0 || product.is_own() {
            return Ok(None);
        }
        let context = Arc::clone(&self.shared.context);
        // The library may load code when it is asked, which would invalidate a capture.
        self.blas().map_or(Ok(None), |blas| context.unordered(|| blas.plan(product)))
    }

    /// Returns the workspace of a product. With `measure`, outside a capture, a new product is first measured
    /// on its own operands: the output is overwritten anyway.
    pub(super) fn workspace_of_product(&mut self, product: Product<'_>, measure: bool) -> Result<u64> {
        let _bound = self.shared.context.bind()?;
        let Some(mut plan) = self.plan(product)? else {
            return Ok(product.workspace_bytes(self.shared.context.props()));
        };
        // The body of a recording keeps using the plan with which it was recorded.
        let fixed = self.blas().is_some_and(|blas| blas.is_fixed(&plan));
        if !plan.tuned && !fixed && measure && self.capture.is_none() {
            plan = self.tune(&plan, product)?;
        }
        Ok(plan.workspace)
    }

    /// Launches a product with the workspace that [`workspace_of_product`](Self::workspace_of_product)
    /// requested.
    pub(super) fn launch_product(&mut self, product: Product<'_>, workspace: u64) -> Result<()> {
        let plan = self.plan(product)?;
        if self.capture.is_some() {
            let pin = self.blas().and_then(|blas| blas.pin(product));
            if let Some(capture) = &mut self.capture {
                capture.pins.extend(pin);
            }
        }
        match plan {
            Some(plan) if !plan.is_own() => {
                self.watched(false, |backend| backend.run_plan(&plan, product, workspace))
            }
            _ => product.launch_kernels(self, workspace),
        }
    }

    fn run_plan(&mut self, plan: &Plan, product: Product<'_>, workspace: u64) -> Result<()> {
        let (stream, context) = (self.shared.stream.raw(), Arc::clone(&self.shared.context));
        let at = Addresses::of(product.inputs, product.output);
        let Some(blas) = self.blas() else {
            return Err(self.failed("launch", "a plan without the library".into()));
        };
        // The library may load a kernel now, which would invalidate a capture.
        let run = context.unordered(|| {
            // SAFETY: the stream is of the bound context, in which the library was opened; the plan was
            // made for these operands; the core keeps them and the workspace until the product has run.
            unsafe { blas.run(plan, stream, at, workspace) }
        });
        run.map_err(|error| context.or_lost(error))
    }

    fn tune(&mut self, plan: &Plan, product: Product<'_>) -> Result<Plan> {
        // Taken out while its candidates run: timing needs the whole backend.
        let mut blas = match self.blas.take() {
            Some(Some(blas)) => blas,
            other => {
                self.blas = other;
                return Ok(*plan);
            }
        };
        self.singles.paused = true;
        let tuned = self.measure(&mut blas, plan, product);
        self.singles.paused = false;
        self.blas = Some(Some(blas));
        let tuned = tuned.map_err(|error| self.shared.context.or_lost(error));
        match tuned {
            Ok(tuned) => Ok(tuned),
            Err(lost @ Error::ContextLost { .. }) => Err(lost),
            Err(error) => {
                // The heuristics' guess still works.
                tracing::warn!(%error, "a product could not be measured");
                Ok(*plan)
            }
        }
    }

    /// The fastest of a product's candidates.
    fn measure(&mut self, blas: &mut Blas, plan: &Plan, product: Product<'_>) -> Result<Plan> {
        let largest = blas.candidates(&plan.key)?.iter().map(|c| c.workspace).max().unwrap_or(0);
        let props = self.shared.context.props();
        let largest = largest.max(product.workspace_bytes(props)).max(256);
        let workspace = self.shared.pool.alloc(&self.shared.stream, largest, "measuring products")?;
        let tuned =
            blas.tune(plan, product, &mut |blas, candidate| self.time(blas, candidate, product, workspace));
        // Freed in stream order, after the last candidate.
        self.shared.pool.free(&self.shared.stream, workspace).and(tuned)
    }

    /// Microseconds of one run.
    fn time(&mut self, blas: &mut Blas, plan: &Plan, product: Product<'_>, workspace: u64) -> Result<f32> {
        let (start, end) = (Event::new(&self.shared.context, true)?, Event::new(&self.shared.context, true)?);
        for run in 0..=RUNS {
            if run == 1 {
                start.record(&self.shared.stream)?;
            }
            if plan.is_own() {
                product.launch_kernels(self, workspace)?;
            } else {
                let stream = self.shared.stream.raw();
                // SAFETY: as in `run_plan`; `workspace` has room for the largest candidate.
                unsafe { blas.run(plan, stream, Addresses::of(product.inputs, product.output), workspace)? };
            }
        }
        end.record(&self.shared.stream)?;
        end.wait()?;
        Ok(start.elapsed(&end)? * 1000.0 / RUNS as f32)
    }
}
