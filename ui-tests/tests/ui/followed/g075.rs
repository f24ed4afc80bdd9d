//! `fail/side_effects/threads.rs`, by its help.

use graphable::prelude::*;

use std::{sync::Mutex, thread, time::Duration};
static TOTAL: Mutex<f32> = Mutex::new(0.0);
#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let h = #[eager]
    {
        thread::sleep(Duration::from_millis(1));
        let worker = thread::spawn(|| 1.0f32);
        let total = *TOTAL.lock().unwrap();
        ops::scale(x, total + worker.join().unwrap())?
    };
    ops::scale(&h, n as f32)
}
