"""A recording of three seconds: noise, and sounds of a voice, which are pulses through resonances.

It needs only additions and products of f64, so `listen.rs` makes the same samples.
"""

# Each resonance follows 2 r cos(w) and r^2.
A = [(1.895914, 0.976713), (1.787689, 0.965274), (1.123231, 0.953969)]
I = [(1.962876, 0.976713), (1.333821, 0.965274), (0.817821, 0.953969)]


def samples():
    """48000 samples of 16 bits."""
    noise, phase, past, out = 1, 0.0, [0.0] * 6, []
    for t in range(48000):
        noise = (noise * 1103515245 + 12345) % 2147483648
        hiss = noise / 1073741824.0 - 1.0
        voiced = 6000 <= t < 22000 or 30000 <= t < 42000
        phase += (110.0 + (t % 8000) * 0.005) / 16000.0
        pulse = 0.0
        if phase >= 1.0:
            phase -= 1.0
            pulse = 1.0
        value = pulse + 0.02 * hiss if voiced else 0.0
        for k, (a, b) in enumerate(A if t < 14000 or t >= 36000 else I):
            now = value + a * past[2 * k] - b * past[2 * k + 1]
            past[2 * k + 1] = past[2 * k]
            past[2 * k] = now
            value = now * 0.2
        value = value * 4.0 + (0.103 if 24000 <= t < 28000 else 0.003) * hiss
        out.append(int(max(-1.0, min(1.0, value * 0.5)) * 32767.0))
    return out
