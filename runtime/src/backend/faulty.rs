//! A backend that fails on command, around any other: for tests of what happens then.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use super::{Arena, Backend, Executable, HostBlock, Launch, Op, PendingBytes, SharedMemory, View};
use crate::{Error, Result};

/// The calls that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultCall {
    /// [`Backend::commit`]
    Commit,
    /// [`Backend::alloc`]
    Alloc,
    /// [`Backend::launch`]
    Launch,
    /// [`Backend::host_write`]
    HostWrite,
    /// [`Backend::read`]
    Read,
    /// [`Backend::begin_capture`]
    BeginCapture,
    /// [`Backend::end_capture`]
    EndCapture,
    /// [`Backend::replay`]
    Replay,
}

impl FaultCall {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Commit,
        Self::Alloc,
        Self::Launch,
        Self::HostWrite,
        Self::Read,
        Self::BeginCapture,
        Self::EndCapture,
        Self::Replay,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Alloc => "alloc",
            Self::Launch => "launch",
            Self::HostWrite => "host_write",
            Self::Read => "read",
            Self::BeginCapture => "begin_capture",
            Self::EndCapture => "end_capture",
            Self::Replay => "replay",
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Armed {
    call: Option<FaultCall>,
    left: u64,
    lost: bool,
}

/// When to fail; shared by the test and the backend.
#[derive(Debug, Default)]
pub struct FaultPlan {
    armed: Mutex<Option<Armed>>,
    counts: [AtomicU64; 8],
    lost: AtomicBool,
}

impl FaultPlan {
    /// The `nth` call from now on (from 0) of that kind, or of any kind, fails. With `lost`, the device
    /// is lost: that call and everything after it fail with [`Error::ContextLost`].
    pub fn arm(&self, call: Option<FaultCall>, nth: u64, lost: bool) {
        *self.armed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Armed { call, left: nth, lost });
    }

    /// Nothing fails any more. Says whether the fault was still to come.
    pub fn disarm(&self) -> bool {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }

    /// How often a call was made.
    pub fn count(&self, call: FaultCall) -> u64 {
        self.counts[call as usize].load(Ordering::Relaxed)
    }

    /// For calls that cannot fail otherwise.
    fn check_lost(&self) -> Result<()> {
        match self.lost.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(Error::ContextLost { device: "faulty".into(), why: "the test said so".into() }),
        }
    }

    fn pass(&self, call: FaultCall) -> Result<()> {
        self.counts[call as usize].fetch_add(1, Ordering::Relaxed);
        self.check_lost()?;
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(fault) = armed.as_mut().filter(|a| a.call.is_none_or(|c| c == call)) else { return Ok(()) };
        if fault.left > 0 {
            fault.left -= 1;
            return Ok(());
        }
        let is_lost = fault.lost;
        *armed = None;
        if is_lost {
            self.lost.store(true, Ordering::Relaxed);
            return self.check_lost();
        }
        Err(Error::Device { device: "faulty".into(), call: call.name(), why: "the test said so".into() })
    }
}

/// Passes calls on to another backend, unless its plan says otherwise.
#[derive(Debug)]
pub struct FaultyBackend {
    inner: Box<dyn Backend>,
    plan: Arc<FaultPlan>,
}

impl FaultyBackend {
    /// Wraps `inner`.
    pub fn new(inner: Box<dyn Backend>, plan: Arc<FaultPlan>) -> Self {
        Self { inner, plan }
    }
}

impl Backend for FaultyBackend {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn reserve(&mut self, at_least: u64) -> Result<Arena> {
        self.plan.check_lost()?;
        self.inner.reserve(at_least)
    }

    fn commit(&mut self, arena: &Arena, bytes: u64) -> Result<()> {
        self.plan.pass(FaultCall::Commit)?;
        self.inner.commit(arena, bytes)
    }

    fn uncommit(&mut self, arena: &Arena, bytes: u64) -> Result<u64> {
        self.plan.check_lost()?;
        self.inner.uncommit(arena, bytes)
    }

    fn device_memory(&self) -> Result<Option<(u64, u64)>> {
        self.inner.device_memory()
    }

    fn guard_page(&self) -> u64 {
        self.inner.guard_page()
    }

    fn commit_block(&mut self, arena: &Arena, addr: u64, bytes: u64) -> Result<()> {
        self.plan.pass(FaultCall::Commit)?;
        self.inner.commit_block(arena, addr, bytes)
    }

    fn alloc(&mut self, bytes: u64) -> Result<SharedMemory> {
        self.plan.pass(FaultCall::Alloc)?;
        self.inner.alloc(bytes)
    }

    fn scratch(&mut self, op: &Op, inputs: &[View], outputs: &[View]) -> Result<u64> {
        self.plan.check_lost()?;
        self.inner.scratch(op, inputs, outputs)
    }

    fn launch(&mut self, launch: &Launch) -> Result<()> {
        self.plan.pass(FaultCall::Launch)?;
        self.inner.launch(launch)
    }

    fn host_write(&mut self, block: HostBlock) -> Result<()> {
        self.plan.pass(FaultCall::HostWrite)?;
        self.inner.host_write(block)
    }

    fn read(&mut self, addr: u64, bytes: u64) -> Result<Box<dyn PendingBytes>> {
        self.plan.pass(FaultCall::Read)?;
        self.inner.read(addr, bytes)
    }

