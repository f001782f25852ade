// The DTW recurrence. It MAXIMISES the total local value along a monotone path. Ties are broken in
// the order diagonal, up (i-1, j), left (i, j-1).
//
// One series is aligned with `width` landmarks at a time, one landmark per lane. The grid is swept
// in tiles of kTileRows series rows by kTileColumns landmark columns, so that each loaded landmark
// value is used for several series rows. Only the last row of a tile is kept (`frontier`).
#pragma once

#include <cstring>

#include "band.hpp"
#include "job.hpp"
#include "lanes.hpp"

namespace slts::SLTS_TARGET {

// What the sweep stores besides scores: path lengths, or 2-bit moves to walk the path back.
enum class Keep { length, moves };

// Moves of a tile's column, W bytes: bit r * W + w of the first half is set if lane w goes up from
// row r, and of the second half if it goes left.
template <int W>
SLTS_INLINE void store_moves(std::uint8_t* out, std::uint64_t ups, std::uint64_t lefts) {
    if (W == 1) ups |= lefts << kTileRows;
    std::memcpy(out, &ups, W > 1 ? W / 2 : 1);
    std::memcpy(out + W / 2, &lefts, W / 2);
}

// The byte of a bit of `half` 0 or 1, and its place in this byte.
template <int W>
struct MoveBit {
    std::uint32_t byte, shift;

