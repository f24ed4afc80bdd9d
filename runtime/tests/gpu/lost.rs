//! A context that is lost: told with its likely cause, for every later call, and dropped in peace. In a
//! process of its own, since the context is everybody's.

use std::{env, process::Command};

use cudarc::{driver::LaunchConfig, nvrtc::Ptx};
use graphable::{Error, prelude::*};

use crate::support::{PTX, runtime, skipped};

const VARIABLE: &str = "GRAPHABLE_TEST_CRASH";

#[test]
fn an_illegal_address() {
    if skipped("an_illegal_address") {
        return;
    }
    if env::var_os(VARIABLE).is_none() {
        let this = env::current_exe().unwrap();
        let status = Command::new(this)
            .env(VARIABLE, "1")
            .args(["--exact", "lost::an_illegal_address", "--nocapture"])
            .status()
            .unwrap();
        assert!(status.success(), "{status}");
        return;
    }
    let mut rt = runtime();
    let param = Param::<f32>::new(&rt, &[4], &[1.0; 4]).unwrap();
    {
        let step = rt.step().unwrap();
        let x = step.tensor(&[4], &[1.0; 4]).unwrap();
        let stream = step.cuda_stream().unwrap();
        let kernel =
            stream.context().load_module(Ptx::from_src(PTX)).unwrap().load_function("crash").unwrap();
        let shape = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
        // SAFETY: none: the kernel writes to an address that is not mapped, which is the test.
        unsafe { stream.launch_builder(&kernel).launch(shape) }.unwrap();
        let error = step.read(&x).unwrap_err();
        assert!(matches!(error, Error::ContextLost { .. }), "{error}");
        assert!(error.to_string().contains("compute-sanitizer"), "{error}");
        let again = step.read(&x).unwrap_err();
        assert!(matches!(again, Error::ContextLost { .. }), "{again}");
        let more = ops::add(&x, &x).map(drop).and_then(|()| step.synchronize()).unwrap_err();
        assert!(matches!(more, Error::ContextLost { .. }), "{more}");
    }
    assert!(matches!(Param::<f32>::zeros(&rt, &[4]), Err(Error::ContextLost { .. })));
    drop(param);
    drop(rt);
    println!("dropped in peace");
}