    fn begin_capture(&mut self, host: Option<&HostBlock>) -> Result<()> {
        self.plan.pass(FaultCall::BeginCapture)?;
        self.inner.begin_capture(host)
    }

    fn end_capture(&mut self, retain: Vec<SharedMemory>) -> Result<Option<Arc<dyn Executable>>> {
        if let Err(error) = self.plan.pass(FaultCall::EndCapture) {
            self.inner.abort_capture();
            return Err(error);
        }
        self.inner.end_capture(retain)
    }

    fn abort_capture(&mut self) {
        self.inner.abort_capture();
    }

    fn capture_was_spoilt(&self) -> bool {
        self.inner.capture_was_spoilt()
    }

    fn replay(&mut self, exec: &Arc<dyn Executable>, block: Option<HostBlock>) -> Result<()> {
        self.plan.pass(FaultCall::Replay)?;
        self.inner.replay(exec, block)
    }

    fn poison(&mut self, addr: u64, bytes: u64) -> Result<()> {
        self.plan.check_lost()?;
        self.inner.poison(addr, bytes)
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        self.inner.as_any()
    }

    fn wants_poison(&self) -> bool {
        self.inner.wants_poison()
    }

    fn synchronize(&mut self) -> Result<()> {
        self.plan.check_lost()?;
        self.inner.synchronize()
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::{
        DType,
        backend::{
            Op, View,
            cpu::{CpuBackend, CpuOptions},
        },
        layout::Layout,
    };

    fn faulty() -> (FaultyBackend, Arc<FaultPlan>) {
        let plan = Arc::<FaultPlan>::default();
        let cpu = CpuBackend::new(CpuOptions { threads: Some(1), ..CpuOptions::default() }).unwrap();
        (FaultyBackend::new(Box::new(cpu), plan.clone()), plan)
    }

    /// Copies the first 8 bytes of `memory` to the next 8.
    fn copy(memory: &SharedMemory) -> Launch {
        let layout = Layout::contiguous(&[8]).unwrap();
        let view = |addr| View { addr, dtype: DType::U8, layout };
        let (from, to) = (view(memory.addr()), view(memory.addr() + 8));
        Launch { op: Op::Copy, inputs: smallvec![from], outputs: smallvec![to], scratch: 0 }
    }

    /// One of each call, until one fails; `Ok` has what was copied.
    fn all_calls(b: &mut FaultyBackend) -> Result<Vec<u8>> {
        let arena = b.reserve(4096)?;
        b.commit(&arena, 4096)?;
        let memory = b.alloc(16)?;
        b.host_write(HostBlock {
            bytes: vec![7; 8],
            writes: vec![(memory.addr(), 0, 8)],
            ..HostBlock::default()
        })?;
        b.begin_capture(None)?;
        if let Err(error) = b.launch(&copy(&memory)) {
            b.abort_capture();
            return Err(error);
        }
        let exec = b.end_capture(vec![memory.clone()])?.expect("one node");
        b.replay(&exec, None)?;
        b.read(memory.addr() + 8, 8)?.wait()
    }

    #[test]
    fn each_call_fails_once_where_it_is_told_to() {
        for call in FaultCall::ALL {
            let (mut b, plan) = faulty();
            for nth in [0, 2] {
                plan.arm(Some(call), nth, false);
                (0..nth).for_each(|_| assert_eq!(all_calls(&mut b).unwrap(), [7; 8]));
                let before = plan.count(call);
                match all_calls(&mut b) {
                    Err(Error::Device { call: name, .. }) => assert_eq!(name, call.name()),
                    other => panic!("{call:?}: {other:?}"),
                }
                assert_eq!(plan.count(call), before + 1, "a call that fails counts");
                assert!(!plan.disarm(), "it fails once");
                assert_eq!(all_calls(&mut b).unwrap(), [7; 8], "nothing is left of it, no capture either");
            }
        }
    }

    #[test]
    fn any_call_can_be_the_nth() {
        for (nth, name) in
            ["commit", "alloc", "host_write", "begin_capture", "launch", "end_capture", "replay", "read"]
                .into_iter()
                .enumerate()
        {
            let (mut b, plan) = faulty();
            plan.arm(None, nth as u64, false);
            let error = all_calls(&mut b).unwrap_err();
            assert!(matches!(error, Error::Device { call, .. } if call == name), "{error}");
        }
    }

    #[test]
    fn a_lost_device_stays_lost() {
        for call in FaultCall::ALL {
            let (mut b, plan) = faulty();
            plan.arm(Some(call), 0, true);
            assert!(matches!(all_calls(&mut b), Err(Error::ContextLost { .. })));
            assert!(!plan.disarm());
            assert!(matches!(b.reserve(4096), Err(Error::ContextLost { .. })));
            assert!(matches!(b.alloc(16), Err(Error::ContextLost { .. })));
            assert!(matches!(b.poison(0, 0), Err(Error::ContextLost { .. })));
            assert!(matches!(b.synchronize(), Err(Error::ContextLost { .. })));
        }
    }

    #[test]
    fn disarmed_plans_do_nothing() {
        let (mut b, plan) = faulty();
        plan.arm(Some(FaultCall::Read), 0, true);
        assert!(plan.disarm());
        assert_eq!(all_calls(&mut b).unwrap(), [7; 8]);
        assert_eq!(FaultCall::ALL.map(|call| plan.count(call)), [1; 8]);
    }
}
