//! Delegation to another backend, for wrappers.

/// Delegates methods of [`Backend`](super::Backend) and its parts to another backend: in the `impl` of such a
/// trait, `delegate!(inner: alloc, commit);` generates these methods, which call those of the backend in the
/// box `self.inner`.
///
/// A wrapper names each method that it delegates, so a missing one does not compile, but for `host_write_lent`: by default it calls the
/// wrapper's `host_write`, which counts or refuses each piece.
#[macro_export]
#[doc(hidden)]
macro_rules! __delegate {
    ($inner:ident: $($method:ident),+ $(,)?) => {
        $($crate::__delegate! { @ $inner $method })+
    };
    (@ $inner:ident launch) => {
        fn launch(&mut self, launch: &$crate::backend::Launch) -> $crate::Result<()> {
            $crate::backend::Stream::launch(&mut *self.$inner, launch)
        }
    };
    (@ $inner:ident supports) => {
        fn supports(&mut self, op: &$crate::backend::Op) -> $crate::Result<bool> {
            $crate::backend::Stream::supports(&mut *self.$inner, op)
        }
    };
    (@ $inner:ident workspace) => {
        fn workspace(&mut self, op: &$crate::backend::Op, inputs: &[$crate::backend::View], outputs: &[$crate::backend::View], measure: bool) -> $crate::Result<u64> {
            $crate::backend::Stream::workspace(&mut *self.$inner, op, inputs, outputs, measure)
        }
    };
    (@ $inner:ident host_write) => {
        fn host_write(&mut self, block: $crate::backend::HostUpload) -> $crate::Result<()> {
            $crate::backend::Stream::host_write(&mut *self.$inner, block)
        }
    };
    (@ $inner:ident read) => {
        fn read(&mut self, addr: u64, bytes: u64) -> $crate::Result<::std::boxed::Box<dyn $crate::backend::PendingBytes>> {
            $crate::backend::Stream::read(&mut *self.$inner, addr, bytes)
        }
    };
    (@ $inner:ident write_from) => {
        fn write_from(&mut self, copy: $crate::backend::HostCopy) -> $crate::Result<()> {
            $crate::backend::Stream::write_from(&mut *self.$inner, copy)
        }
    };
    (@ $inner:ident read_into) => {
        fn read_into(&mut self, addr: u64, bytes: u64, to: &mut dyn $crate::backend::HostMemory) -> $crate::Result<()> {
            $crate::backend::Stream::read_into(&mut *self.$inner, addr, bytes, to)
        }
    };
    (@ $inner:ident mark) => {
        fn mark(&mut self) -> $crate::Result<::std::sync::Arc<dyn $crate::backend::Mark>> {
            $crate::backend::Stream::mark(&mut *self.$inner)
        }
    };
    (@ $inner:ident poison) => {
        fn poison(&mut self, addr: u64, bytes: u64) -> $crate::Result<()> {
            $crate::backend::Stream::poison(&mut *self.$inner, addr, bytes)
        }
    };
    (@ $inner:ident wants_poison) => {
        fn wants_poison(&self) -> bool {
            $crate::backend::Stream::wants_poison(&*self.$inner)
        }
    };
    (@ $inner:ident synchronize) => {
        fn synchronize(&mut self) -> $crate::Result<()> {
            $crate::backend::Stream::synchronize(&mut *self.$inner)
        }
    };
    (@ $inner:ident reserve) => {
        fn reserve(&mut self, at_least: u64) -> $crate::Result<$crate::backend::Arena> {
            $crate::backend::Arenas::reserve(&mut *self.$inner, at_least)
        }
    };
    (@ $inner:ident commit) => {
        fn commit(&mut self, arena: &$crate::backend::Arena, bytes: u64) -> $crate::Result<()> {
            $crate::backend::Arenas::commit(&mut *self.$inner, arena, bytes)
        }
    };
    (@ $inner:ident guard_page) => {
        fn guard_page(&self) -> u64 {
            $crate::backend::Arenas::guard_page(&*self.$inner)
        }
    };
    (@ $inner:ident commit_block) => {
        fn commit_block(&mut self, arena: &$crate::backend::Arena, addr: u64, bytes: u64) -> $crate::Result<()> {
            $crate::backend::Arenas::commit_block(&mut *self.$inner, arena, addr, bytes)
        }
    };
    (@ $inner:ident uncommit) => {
        fn uncommit(&mut self, arena: &$crate::backend::Arena, bytes: u64) -> $crate::Result<u64> {
            $crate::backend::Arenas::uncommit(&mut *self.$inner, arena, bytes)
        }
    };
    (@ $inner:ident alloc) => {
        fn alloc(&mut self, bytes: u64) -> $crate::Result<$crate::backend::SharedMemory> {
            $crate::backend::Arenas::alloc(&mut *self.$inner, bytes)
        }
    };
    (@ $inner:ident host_memory) => {
        fn host_memory(&mut self, bytes: usize) -> $crate::Result<::std::boxed::Box<dyn $crate::backend::HostMemory>> {
            $crate::backend::Arenas::host_memory(&mut *self.$inner, bytes)
        }
    };
    (@ $inner:ident map_file) => {
        fn map_file(
            &mut self,
            file: &::std::sync::Arc<$crate::load::MappedFile>,
            range: ::std::ops::Range<usize>,
        ) -> $crate::Result<::std::option::Option<$crate::backend::SharedMemory>> {
            $crate::backend::Arenas::map_file(&mut *self.$inner, file, range)
        }
    };
    (@ $inner:ident blocks_in_tiles) => {
        fn blocks_in_tiles(&self) -> bool {
            $crate::backend::Arenas::blocks_in_tiles(&*self.$inner)
        }
    };
    (@ $inner:ident host_log) => {
        fn host_log(&mut self, words: usize) -> $crate::Result<::std::sync::Arc<dyn $crate::backend::HostLog>> {
            $crate::backend::Arenas::host_log(&mut *self.$inner, words)
        }
    };
    (@ $inner:ident keep) => {
        fn keep(
            &mut self,
            owner: ::std::boxed::Box<dyn ::std::any::Any + ::std::marker::Send + ::std::marker::Sync>,
        ) -> $crate::backend::SharedMemory {
            $crate::backend::Arenas::keep(&mut *self.$inner, owner)
        }
    };
    (@ $inner:ident release) => {
        fn release(&mut self) -> $crate::Result<()> {
            $crate::backend::Arenas::release(&mut *self.$inner)
        }
    };
    (@ $inner:ident begin_capture) => {
        fn begin_capture(&mut self, host: ::std::option::Option<&$crate::backend::HostUpload>) -> $crate::Result<()> {
            $crate::backend::Graphs::begin_capture(&mut *self.$inner, host)
        }
    };
    (@ $inner:ident fork) => {
        fn fork(&mut self) -> $crate::Result<()> {
            $crate::backend::Graphs::fork(&mut *self.$inner)
        }
    };
    (@ $inner:ident branch) => {
        fn branch(&mut self, index: usize) -> $crate::Result<()> {
            $crate::backend::Graphs::branch(&mut *self.$inner, index)
        }
    };
    (@ $inner:ident join) => {
        fn join(&mut self) -> $crate::Result<()> {
            $crate::backend::Graphs::join(&mut *self.$inner)
        }
    };
    (@ $inner:ident supports_conditionals) => {
        fn supports_conditionals(&self) -> $crate::Result<()> {
            $crate::backend::Graphs::supports_conditionals(&*self.$inner)
        }
    };
    (@ $inner:ident begin_conditional) => {
        fn begin_conditional(&mut self, node: &$crate::backend::Conditional) -> $crate::Result<()> {
            $crate::backend::Graphs::begin_conditional(&mut *self.$inner, node)
        }
    };
    (@ $inner:ident begin_body) => {
        fn begin_body(&mut self, index: usize) -> $crate::Result<()> {
            $crate::backend::Graphs::begin_body(&mut *self.$inner, index)
        }
    };
    (@ $inner:ident end_conditional) => {
        fn end_conditional(&mut self) -> $crate::Result<()> {
            $crate::backend::Graphs::end_conditional(&mut *self.$inner)
        }
    };
    (@ $inner:ident end_capture) => {
        fn end_capture(&mut self, retain: ::std::vec::Vec<$crate::backend::SharedMemory>) -> $crate::Result<::std::option::Option<::std::sync::Arc<dyn $crate::backend::GraphExec>>> {
            $crate::backend::Graphs::end_capture(&mut *self.$inner, retain)
        }
    };
    (@ $inner:ident end_capture_shared) => {
        fn end_capture_shared(&mut self, retain: ::std::vec::Vec<$crate::backend::SharedMemory>) -> $crate::Result<::std::option::Option<::std::sync::Arc<dyn $crate::backend::CapturedGraph>>> {
            $crate::backend::Graphs::end_capture_shared(&mut *self.$inner, retain)
        }
    };
    (@ $inner:ident abort_capture) => {
        fn abort_capture(&mut self) {
            $crate::backend::Graphs::abort_capture(&mut *self.$inner)
        }
    };
    (@ $inner:ident capture_was_invalidated) => {
        fn capture_was_invalidated(&self) -> bool {
            $crate::backend::Graphs::capture_was_invalidated(&*self.$inner)
        }
    };
    (@ $inner:ident instantiate) => {
        fn instantiate(&mut self, recording: &::std::sync::Arc<dyn $crate::backend::CapturedGraph>) -> $crate::Result<::std::sync::Arc<dyn $crate::backend::GraphExec>> {
            $crate::backend::Graphs::instantiate(&mut *self.$inner, recording)
        }
    };
    (@ $inner:ident update) => {
        fn update(&mut self, exec: &::std::sync::Arc<dyn $crate::backend::GraphExec>, recording: &::std::sync::Arc<dyn $crate::backend::CapturedGraph>) -> $crate::Result<$crate::backend::Update> {
            $crate::backend::Graphs::update(&mut *self.$inner, exec, recording)
        }
    };
    (@ $inner:ident replay) => {
        fn replay(&mut self, exec: &::std::sync::Arc<dyn $crate::backend::GraphExec>, block: ::std::option::Option<$crate::backend::HostUpload>) -> $crate::Result<()> {
            $crate::backend::Graphs::replay(&mut *self.$inner, exec, block)
        }
    };
    (@ $inner:ident name) => {
        fn name(&self) -> ::std::string::String {
            $crate::backend::Diagnostics::name(&*self.$inner)
        }
    };
    (@ $inner:ident device_memory) => {
        fn device_memory(&self) -> $crate::Result<::std::option::Option<(u64, u64)>> {
            $crate::backend::Diagnostics::device_memory(&*self.$inner)
        }
    };
    (@ $inner:ident eager_graphs) => {
        fn eager_graphs(&self) -> (usize, u64) {
            $crate::backend::Diagnostics::eager_graphs(&*self.$inner)
        }
    };
    (@ $inner:ident staging_waits) => {
        fn staging_waits(&self) -> u64 {
            $crate::backend::Diagnostics::staging_waits(&*self.$inner)
        }
    };
    (@ $inner:ident caches) => {
        fn caches(&self) -> $crate::CacheStats {
            $crate::backend::Diagnostics::caches(&*self.$inner)
        }
    };
    (@ $inner:ident clear_caches) => {
        fn clear_caches(&mut self) -> $crate::Result<()> {
            $crate::backend::Diagnostics::clear_caches(&mut *self.$inner)
        }
    };
    (@ $inner:ident clear_disk_cache) => {
        fn clear_disk_cache(&mut self) -> $crate::Result<u64> {
            $crate::backend::Diagnostics::clear_disk_cache(&mut *self.$inner)
        }
    };
    (@ $inner:ident keep_topology) => {
        fn keep_topology(&mut self, on: bool) {
            $crate::backend::Diagnostics::keep_topology(&mut *self.$inner, on)
        }
    };
    (@ $inner:ident as_any) => {
        fn as_any(&self) -> &dyn ::std::any::Any {
            $crate::backend::Backend::as_any(&*self.$inner)
        }
    };
}
