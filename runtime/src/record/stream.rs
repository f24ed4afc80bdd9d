//! The device's stream as recordings use it: launches, pending uploads, and errors that have yet to be
//! reported.

use std::{borrow::Cow, sync::Arc};

use crate::{
    Error, Result,
    backend::{
        Backend, DeviceCopy, GraphExec, HostCopy, HostMemory, HostUpload, Launch, Op, PendingBytes,
        SharedMemory, View,
    },
    memory::COPY,
};

/// The backend, and data that is on its way there.
#[derive(Debug)]
pub(crate) struct Stream {
    backend: Box<dyn Backend>,
    /// Host bytes and copies that travel with the next replay.
    pending_upload: Option<HostUpload>,
    /// The reason why host bytes of this call were lost: reading them would yield those of an earlier call.
    lost_upload: Option<String>,
    /// The operation that was launched last. The description is used again: it is large, and most of it empty.
    description: Box<Launch>,
    /// An error that no call could report yet.
    deferred: Option<Error>,
}

impl Stream {
    pub(crate) fn new(backend: Box<dyn Backend>) -> Self {
        Self {
            backend,
            pending_upload: None,
            lost_upload: None,
            description: Box::new(Launch::of(COPY)),
            deferred: None,
        }
    }

    #[inline]
    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    #[inline]
    pub(crate) fn backend_mut(&mut self) -> &mut dyn Backend {
        &mut *self.backend
    }

    /// A step begins.
    pub(crate) fn begin_step(&mut self) {
        self.pending_upload = None;
    }

    /// A call begins.
    pub(crate) fn begin_call(&mut self) {
        self.lost_upload = None;
    }

    /// Ends a call. Unused host data is discarded, because its buffers may be freed before the next launch.
    pub(crate) fn end_call(&mut self) {
        self.pending_upload = None;
        self.lost_upload = None;
    }

    /// Keeps an error that no call can report now for the next one that can. One that waits already stays.
    pub(crate) fn defer(&mut self, error: Error) {
        self.deferred.get_or_insert(error);
    }

