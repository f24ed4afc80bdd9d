//! Host arrays in f64, without strides or cleverness.

/// A row-major array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Array {
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Vec<f64>,
}

impl Array {
    /// The array whose element at each index is what `f` says.
    pub(crate) fn from_fn(shape: &[usize], mut f: impl FnMut(&[usize]) -> f64) -> Self {
        let count: usize = shape.iter().product();
        let mut index = vec![0; shape.len()];
        let mut data = Vec::with_capacity(count);
        for _ in 0..count {
            data.push(f(&index));
            for axis in (0..shape.len()).rev() {
                index[axis] += 1;
                if index[axis] < shape[axis] {
                    break;
                }
                index[axis] = 0;
            }
        }
        Self { shape: shape.to_vec(), data }
    }

    /// The element at `index`, which may have more dimensions (the leading ones are ignored);
    /// dimensions of size 1 repeat.
    pub(crate) fn at(&self, index: &[usize]) -> f64 {
        let index = &index[index.len() - self.shape.len()..];
        let mut place = 0;
        for (&i, &n) in index.iter().zip(&self.shape) {
            place = place * n + if n == 1 { 0 } else { i };
        }
        self.data[place]
    }

    /// The elements of the last dimension at `index`, which lacks it; dimensions of size 1 repeat.
    pub(crate) fn row(&self, index: &[usize]) -> &[f64] {
        let (&width, shape) = self.shape.split_last().expect("a row has a dimension");
        let row = index.iter().zip(shape).fold(0, |row, (&i, &n)| row * n + if n == 1 { 0 } else { i });
        &self.data[row * width..][..width]
    }

    /// The elements along `axis` through `index`, which lacks that axis.
    pub(crate) fn line(&self, axis: usize, index: &[usize]) -> Vec<f64> {
        (0..self.shape[axis])
            .map(|i| {
                let mut full = index.to_vec();
                full.insert(axis, i);
                self.at(&full)
            })
            .collect()
    }

    /// The array with `axis` replaced by what `f` makes of each line.
    pub(crate) fn reduce(&self, axis: usize, f: impl Fn(&[f64]) -> f64) -> Self {
        let mut shape = self.shape.clone();
        shape.remove(axis);
        Self::from_fn(&shape, |index| f(&self.line(axis, index)))
    }

    /// The array whose lines along `axis` are what `f` makes of each.
    pub(crate) fn map_lines(&self, axis: usize, f: impl Fn(&[f64]) -> Vec<f64>) -> Self {
        Self::from_fn(&self.shape, |index| {
            let mut rest = index.to_vec();
            let i = rest.remove(axis);
            f(&self.line(axis, &rest))[i]
        })
    }

    /// Element by element.
    pub(crate) fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        Self { shape: self.shape.clone(), data: self.data.iter().map(|&v| f(v)).collect() }
    }

    /// Same elements, other shape.
    pub(crate) fn reshaped(&self, shape: &[usize]) -> Self {
        assert_eq!(self.data.len(), shape.iter().product::<usize>());
        Self { shape: shape.to_vec(), data: self.data.clone() }
    }
}

/// The shape that all broadcast to.
pub(crate) fn broadcast_shape(shapes: &[&[usize]]) -> Vec<usize> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    (0..rank)
        .map(|axis| {
            let sizes = shapes.iter().filter_map(|s| (axis + s.len()).checked_sub(rank).map(|i| s[i]));
            sizes.fold(1, |all, n| if n == 1 { all } else { n })
        })
        .collect()
}

/// The error function, by Simpson's rule.
pub(crate) fn erf(x: f64) -> f64 {
    const STEPS: usize = 2000;
    let (a, h) = (x.abs().min(6.0), x.abs().min(6.0) / STEPS as f64);
    let f = |t: f64| (-t * t).exp();
    let inner: f64 = (1..STEPS).map(|i| f(i as f64 * h) * if i % 2 == 1 { 4.0 } else { 2.0 }).sum();
    x.signum() * (f(0.0) + inner + f(a)) * h / 3.0 * 2.0 / std::f64::consts::PI.sqrt()
}

/// The product of the last two dimensions, with the ones in front broadcast.
pub(crate) fn matmul(a: &Array, b: &Array) -> Array {
    let (ra, rb) = (a.shape.len(), b.shape.len());
    let (m, k, n) = (a.shape[ra - 2], a.shape[ra - 1], b.shape[rb - 1]);
    let mut shape = broadcast_shape(&[&a.shape[..ra - 2], &b.shape[..rb - 2]]);
    shape.extend([m, n]);
    Array::from_fn(&shape, |index| {
        let (batch, last) = index.split_at(index.len() - 2);
        (0..k)
            .map(|i| {
                let left: Vec<usize> = batch.iter().copied().chain([last[0], i]).collect();
                let right: Vec<usize> = batch.iter().copied().chain([i, last[1]]).collect();
                a.at(&left) * b.at(&right)
            })
            .sum()
    })
}

/// `softmax` of one line; zeros where all are `-inf`.
pub(crate) fn softmax(line: &[f64]) -> Vec<f64> {
    let max = line.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY {
        return vec![0.0; line.len()];
    }
    let sum: f64 = line.iter().map(|v| (v - max).exp()).sum();
    line.iter().map(|v| (v - max).exp() / sum).collect()
}
