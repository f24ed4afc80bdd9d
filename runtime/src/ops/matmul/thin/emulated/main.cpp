// Computes products and values of weights in blocks by the text of the kernels, which is in `text.hpp`. Each case is a line with its name and
// sizes and the bytes of its operands on standard input, and the bytes of its f32 on standard output.
#include "block.hpp"
#include "text.hpp"

struct Case {
    u32 m, k;
    std::vector<u8> tiles, activations;
};

// Of 48 columns, 16 at a time.
const u32 TILES = 6;
template <class F, typename E, u32 ROWS> std::vector<f32> product(const Case& of) {
    // Of one row, weights of two passes are on their way: no warp has more units of a pass in the tests.
    constexpr u32 SLICES = sizeof(E) == 4 ? thin::SLICES + 1 : thin::SLICES;
    constexpr u32 PASSES = ROWS == 1 ? 2 : 0, DEPTH = ROWS > 1 ? 1 : F::UNIT == 256 ? 2 : 6, AT_ONCE = PASSES > 0 ? PASSES : 1;
    using Product = thin::BlockProduct<E, F, ROWS, SLICES, DEPTH, PASSES, false, F::UNIT == 256>;
    static typename Product::Parts parts[TILES / 2];
    // Memory of a block is not zero when the block begins.
    if constexpr (Product::OF_LANES) memset(Product::zeros(), 0xff, F::UNIT * sizeof(E));
    block.run(SLICES * WARP, [&] {
        Product product(of.k);
        auto aim = [&](u32 tile) {
            for (u32 g = 0; g < 2; ++g) product.set_tile(g, of.tiles.data(), tile + g, true);
        };
        for (u32 pass = 0; pass < AT_ONCE; ++pass) {
            aim(2 * pass);
            product.begin(pass);
        }
        for (u32 tile = 0; tile < TILES; tile += 2) {
            product.run((const E*)of.activations.data(), of.k, of.m, tile / 2 % AT_ONCE, [&] {
                const u32 later = tile + 2 * AT_ONCE;
                if (later < TILES) aim(later);
                return later < TILES;
            });
            product.share(parts[tile / 2]);
        }
    });
    std::vector<f32> y;
    for (u32 row = 0; row < of.m; ++row) {
        for (u32 column = 0; column < TILES * blocks::TILE; ++column) {
            y.push_back(Product::sum(parts[column / Product::WIDTH], row, column % Product::WIDTH));
        }
    }
    return y;
}

template <class F> std::vector<f32> values(const Case& of) {
    const u32 units = (of.k + F::UNIT - 1) / F::UNIT;
    std::vector<f32> y(TILES * blocks::TILE * of.k);
    for (u32 i = 0; i < TILES * blocks::TILE * units * blocks::LANES; ++i) {
        const u32 lane = i % blocks::LANES, unit = i / blocks::LANES % units, row = i / blocks::LANES / units;
        const u8* const tile = of.tiles.data() + (row / blocks::TILE * units + unit) * (blocks::TILE * F::BYTES);
        typename F::Held held;
        F::load(held, typename F::At(tile, row % blocks::TILE, lane), 0);
        as_f32::write<F>(held, lane, &y[row * of.k + unit * F::UNIT], of.k - unit * F::UNIT);
    }
    return y;
}

// Fewer rows than those of whole tiles, and some behind them, which stay as they were.
#define EXPAND(T)                                                                                                                        \
    template <class F> std::vector<f32> expanded_##T(const Case& of) {                                                                   \
        const u32 units = (of.k + F::UNIT - 1) / F::UNIT, spans = (of.k + as_##T::SPAN - 1) / as_##T::SPAN;                              \
        std::vector<Raw<16>> y((of.m + 1) * of.k * sizeof(T) / 16);                                                                      \
        const as_##T::ExpandParams p = {u64(of.tiles.data()), u64(y.data()), of.m, of.k, units, spans, (of.m + 7) / 8};                  \
        blockDim.x = 256, gridDim.x = 2;                                                                                                 \
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) block.run(blockDim.x, [&] { as_##T::expand<F>(p); });                 \
        const T* const from = (const T*)y.data();                                                                                        \
        std::vector<f32> values;                                                                                                         \
        for (u32 i = 0; i < (of.m + 1) * of.k; ++i) values.push_back(to_f32(from[i]));                                                   \
        return values;                                                                                                                   \
    }
EXPAND(f32)
EXPAND(f16)
EXPAND(bf16)

typedef std::vector<f32> (*Compute)(const Case&);
template <class F> void add(std::map<std::string, Compute>& known, const std::string& format) {
    known[format + " values 0"] = values<F>;
    known[format + " expanded_f32 0"] = expanded_f32<F>;
    known[format + " expanded_f16 0"] = expanded_f16<F>;
    known[format + " expanded_bf16 0"] = expanded_bf16<F>;
    known[format + " f32 1"] = product<F, f32, 1>;
    known[format + " f32 4"] = product<F, f32, 4>;
    known[format + " f16 1"] = product<F, f16, 1>;
    known[format + " f16 16"] = product<F, f16, 16>;
    known[format + " bf16 1"] = product<F, bf16, 1>;
    known[format + " bf16 8"] = product<F, bf16, 8>;
}

int main() {
    std::map<std::string, Compute> known;
#define FORMAT(F) add<blocks::F>(known, #F);
    FORMAT(Q4_0) FORMAT(Q4_1) FORMAT(Q5_0) FORMAT(Q5_1) FORMAT(Q8_0) FORMAT(IQ4_NL) FORMAT(F8_E4M3) FORMAT(INT4)
    FORMAT(Q2_K) FORMAT(Q3_K) FORMAT(Q4_K) FORMAT(Q5_K) FORMAT(Q6_K)
    char format[16], type[16];
    u32 rows, m, k, tiles, activations;
    while (scanf("%15s %15s %u %u %u %u %u", format, type, &rows, &m, &k, &tiles, &activations) == 7) {
        getchar();
        Case of = {m, k, std::vector<u8>(tiles), std::vector<u8>(activations)};
        const auto compute = known.find(std::string(format) + " " + type + " " + std::to_string(rows));
        const bool is_read = fread(of.tiles.data(), 1, tiles, stdin) == tiles && fread(of.activations.data(), 1, activations, stdin) == activations;
        if (compute == known.end() || !is_read) return 1;
        const std::vector<f32> y = compute->second(of);
        fwrite(y.data(), sizeof(f32), y.size(), stdout);
    }
    fprintf(stderr, "%u", emulated::rounded);
}
