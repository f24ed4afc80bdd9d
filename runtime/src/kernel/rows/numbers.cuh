// Random numbers of rows: element `i` of row `n` has number `n * size + i`, a value that belongs to the row number `n`. Rows
// are counted without padding. `cpu.rs` says the same.

namespace rows {

// The random numbers of a row. Nothing is loaded. Rounds are a loop: otherwise the compiler makes the numbers of all lanes of a
// thread side by side, which takes more registers than there are.
struct Drawn {
    lang::Generator from;
    u64 first;
    struct None {};
    template <class C> DEVICE None load(const C&, int, u32) const { return {}; }
    DEVICE Random get(const None&, u32 base, int j) const { return lang::number<1>(from, first + base + (u32)j); }
    DEVICE Random at(u32 i) const { return lang::number<1>(from, first + i); }
};

// They are made again for each use: they would take as many registers as the values of two rows.
template <class C> DEVICE Drawn hold(const C&, const Drawn& from) { return from; }

template <> struct Nothing<Random> {
    static DEVICE Random of() { return Random{0u, 0u}; }
};

}  // namespace rows
