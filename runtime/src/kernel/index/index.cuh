// Views of kernels written in Rust: `lang.rs` beside this file says the same for the CPU.

namespace views {

// The notes of the elements of a thread: nothing is reported until all of them are computed, so that their reads overlap.
struct Cx {
    u32 index = 0, bound = 0;
    bool failed = false;
    DEVICE void note(u32 i, u32 b) {
        index = failed ? index : i;
        bound = failed ? bound : b;
        failed = true;
    }
};

// A tensor as the host describes it, outermost dimension first.
template <int N> struct Shape {
    u64 size[N];
    u64 stride[N];  // in elements
    u64 real[N];    // u32*: how many places are real; 0: all
};

// The size without padding. `PADDED` is set if anything of the launch is padded.
template <bool PADDED> DEVICE u32 real_size(u64 size, u64 real) {
    if (!PADDED || !real) return (u32)size;
    const u32 count = *(const u32*)real;
    return count < (u32)size ? count : (u32)size;
}

// `I` holds the offset of every element.
template <typename E, int N, typename I> struct View {
    const E* from;
    u32 size[N];
    I stride[N];
};

template <typename E, typename I, bool PADDED, int N> DEVICE View<E, N, I> view(u64 addr, const Shape<N>& shape) {
    View<E, N, I> view;
    view.from = (const E*)addr;
#pragma unroll
    for (int k = 0; k < N; ++k) {
        view.size[k] = real_size<PADDED>(shape.size[k], shape.real[k]);
        view.stride[k] = (I)shape.stride[k];
    }
    return view;
}

template <typename E, int N, typename I> DEVICE i32 dim(const View<E, N, I>& x, u32 axis) { return (i32)x.size[axis]; }

template <typename E, int N, typename I, typename T, class... P>
DEVICE T at_or(const View<E, N, I>& x, T other, P... place) {
    const u32 index[N] = {place...};
    I offset = 0;
    bool within = true;
#pragma unroll
    for (int k = 0; k < N; ++k) {
        within = within && index[k] < x.size[k];
        offset += (I)index[k] * x.stride[k];
    }
    T value = other;
    if (within) value = lang::read(x.from[offset]);
    return value;
}

template <typename E, int N, typename I, class... P> DEVICE auto at(Cx& cx, const View<E, N, I>& x, P... place) {
    using T = decltype(lang::read(x.from[0]));
    const u32 index[N] = {place...};
    bool within = true;
#pragma unroll
    for (int k = 0; k < N; ++k) {
        // The outermost one counts.
        if (within && index[k] >= x.size[k]) {
            cx.note(index[k], x.size[k]);
            within = false;
        }
    }
    return at_or(x, T(), place...);
}

// One more than the number of the element at an index, which is to be written; 0 out of range, which is noted.
template <typename E, int N, typename I, class... P> DEVICE u32 place(Cx& cx, const View<E, N, I>& x, P... place) {
    const u32 index[N] = {place...};
    I offset = 0;
    bool within = true;
#pragma unroll
    for (int k = 0; k < N; ++k) {
        if (within && index[k] >= x.size[k]) {
            cx.note(index[k], x.size[k]);
            within = false;
        }
        offset += (I)index[k] * x.stride[k];
    }
    // The launch checks that the state has fewer elements.
    return within ? (u32)offset + 1u : 0u;
}

// The results: `multiplier` and `shift` divide by a size where numbers have 31 bits.
template <int R> struct Out {
    u64 size[R];
    u64 multiplier[R];  // 0: the size is 1
    u64 shift[R];
    u64 real[R];
};

// The index of the element with the row-major number `n`.
template <int R> DEVICE void split(const Out<R>& out, u32 n, u32* at) {
#pragma unroll
    for (int k = R - 1; k > 0; --k) {
        const u32 m = (u32)out.multiplier[k], q = m ? __umulhi(n, m) >> (u32)out.shift[k] : n;
        at[k] = n - q * (u32)out.size[k];
        n = q;
    }
    at[0] = n;
}

template <int R> DEVICE void split(const Out<R>& out, u64 n, u32* at) {
#pragma unroll
    for (int k = R - 1; k > 0; --k) {
        const u64 q = n / out.size[k];
        at[k] = (u32)(n - q * out.size[k]);
        n = q;
    }
    at[0] = (u32)n;
}

// Returns whether an element is not padding.
template <bool PADDED, int R> DEVICE bool is_real(const Out<R>& out, const u32* at) {
    bool real = true;
    if (PADDED) {
#pragma unroll
        for (int k = 0; k < R; ++k) real = real && at[k] < real_size<PADDED>(out.size[k], out.real[k]);
    }
    return real;
}

// The row-major number of an element among those that are not padding.
template <bool PADDED, int R> DEVICE u64 unpadded(const Out<R>& out, const u32* at) {
    u64 n = at[0];
#pragma unroll
    for (int k = 1; k < R; ++k) n = n * real_size<PADDED>(out.size[k], out.real[k]) + at[k];
    return n;
}

}  // namespace views
