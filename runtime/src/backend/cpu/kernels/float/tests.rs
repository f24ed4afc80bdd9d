use super::*;

#[test]
fn exp_is_right() {
    for i in 0..=870_000 {
        let x = -(i as f32) * 1e-4;
        let want = f64::from(x).exp();
        assert!((f64::from(exp(x)) - want).abs() <= 2.4e-7 * want, "{x}: {} {want}", exp(x));
    }
    assert_eq!(
        (exp(0.0), exp(-0.0), exp(-88.0), exp(f32::NEG_INFINITY), exp(f32::MIN)),
        (1.0, 1.0, 0.0, 0.0, 0.0)
    );
    assert!(exp(f32::NAN).is_nan());
}
