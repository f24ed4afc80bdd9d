//! The world outside is met once, when recording.

use graphable::prelude::*;

use std::{fs, fs::File, net::TcpStream};

#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let text = fs::read_to_string("scale").unwrap();
    let file = File::create("log").unwrap();
    let socket = TcpStream::connect("localhost:80").unwrap();
    drop((file, socket));
    ops::scale(x, text.len() as f32 * n as f32)
}

fn main() {}
