use super::*;
use crate::backend::cpu::kernels::float::testing::check_all;

#[test]
fn layer_norm_is_right() {
    let weight: Vec<f32> = (0..600).map(|i| 0.5 + i as f32 / 600.0).collect();
    let bias: Vec<f32> = (0..600).map(|i| i as f32 / 300.0 - 1.0).collect();
    check_all(
        2e-5,
        |row| layer_norm_row(row, &weight, Some(&bias), 1e-3),
        |row| {
            let n = row.len() as f64;
            let mean = row.iter().sum::<f64>() / n;
            let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
            let part = |i: usize| f64::from(weight[i]) / (variance + 1e-3).sqrt();
            row.iter().enumerate().map(|(i, v)| (v - mean) * part(i) + f64::from(bias[i])).collect()
        },
    );
}

#[test]
fn layer_norm_keeps_a_small_variance_beside_a_large_mean() {
    let mut row: Vec<f32> = (0..64).map(|i| 4096.0 + (i % 2) as f32).collect();
    layer_norm_row(&mut row, &[1.0; 64], None, 0.0);
    assert!(row.iter().enumerate().all(|(i, v)| (v.abs() - 1.0).abs() < 1e-5 && (*v > 0.0) == (i % 2 == 1)));
}

#[test]
fn rms_norm_is_right() {
    let weight: Vec<f32> = (0..600).map(|i| 0.5 + i as f32 / 600.0).collect();
    check_all(
        1e-5,
        |row| rms_norm_row(row, &weight, 1e-3),
        |row| {
            let square = row.iter().map(|v| v * v).sum::<f64>() / row.len() as f64;
            row.iter().zip(&weight).map(|(v, &w)| v * f64::from(w) / (square + 1e-3).sqrt()).collect()
        },
    );
}
