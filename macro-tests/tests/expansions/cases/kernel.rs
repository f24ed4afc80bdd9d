#[kernel]
pub fn swish(gate: f32, up: f32, mut steps: u32, keep: bool) -> (f32, u32) {
    const SLOPE: f32 = 0.25;
    let mut y = sigmoid(gate) * up;
    'outer: for i in 0..4 {
        for j in (0..=i).rev() {
            if j as f32 > y {
                break 'outer;
            }
            y -= f32::consts::PI * SLOPE;
        }
        steps += 1 << i;
    }
    let sign = match steps % 7 {
        0 | 3..=5 => -1.0,
        _ => 1.0,
    };
    if !keep {
        return (f32::NAN, steps.leading_zeros());
    }
    let (low, high) = crate::bounds(y.max(ALPHA), 2);
    let y = {
        let y = y.mul_add(sign, low);
        if y > high { high } else { y.tanh() }
    };
    (y, steps)
}
