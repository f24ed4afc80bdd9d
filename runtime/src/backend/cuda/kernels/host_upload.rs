//! Uploads of host values and device inputs to a graph, as parameters of its first kernel.

use bytemuck::{Pod, Zeroable};

use super::{Grid, Kernel, SourceFile};
use crate::backend::{HostUpload, cuda::DeviceProperties};

/// Host values and device inputs, scattered to static buffers.
static UPLOAD: SourceFile = SourceFile::ours("host_upload.cu", include_str!("host_upload.cu"));
/// The same, with more than 4 KB of them.
static UPLOAD_LARGE: SourceFile =
    SourceFile::ours("host_upload_large.cu", include_str!("host_upload_large.cu"));

/// Mirrors `Upload` of `host_upload.cu`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Upload {
    to: u64,
    /// An offset into the payload; with [`FROM_DEVICE`], an address.
    from: u64,
    /// Bytes, and the flag.
    size: u64,
}

/// In [`Upload::size`]: the bytes are copied from device memory.
const FROM_DEVICE: u64 = 1 << 63;
/// Bytes before the payload.
const HEADER: usize = 16;
/// Threads of a block.
const THREADS: u32 = 256;
/// Bytes that one thread copies at a time, in four loads of 16 bytes.
const AT_ONCE: u64 = 64;

/// One of the kernels, by how many bytes its parameter has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UploadSizeClass {
    /// Size of the parameter, in bytes.
    pub(crate) bytes: usize,
    name: &'static str,
    source: &'static SourceFile,
}

impl UploadSizeClass {
    const SMALL: [Self; 3] = [
        Self { bytes: 256, name: "upload_240", source: &UPLOAD },
        Self { bytes: 1024, name: "upload_1k", source: &UPLOAD },
        Self { bytes: 4080, name: "upload_4k", source: &UPLOAD },
    ];
    /// Needs CUDA 12.1: parameters beyond 4 KB.
    const LARGE: Self = Self { bytes: 32_752, name: "upload_32k", source: &UPLOAD_LARGE };

    /// The smallest that holds `block`; `None` when it has to be staged.
    pub(crate) fn of(block: &HostUpload, large: bool) -> Option<Self> {
        let need = size(block);
        Self::SMALL.into_iter().chain(large.then_some(Self::LARGE)).find(|c| need <= c.bytes)
    }

    /// Its function.
    pub(crate) fn kernel(self) -> Kernel {
        Kernel::plain(self.source, self.name)
    }

    /// Returns the number of blocks of the launch: one per write, up to a few, and for large copies as many
    /// as the device runs at the same time. The kernel works with any number.
    pub(crate) fn grid(self, block: &HostUpload, props: &DeviceProperties) -> Grid {
        let entries = block.writes.len() + block.copies.len();
        let copied: u64 = block.copies.iter().map(|copy| copy.bytes).sum();
        let blocks = props.blocks_for(copied.div_ceil(AT_ONCE), THREADS);
        Grid::line((entries as u32).clamp(1, 32).max(blocks), THREADS)
    }

    /// Writes the parameter to `out`, whose memory is reused.
    pub(crate) fn pack(self, block: &HostUpload, out: &mut Vec<u8>) {
        out.clear();
        out.resize(self.bytes, 0);
        let count = block.writes.len() + block.copies.len();
        out[..4].copy_from_slice(&(count as u32).to_le_bytes());
        let mut at = (count * size_of::<Upload>()).next_multiple_of(16);
        let mut entry = HEADER;
        let mut push = |out: &mut Vec<u8>, upload: Upload| {
            out[entry..entry + size_of::<Upload>()].copy_from_slice(bytemuck::bytes_of(&upload));
            entry += size_of::<Upload>();
        };
        for &(to, offset, bytes) in &block.writes {
            push(out, Upload { to, from: at as u64, size: bytes as u64 });
            out[HEADER + at..HEADER + at + bytes].copy_from_slice(&block.bytes[offset..offset + bytes]);
            at = (at + bytes).next_multiple_of(16);
        }
        for copy in &block.copies {
            debug_assert!(copy.bytes < FROM_DEVICE, "no device has that many bytes");
            push(out, Upload { to: copy.to, from: copy.from, size: copy.bytes | FROM_DEVICE });
        }
    }

    /// The parameter that writes nothing.
    pub(crate) fn empty(self, out: &mut Vec<u8>) {
        out.clear();
        out.resize(self.bytes, 0);
    }
}

