//! Devices that are not there.

use graphable::{Device, Error, Runtime, backend::cuda};

#[test]
fn no_such_device() {
    let error = Runtime::new(Device::cuda(99)).unwrap_err();
    let Error::NoDevice { device, reason } = &error else { panic!("{error:?}") };
    match cuda::device_count() {
        Ok(0) | Err(_) => assert_eq!(device, "cuda:99"),
        Ok(_) => assert!(reason.contains("cuda:0"), "{reason}"),
    }
    assert!(!reason.is_empty());
}

#[test]
fn without_a_driver_the_error_says_what_to_do() {
    if cuda::device_count().is_ok() {
        return;
    }
    let error = Runtime::new(Device::cuda(0)).unwrap_err().to_string();
    assert!(error.contains("driver") && error.contains("choose the CPU"), "{error}");
    assert_eq!(Device::best().unwrap().to_string(), "cpu");
}

#[test]
fn names_of_devices() {
    assert_eq!("cuda:3".parse::<Device>().unwrap().to_string(), "cuda:3");
    assert_eq!("cuda".parse::<Device>().unwrap().to_string(), "cuda:0");
    for bad in ["cuda:", "cuda:x", "gpu", "cuda:-1", ""] {
        let error = bad.parse::<Device>().unwrap_err().to_string();
        assert!(error.contains("cuda:0"), "{error}");
    }
}
