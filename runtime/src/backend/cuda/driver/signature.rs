//! The properties that two captured graphs must share so that one executable can run either.

use rustc_hash::FxHashMap;

use super::{
    Graph, KernelNode,
    graph::Edges,
    table::Updates,
    types::{CUattributeValue, Handle},
};
use crate::{Error, Result, backend::Signature};

/// Attributes of kernels that an update cannot change, or that determine where blocks run: cooperative, the
/// size of clusters, their scheduling, and the priority.
const ATTRIBUTES: [i32; 4] = [2, 4, 5, 8];
/// Attributes of functions: the width, height and depth of the clusters that they were compiled for.
const CLUSTER: [i32; 3] = [11, 12, 13];

impl Graph {
    /// Returns the signature, or the reason why there is none. It separates graphs that the driver would reject; the driver
    /// has the final say when it updates.
    ///
    /// An update replaces everything about a kernel but its attributes, and the clusters that it was compiled for: the
    /// documentation of `cuGraphExecUpdate` names no other limit for kernels of one context that launch nothing themselves. So graphs share although a product of four rows has
    /// another kernel, with other blocks, than one of two rows. Only `head`, whose parameter is set between updates as well,
    /// stays the node that it is, and with it the size of that parameter.
    ///
    /// # Errors
    /// See [`Context::check`](super::Context::check).
    pub(crate) fn signature(&self, head: Option<&KernelNode>) -> Result<Result<Signature, &'static str>> {
        const KERNEL: i32 = 0;
        const COPY: i32 = 1;
        const FILL: i32 = 2;
        const EMPTY: i32 = 5;
        let table = self.context().table;
        let Some(api) = &table.updates else {
            return Ok(Err("the driver cannot update executables; CUDA 12.0 can"));
        };
        let Some(edges) = &table.edges else {
            return Ok(Err("the driver does not tell how edges order; CUDA 12.3 does"));
        };
        let nodes = self.nodes()?;
        let mut words = vec![nodes.len() as u64];
        for &node in &nodes {
            let kind = self.kind(node)?;
            words.push(kind as u64);
            match kind {
                KERNEL => {
                    let head = head.filter(|head| head.is(node));
                    words.push(head.map_or(0, KernelNode::function_address));
                    words.extend(self.cluster_of(node)?);
                    self.attribute_words(api, node, &mut words)?;
                }
                // Of rows, only the address and the value can be changed.
                FILL => match self.fill(node)? {
                    fill if fill.height <= 1 => words.push(u64::from(fill.element)),
                    fill => words.extend([
                        u64::from(fill.element),
                        fill.width as u64,
                        fill.height as u64,
                        fill.pitch as u64,
                    ]),
                },
                COPY | EMPTY => {}
                _ => return Ok(Err("it has nodes that cannot be updated, such as conditional ones")),
            }
        }
        let place: FxHashMap<Handle, u64> = nodes.iter().zip(0..).map(|(&node, at)| (node, at)).collect();
        let Edges { from, to, data } = self.edges(edges)?;
        let edges: Option<Vec<[u64; 3]>> = from
            .iter()
            .zip(&to)
            .zip(&data)
            .map(|((from, to), data)| {
                let kind = [data.from_port, data.to_port, data.kind].map(u64::from);
                Some([*place.get(from)?, *place.get(to)?, kind[0] << 16 | kind[1] << 8 | kind[2]])
            })
            .collect();
        let Some(mut edges) = edges else {
            return Ok(Err("it has an edge to a node that the driver does not list"));
        };
        edges.sort_unstable();
        words.extend(edges.into_iter().flatten());
        Ok(Ok(Signature::new(words)))
    }

    /// Returns the dimensions of clusters with which a kernel was compiled: the node has no attribute for these, and they do not
    /// change with an update.
    fn cluster_of(&self, node: Handle) -> Result<[u64; 3]> {
        let mut words = [0; 3];
        let Some(params) = self.kernel(node)? else { return Ok(words) };
        if params.function.is_null() {
            // A kernel of another library: not known, so it is told apart by its address.
            return Ok([u64::MAX, params.kernel.addr() as u64, 0]);
        }
        for (word, attribute) in words.iter_mut().zip(CLUSTER) {
            let mut value = 0;
            // SAFETY: the function of a kernel node; one integer is written.
            let code =
                unsafe { (self.context().table.func_attribute)(&mut value, attribute, params.function) };
            match self.context().check("cuFuncGetAttribute", code) {
                Ok(()) => *word = u64::from(value.unsigned_abs()),
                Err(lost @ Error::ContextLost { .. }) => return Err(lost),
                // A driver that does not know clusters.
                Err(_) => {}
            }
        }
        Ok(words)
    }

    fn attribute_words(&self, api: &Updates, node: Handle, words: &mut Vec<u64>) -> Result<()> {
        // An attribute that the device does not have is announced as absent, and has no value.
        for attribute in ATTRIBUTES {
            let mut value = CUattributeValue::default();
            // SAFETY: a kernel node of this graph; one value is written.
            let code = unsafe { (api.attribute)(node, attribute, &mut value) };
            match self.context().check("cuGraphKernelNodeGetAttribute", code) {
                Ok(()) => {
                    words.push(u64::from(true));
                    words.extend(value.0);
                }
                Err(lost @ Error::ContextLost { .. }) => return Err(lost),
                Err(_) => words.push(u64::from(false)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use cudarc::driver::sys::{CUfunction_attribute as Function, CUlaunchAttributeID as Theirs};

    use super::{
        super::{Context, Pool, Stream, Updated},
        *,
    };
    use crate::backend::cuda::kernels::testing::say_skipped;

    #[test]
    fn attributes_are_those_of_the_headers() {
        let theirs = [
            Theirs::CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
            Theirs::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
            Theirs::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
            Theirs::CU_LAUNCH_ATTRIBUTE_PRIORITY,
        ];
        assert_eq!(theirs.map(|id| id as i32), ATTRIBUTES);
        let theirs = [
            Function::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
            Function::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
            Function::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
        ];
        assert_eq!(theirs.map(|id| id as i32), CLUSTER);
    }

    /// One executable, two graphs of one topology, and one of another.
    #[test]
    fn one_executable_runs_what_it_is_updated_to() {
        let context = match Context::open(0) {
            Ok(context) => context,
            Err(error) => {
                return say_skipped("one_executable_runs_what_it_is_updated_to", &error);
            }
        };
        let stream = Stream::new(&context).unwrap();
        let pool = Pool::new(&context).unwrap();
        let addr = pool.alloc(&stream, 4096, "a test").unwrap();
        stream.synchronize().unwrap();
        let captured = |fills: &[(u64, u8)]| {
            stream.begin_capture().unwrap();
            fills.iter().for_each(|&(at, value)| stream.fill(addr + at, value, 1024).unwrap());
            stream.end_capture().1.unwrap()
        };
        let (one, two) = (captured(&[(0, 1), (1024, 2)]), captured(&[(2048, 3), (1024, 4)]));
        let other = captured(&[(0, 5)]);
        let signature = |graph: &Graph| graph.signature(None).unwrap();
        assert_eq!(signature(&one), signature(&two));
        assert!(signature(&one).is_ok() && signature(&one) != signature(&other));
        let exec = one.instantiate(&stream).unwrap();
        assert_eq!(exec.update(&two).unwrap(), Updated::Done);
        assert!(matches!(exec.update(&other).unwrap(), Updated::Refused(_)));
        exec.launch(&stream).unwrap();
        assert_eq!(exec.update(&one).unwrap(), Updated::Done);
        exec.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        pool.free(&stream, addr).unwrap();
        stream.synchronize().unwrap();
    }
}