    SLTS_INLINE MoveBit(std::uint32_t half, std::uint32_t row, std::uint32_t lane) {
        const std::uint32_t first = (half * kTileRows + row) * W;
        byte = first / 8 + lane / 8, shift = first % 8 + lane % 8;
    }
};

template <class T>
struct Grid {
    const T* series = nullptr;  // first row; rows are `stride` apart
    const T* series_shift = nullptr;
    const T* landmark = nullptr;  // columns x channels x width
    const T* landmark_shift = nullptr;
    std::int64_t channels = 0, stride = 0, n = 0, columns = 0;
    T* frontier = nullptr;
    typename IntOf<T>::type* lengths = nullptr;
    const T* bounds = nullptr;
    std::uint8_t* moves = nullptr;
};

// Columns that a tile visits. Columns outside it are outside the band of every lane.
struct Range {
    std::int64_t begin, end;
};

template <class T, int W, int R, bool Shifted, bool Banded, Keep K>
SLTS_INLINE void sweep_tile(const Grid<T>& g, std::int64_t row, Range range,
                            typename Lanes<T, W>::Value corner) {
    using L = Lanes<T, W>;
    using Value = typename L::Value;
    using Bits = typename L::Bits;
    constexpr int C = kTileColumns;
    const Value none = L::broadcast(T(-INFINITY)), zero = L::broadcast(T(0));
    const Bits empty = L::broadcast_bits(0), one = L::broadcast_bits(1);

    const T* a = g.series + row * g.stride;
    Value left[R];
    Bits left_length[R];
    for (int r = 0; r < R; ++r) left[r] = none, left_length[r] = empty;
    Bits corner_length = empty;
    if (K == Keep::length && range.begin > 0)
        corner_length = L::load_bits(g.lengths + (range.begin - 1) * W);

    std::uint8_t* moves = K == Keep::moves ? g.moves + (row / kTileRows) * g.columns * W : nullptr;
    for (std::int64_t j = range.begin; j < range.end; j += C) {
        const T* b = g.landmark + j * g.channels * W;
        const T* b_next = b + g.channels * W;
        Value local[R][C];
        for (int r = 0; r < R; ++r)
            for (int c = 0; c < C; ++c)
                local[r][c] = Shifted ? L::load(g.landmark_shift + (j + c) * W) +
                                            L::broadcast(g.series_shift[row + r])
                                      : zero;
        for (std::int64_t k = 0; k < g.channels; ++k) {
            const Value b0 = L::load(b + k * W), b1 = L::load(b_next + k * W);
            for (int r = 0; r < R; ++r) {
                const Value x = L::broadcast_from(a + r * g.stride + k);
                local[r][0] = L::add_product(local[r][0], b0, x);
                local[r][1] = L::add_product(local[r][1], b1, x);
            }
        }
        for (int c = 0; c < C; ++c) {
            T* frontier = g.frontier + (j + c) * W;
            Value up = L::load(frontier), diagonal = corner;
            corner = up;
            Bits up_length = empty, diagonal_length = corner_length;
            if (K == Keep::length)
                corner_length = up_length = L::load_bits(g.lengths + (j + c) * W);
            std::uint64_t ups = 0, lefts = 0;
            for (int r = 0; r < R; ++r) {
                Value value = local[r][c];
                // Rounding must not make the cost of two equal rows negative.
                if (Shifted) value = L::smaller(value, zero);
                if (Banded) {
                    const T* bound = g.bounds + (row + r) * 2 * W;
                    const Value column = L::broadcast(T(j + c));
                    value = L::select(L::load(bound) <= column, value, none);
                    value = L::select(column < L::load(bound + W), value, none);
                }
                const Value other = L::larger(diagonal, up);
                const Value now = L::larger(other, left[r]) + value;
                if (K == Keep::moves) {
                    ups |= L::larger_lanes(up, diagonal) << r * W;
                    lefts |= L::larger_lanes(left[r], other) << r * W;
                } else {
                    const Bits so_far = L::select_bits(up > diagonal, up_length, diagonal_length);
                    diagonal_length = left_length[r];
                    up_length = L::select_bits(left[r] > other, left_length[r], so_far) + one;
                    left_length[r] = up_length;
                }
                diagonal = left[r];
                left[r] = up = now;
            }
            L::store(frontier, up);
            if (K == Keep::length) L::store_bits(g.lengths + (j + c) * W, up_length);
            if (K == Keep::moves) store_moves<W>(moves + (j + c) * W, ups & ~lefts, lefts);
        }
    }
}

// Sweeps the whole grid. Afterwards the frontier holds the last series row. Returns false if
// stopped.
template <class T, int W, bool Shifted, bool Banded, Keep K, class Poll>
bool sweep(const Grid<T>& g, Poll&& stop) {
    using L = Lanes<T, W>;
    const auto none = L::broadcast(T(-INFINITY));
    for (std::int64_t j = 0; j < g.columns; ++j) {
        L::store(g.frontier + j * W, none);
        if (K == Keep::length) L::store_bits(g.lengths + j * W, L::broadcast_bits(0));
    }
    std::int64_t previous_begin = 0;
    for (std::int64_t row = 0; row < g.n; row += kTileRows) {
        const std::int64_t rows = g.n - row < kTileRows ? g.n - row : kTileRows;
        Range range{0, g.columns};
        if (Banded) {
            // Bounds never decrease with the row: take the start of the first row and the stop of
            // the last.
            const T* start = g.bounds + row * 2 * W;
            const T* stop_at = g.bounds + ((row + rows - 1) * 2 + 1) * W;
            T low = start[0], high = stop_at[0];
            for (int w = 1; w < W; ++w) {
                low = start[w] < low ? start[w] : low;
                high = stop_at[w] > high ? stop_at[w] : high;
            }
            range.begin = static_cast<std::int64_t>(low) / kTileColumns * kTileColumns;
            range.end = static_cast<std::int64_t>(high);
        }
        // Left of the previous tile's range the frontier is stale and outside every band.
        auto corner = none;
        if (row == 0)
            corner = L::broadcast(T(0));
        else if (range.begin > previous_begin)
            corner = L::load(g.frontier + (range.begin - 1) * W);
        previous_begin = range.begin;
        with_constant<kTileRows>(
            rows, [&]<int R>() { sweep_tile<T, W, R, Shifted, Banded, K>(g, row, range, corner); });
        if (stop((range.end - range.begin) * rows * W * (g.channels + 4))) return false;
    }
    return true;
}

// The path of one lane while it is walked back. Series row i is aligned with columns
// [first[i], last[i]]; last[-1] is a spare entry.
struct Walk {
    std::int64_t i, j, length;
    std::int32_t *first, *last;
};

// Walks K lanes back from their ends in turns, so that the walks hide each other's latency. The
// direction of a path is hard to predict: nothing branches on it. The recurrence never moves off
// the grid: there is nothing but -inf.
template <int W, int K>
SLTS_INLINE void walk_back(std::uint8_t* moves, std::int64_t columns, int lane, Walk* walks) {
    std::int64_t i[K], j[K], length[K];
    std::int32_t *first[K], *last[K];
    for (int w = 0; w < K; ++w) {
        i[w] = walks[w].i, j[w] = walks[w].j, length[w] = 1;
        first[w] = walks[w].first, last[w] = walks[w].last;
        last[w][i[w]] = static_cast<std::int32_t>(j[w]);
        // Both up and left: a walk that is finished stays at (0, 0).
        for (std::uint32_t half = 0; half < 2; ++half) {
            const MoveBit<W> bit(half, 0, static_cast<std::uint32_t>(lane + w));
            moves[bit.byte] |= static_cast<std::uint8_t>(1u << bit.shift);
        }
    }
    for (std::int64_t going = 1; going != 0;) {
        going = 0;
        for (int w = 0; w < K; ++w) {
            const std::uint8_t* column = moves + ((i[w] >> kTileShift) * columns + j[w]) * W;
            const auto row = static_cast<std::uint32_t>(i[w] & (kTileRows - 1));
            const MoveBit<W> up(0, row, static_cast<std::uint32_t>(lane + w));
            const MoveBit<W> left(1, row, static_cast<std::uint32_t>(lane + w));
            const std::int64_t to_j = ~(column[up.byte] >> up.shift) & 1;
            const std::int64_t to_i = ~(column[left.byte] >> left.shift) & 1;
            // A left move overwrites this entry, so the last write is the first column.
            first[w][i[w]] = static_cast<std::int32_t>(j[w]);
            j[w] -= to_j;
            // After a left move this is not the last column of row i - 1, but a later write is.
            last[w][i[w] - 1] = static_cast<std::int32_t>(j[w]);
            i[w] -= to_i;
            length[w] += to_i | to_j;
            going |= i[w] | j[w];
        }
    }
    for (int w = 0; w < K; ++w) first[w][0] = 0, walks[w].length = length[w];
}

}  // namespace slts::SLTS_TARGET