    /// Reports an error that waits.
    ///
    /// # Errors
    /// That error.
    #[inline]
    pub(crate) fn report_deferred(&mut self) -> Result<()> {
        match self.deferred.take() {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }

    /// The host data of a call, which travels with its first replay.
    pub(crate) fn stage_upload(&mut self, upload: Option<HostUpload>) {
        self.pending_upload = upload;
    }

    /// Adds a copy to the upload of the next replay, in one piece: the device decides how to split it.
    pub(crate) fn stage_copy(&mut self, copy: DeviceCopy) {
        self.pending_upload.get_or_insert_default().copies.push(copy);
    }

    /// Returns the upload of the next replay, with these copies added.
    pub(crate) fn upload_with(&self, copies: impl Iterator<Item = DeviceCopy>) -> Option<HostUpload> {
        let mut upload = self.pending_upload.clone();
        for copy in copies {
            upload.get_or_insert_default().copies.push(copy);
        }
        upload
    }

    /// Returns an error for a call whose host inputs were lost.
    ///
    /// # Errors
    /// Returns [`Error::Device`].
    #[inline]
    pub(crate) fn check_upload(&self) -> Result<()> {
        match &self.lost_upload {
            None => Ok(()),
            Some(reason) => Err(Error::Device {
                device: self.backend.name(),
                call: "host_write",
                reason: format!("the inputs of this call went with an earlier error of it: {reason}"),
            }),
        }
    }

    /// Sends host bytes that wait for the next replay. In a capture they wait for its first replay.
    ///
    /// # Errors
    /// Returns the errors of [`check_upload`](Self::check_upload), and of the device.
    pub(crate) fn flush(&mut self, capturing: bool) -> Result<()> {
        self.check_upload()?;
        if self.pending_upload.is_none() || capturing {
            return Ok(());
        }
        match self.pending_upload.take() {
            Some(upload) => self.write(upload),
            None => Ok(()),
        }
    }

    /// Sends these host bytes now instead of those that wait.
    ///
    /// # Errors
    /// Returns errors of the device; the call cannot continue then.
    pub(crate) fn write_instead(&mut self, upload: Option<HostUpload>) -> Result<()> {
        self.pending_upload = None;
        upload.map_or(Ok(()), |upload| self.write(upload))
    }

    fn write(&mut self, upload: HostUpload) -> Result<()> {
        let written = self.backend.host_write(upload);
        written.inspect_err(|error| self.lose_upload(error))
    }

    #[cold]
    fn lose_upload(&mut self, error: &Error) {
        self.lost_upload.get_or_insert_with(|| error.to_string());
    }

    /// Replays an executable, with the host bytes that wait.
    ///
    /// # Errors
    /// Returns errors of the device.
    #[inline]
    pub(crate) fn replay(&mut self, exec: &Arc<dyn GraphExec>) -> Result<()> {
        let upload = self.pending_upload.take();
        let waiting = upload.is_some();
        let replayed = self.backend.replay(exec, upload);
        if let (true, Err(error)) = (waiting, &replayed) {
            self.lose_upload(error);
        }
        replayed
    }

    /// Starts a capture whose replays supply the pending upload.
    pub(crate) fn begin_capture(&mut self) -> Result<()> {
        self.backend.begin_capture(self.pending_upload.as_ref())
    }

    /// Starts a capture whose replays supply this upload.
    pub(crate) fn begin_capture_with(&mut self, upload: Option<&HostUpload>) -> Result<()> {
        self.backend.begin_capture(upload)
    }

    /// A description of an operation that outlives the call.
    pub(crate) fn description(
        &mut self,
        op: Op,
        inputs: &[View],
        outputs: &[View],
        workspace: u64,
    ) -> Box<Launch> {
        self.description.describe(op, inputs, outputs, workspace);
        let description = Box::new((*self.description).clone());
        self.forget_description();
        description
    }

    /// Launches an operation, whose workspace begins at that address.
    pub(crate) fn launch(&mut self, op: Op, inputs: &[View], outputs: &[View], workspace: u64) -> Result<()> {
        self.description.describe(op, inputs, outputs, workspace);
        let launched = self.backend.launch(&self.description);
        self.forget_description();
        launched
    }

    /// What an operation owns is not kept for a description that is used again.
    fn forget_description(&mut self) {
        self.description.op = COPY;
    }

    pub(crate) fn alloc(&mut self, bytes: u64) -> Result<SharedMemory> {
        self.backend.alloc(bytes)
    }

    /// Writes bytes of the host in the order of the stream. No second copy of lent ones, which may be a large weight's, exists on the host.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub(crate) fn write_bytes(&mut self, addr: u64, bytes: Cow<'_, [u8]>) -> Result<()> {
        match bytes {
            Cow::Owned(bytes) if bytes.is_empty() => Ok(()),
            Cow::Owned(bytes) => self.backend.host_write(HostUpload::to_place(addr, bytes)),
            Cow::Borrowed(bytes) => self.backend.host_write_lent(addr, bytes),
        }
    }

    /// Writes zeros in the order of the stream, as host bytes are written; there is at least one.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub(crate) fn fill_with_zeros(&mut self, addr: u64, bytes: u64) -> Result<()> {
        // One zero of the host, which the device continues.
        let from = self.backend.host_memory(1)?.lend();
        self.backend.write_from(HostCopy { to: addr, from, offset: 0, bytes: 1, zeros: bytes - 1 })
    }

    pub(crate) fn read(&mut self, addr: u64, bytes: u64) -> Result<Box<dyn PendingBytes>> {
        self.backend.read(addr, bytes)
    }

    pub(crate) fn read_into(&mut self, addr: u64, bytes: u64, to: &mut dyn HostMemory) -> Result<()> {
        self.backend.read_into(addr, bytes, to)
    }
}