/// Bytes of the parameter that `block` needs.
fn size(block: &HostUpload) -> usize {
    let entries = ((block.writes.len() + block.copies.len()) * size_of::<Upload>()).next_multiple_of(16);
    let data: usize = block.writes.iter().map(|&(_, _, bytes)| bytes.next_multiple_of(16)).sum();
    HEADER + entries + data
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::DeviceCopy;

    fn block(lengths: &[usize]) -> HostUpload {
        let mut out = HostUpload::default();
        for (i, &n) in lengths.iter().enumerate() {
            let at = out.bytes.len();
            out.bytes.extend((0..n).map(|b| (b * 7 + i) as u8));
            out.writes.push((0x1000 * (i as u64 + 1), at, n));
        }
        out
    }

    /// Does the same as the kernel, in a loop.
    fn interpret(params: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let count: u32 = bytemuck::pod_read_unaligned(&params[..4]);
        let payload = &params[HEADER..];
        (0..count as usize)
            .map(|n| {
                let upload: Upload = bytemuck::pod_read_unaligned(&payload[n * 24..n * 24 + 24]);
                let from = upload.from as usize;
                assert_eq!(upload.size & FROM_DEVICE, 0);
                assert_eq!(from % 16, 0, "the vector path needs it");
                (upload.to, payload[from..from + upload.size as usize].to_vec())
            })
            .collect()
    }

    #[test]
    fn every_byte_arrives() {
        for lengths in [&[4][..], &[4, 4, 4], &[1, 15, 16, 17, 33], &[200, 300], &[3000, 1]] {
            let block = block(lengths);
            let class = UploadSizeClass::of(&block, false).unwrap();
            let mut params = Vec::new();
            class.pack(&block, &mut params);
            assert_eq!(params.len(), class.bytes);
            let expected: Vec<(u64, Vec<u8>)> =
                block.writes.iter().map(|&(to, at, n)| (to, block.bytes[at..at + n].to_vec())).collect();
            assert_eq!(interpret(&params), expected);
        }
    }

    #[test]
    fn classes_are_chosen_by_size() {
        let class = |lengths: &[usize], large| UploadSizeClass::of(&block(lengths), large).map(|c| c.bytes);
        assert_eq!(class(&[4], false), Some(256));
        assert_eq!(class(&[208], false), Some(256));
        assert_eq!(class(&[209], false), Some(1024));
        assert_eq!(class(&[4032], false), Some(4080));
        assert_eq!(class(&[4048], false), None);
        assert_eq!(class(&[4048], true), Some(32_752));
        assert_eq!(class(&[40_000], true), None);
    }

    #[test]
    fn device_copies_travel_as_addresses() {
        let mut block = block(&[4]);
        block.copies.push(DeviceCopy { to: 1, from: 2, bytes: 3 });
        let mut params = Vec::new();
        UploadSizeClass::of(&block, false).unwrap().pack(&block, &mut params);
        let upload: Upload = bytemuck::pod_read_unaligned(&params[HEADER + 24..HEADER + 48]);
        assert_eq!((upload.to, upload.from, upload.size), (1, 2, 3 | FROM_DEVICE));
    }

    #[test]
    fn a_copy_of_a_hundred_gigabytes_keeps_its_size() {
        const BYTES: u64 = 100 << 30;
        let mut block = HostUpload::default();
        block.copies.push(DeviceCopy { to: 1 << 40, from: 1 << 41, bytes: BYTES + 3 });
        let mut params = Vec::new();
        UploadSizeClass::of(&block, false).unwrap().pack(&block, &mut params);
        let upload: Upload = bytemuck::pod_read_unaligned(&params[HEADER..HEADER + 24]);
        assert_eq!(upload.size & !FROM_DEVICE, BYTES + 3);
    }

    #[test]
    fn large_copies_get_the_whole_device_and_small_ones_little_of_it() {
        let props = DeviceProperties::h200();
        let blocks = |sizes: &[u64]| {
            let copies = sizes.iter().map(|&bytes| DeviceCopy { to: 0, from: 0, bytes }).collect();
            let block = HostUpload { copies, ..HostUpload::default() };
            UploadSizeClass::of(&block, false).unwrap().grid(&block, &props).blocks[0]
        };
        assert_eq!(blocks(&[]), 1);
        assert_eq!(blocks(&[64, 64]), 2);
        assert_eq!(blocks(&[1 << 20]), 64);
        assert_eq!(blocks(&[1 << 30]), props.multiprocessors * 8);
        assert_eq!(blocks(&[100 << 30, 16]), props.multiprocessors * 8);
    }
}
