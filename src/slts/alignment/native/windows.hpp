// Squared distances of short windows to every step of a series. Each target file defines
// SLTS_TARGET and includes this file. Lanes are successive steps of the series.
#pragma once

#include "lanes.hpp"
#include "window_job.hpp"

namespace slts::SLTS_TARGET {

// Columns that stay in the first-level cache while all windows are compared with them.
inline constexpr std::int64_t kColumnsBytes = 20 * 1024;

// Where the values of a channel are that windows are compared with, and how far apart. `edge`
// values at either end of a window are not compared. `starts` has -|x|^2 / 2 for each channel if
// levels are compared, else it is null.
struct Compared {
    const double* data;
    std::int64_t to_channel, to_value, edge;
    const double* starts;
};

// Means of `dilation` neighbouring steps, for all that windows around the steps of a job see. Sums
// of 1, 2, 4, ... steps are added up, so that steps outside of a sum do not round it.
inline void fill_means(const WindowJob& job) {
    const std::int64_t width = job.dilation, reach = job.windows.length / 2 * width;
    const std::int64_t n = job.step_end - job.step_begin + 2 * reach + kWindowSlack;
    const double share = 1.0 / static_cast<double>(width);
    double* sums = job.sums;
    for (std::int64_t u = 0; u < job.n_used; ++u) {
        const std::int64_t at = job.used[u] * job.stride + job.pad + job.step_begin - reach;
        const double* x = job.padded + at - (width - 1) / 2;
        double* means = job.means + at;
        for (std::int64_t i = 0; i < n; ++i) means[i] = 0.0;
        for (std::int64_t i = 0; i < n + width - 1; ++i) sums[i] = x[i];
        for (std::int64_t size = 1, first = 0;; size *= 2) {
            if (width & size) {
                for (std::int64_t i = 0; i < n; ++i) means[i] += sums[i + first];
                first += size;
            }
            if (first == width) break;
            // Reads only what is not written yet.
#pragma GCC ivdep
            for (std::int64_t i = 0; i < n + width - 2 * size; ++i) sums[i] += sums[i + size];
        }
        for (std::int64_t i = 0; i < n; ++i) means[i] *= share;
    }
}

// Copies what windows around the steps i, ..., i + N * W - 1 see, one row of lanes for each value
// of a window. Steps beyond the end of the series are infinitely far from any window.
template <int W, int N>
Compared fill_columns(const WindowJob& job, std::int64_t i) {
    using L = Lanes<double, W>;
    using Value = typename L::Value;
    const std::int64_t length = job.windows.length, size = length * N * W;
    const double share = 1.0 / static_cast<double>(length - 2 * kBendEdge);
    for (std::int64_t u = 0; u < job.n_used; ++u) {
        const double* x =
            job.padded + job.used[u] * job.stride + job.pad + i - length / 2 * job.dilation;
        double* out = job.columns + job.used[u] * size;
        for (int v = 0; v < N; ++v, x += W) {
            double* lanes = out + v * W;
            if (!job.shape_only) {
                for (std::int64_t k = 0; k < length; ++k)
                    L::store(lanes + k * N * W, L::load_unaligned(x + k * job.dilation));
                continue;
            }
            // Second differences, without the ends of the window, scaled to unit mean square.
            static_assert(kBendEdge == 1);
            Value squares = L::broadcast(0.0);
            Value before = L::load_unaligned(x), middle = L::load_unaligned(x + job.dilation);
            for (std::int64_t k = kBendEdge; k < length - kBendEdge; ++k) {
                const Value after = L::load_unaligned(x + (k + 1) * job.dilation);
                const Value bend = (before - middle) + (after - middle);
                squares = squares + bend * bend;
                L::store(lanes + k * N * W, bend);
                before = middle, middle = after;
            }
            alignas(64) double inverse[W];
            L::store(inverse, squares * share);
            for (int w = 0; w < W; ++w) inverse[w] = 1.0 / std::sqrt(inverse[w] + kWindowFlatness);
            const Value factor = L::load(inverse);
            for (std::int64_t k = kBendEdge; k < length - kBendEdge; ++k)
                L::store(lanes + k * N * W, L::load(lanes + k * N * W) * factor);
        }
        const std::int64_t edge = job.shape_only ? kBendEdge : 0;
        if (!job.small_values) {
            for (std::int64_t w = job.steps - i; w < N * W; ++w)
                out[kBendEdge * N * W + w] = INFINITY;
            continue;
        }
        double* starts = job.starts + job.used[u] * N * W;
        for (int v = 0; v < N; ++v) {
            Value squares = L::broadcast(0.0);
            for (std::int64_t k = edge; k < length - edge; ++k) {
                const Value value = L::load(out + k * N * W + v * W);
                squares = squares + value * value;
            }
            L::store(starts + v * W, squares * -0.5);
        }
        for (std::int64_t w = job.steps - i; w < N * W; ++w) starts[w] = -INFINITY;
    }
    return {job.columns, size, N * W, job.shape_only ? kBendEdge : 0,
            job.small_values ? job.starts : nullptr};
}

// Compares U successive windows, which have the same channels, with N * W steps: squared distances
// or, if `Products`, x.y - |x|^2 / 2. Two sums alternate, so that additions do not wait.
template <int W, int N, int U, bool Products>
SLTS_INLINE void window_sums(const Windows& all, std::int64_t window, const Compared& series,
                             typename Lanes<double, W>::Value (*out)[N]) {
    using L = Lanes<double, W>;
    using Value = typename L::Value;
    const std::int64_t length = all.length, begin = all.first[window];
    const std::int64_t n_channels = all.first[window + 1] - begin;
    const double* value = all.values + begin * length + series.edge;
    Value even[U][N], odd[U][N];
    // Arrays stay in registers if their loops are unrolled.
#pragma GCC unroll 8
    for (int u = 0; u < U; ++u)
#pragma GCC unroll 8
        for (int v = 0; v < N; ++v) even[u][v] = odd[u][v] = L::broadcast(0.0);
    if constexpr (Products)
        for (std::int64_t c = begin; c < begin + n_channels; ++c) {
            const double* start = series.starts + all.channels[c] * N * W;
#pragma GCC unroll 8
            for (int u = 0; u < U; ++u)
#pragma GCC unroll 8
                for (int v = 0; v < N; ++v) even[u][v] = even[u][v] + L::load(start + v * W);
        }
    const std::int64_t to_window = n_channels * length;
    const auto add = [&](Value(*sum)[N], const double* x, const double* window_value) {
#pragma GCC unroll 8
        for (int v = 0; v < N; ++v) {
            const Value step = L::load_unaligned(x + v * W);
#pragma GCC unroll 8
            for (int u = 0; u < U; ++u) {
                const Value other = L::broadcast_from(window_value + u * to_window);
                if constexpr (Products) {
                    sum[u][v] = sum[u][v] + step * other;
                } else {
                    const Value difference = step - other;
                    sum[u][v] = sum[u][v] + difference * difference;
                }
            }
        }
    };
    for (std::int64_t c = begin; c < begin + n_channels; ++c) {
        const double* x =
            series.data + all.channels[c] * series.to_channel + series.edge * series.to_value;
        std::int64_t k = series.edge;
        for (; k + 1 < length - series.edge; k += 2, value += 2, x += 2 * series.to_value) {
            add(even, x, value);
            add(odd, x + series.to_value, value + 1);
        }
        if (k < length - series.edge) add(even, x, value++);
        value += 2 * series.edge;
    }
#pragma GCC unroll 8
    for (int u = 0; u < U; ++u)
#pragma GCC unroll 8
        for (int v = 0; v < N; ++v) out[u][v] = even[u][v] + odd[u][v];
}

// Compares U windows with the steps i, ..., i + N * W - 1.
template <int W, int N, int U, bool Products>
SLTS_INLINE void compare_windows(const WindowJob& job, std::int64_t window, std::int64_t i,
                                 const Compared& series) {
    using L = Lanes<double, W>;
    const Windows& all = job.windows;
    typename L::Value sums[U][N];
    window_sums<W, N, U, Products>(all, window, series, sums);
#pragma GCC unroll 8
    for (int u = 0; u < U; ++u, ++window) {
        if (!Products && job.distances != nullptr) {
            alignas(64) double lanes[N * W];
#pragma GCC unroll 8
            for (int v = 0; v < N; ++v) L::store(lanes + v * W, sums[u][v]);
            double* out = job.distances + all.id[window] * job.steps + i;
            for (std::int64_t w = 0; w < N * W && i + w < job.steps; ++w) out[w] = lanes[w];
            continue;
        }
        const double* limits = (Products ? all.levels : all.thresholds) + window * all.n_thresholds;
        std::int32_t* counts = job.counts + all.id[window] * all.n_thresholds;
        for (std::int64_t t = 0; t < all.n_thresholds; ++t) {
            const auto limit = L::broadcast_from(limits + t);
            int near = 0;
#pragma GCC unroll 8
            for (int v = 0; v < N; ++v)
                near += Products ? L::count_at_most(limit, sums[u][v])
                                 : L::count_at_most(sums[u][v], limit);
            counts[t] += near;
        }
    }
}

// Compares all windows with the steps i, ..., i + N * W - 1.
template <int W, int N>
void compare_steps(const WindowJob& job, std::int64_t i) {
    const Windows& all = job.windows;
    const std::int64_t reach = all.length / 2 * job.dilation;
    const bool columns = job.shape_only || job.use_columns || i + N * W > job.steps;
    const Compared series =
        columns ? fill_columns<W, N>(job, i)
                : Compared{job.padded + job.pad + i - reach, job.stride, job.dilation, 0, nullptr};
    // Two windows of one channel share what is loaded of it, if there are registers for both.
    constexpr bool kPairs = W == kMostLanes;
    const auto alone = [&](std::int64_t window) {
        return all.first[window + 1] - all.first[window] == 1;
    };
    for (std::int64_t window = job.begin; window < job.end; ++window) {
        const std::int64_t next = window + 1;
        if (kPairs && next < job.end && alone(window) && alone(next) &&
            all.channels[all.first[window]] == all.channels[all.first[next]]) {
            if (series.starts != nullptr)
                compare_windows<W, N, kPairs ? 2 : 1, true>(job, window, i, series);
            else
                compare_windows<W, N, kPairs ? 2 : 1, false>(job, window, i, series);
            ++window;
        } else if (series.starts != nullptr) {
            compare_windows<W, N, 1, true>(job, window, i, series);
        } else {
            compare_windows<W, N, 1, false>(job, window, i, series);
        }
    }
}

// out[k] += the sum over s of factors[s] * x[k - (s - middle) * apart], for n numbers.
template <int W>
void add_shifted(const Shifts& shifts, const double* x, std::int64_t n, double* out) {
    using L = Lanes<double, W>;
    constexpr int kVectors = 4;
    const double* first = x + shifts.count / 2 * shifts.apart;
    std::int64_t k = 0;
    for (; k + kVectors * W <= n; k += kVectors * W) {
        typename L::Value sums[kVectors];
        for (int v = 0; v < kVectors; ++v) sums[v] = L::load_unaligned(out + k + v * W);
        for (std::int64_t s = 0; s < shifts.count; ++s) {
            const auto factor = L::broadcast_from(shifts.factors + s);
            for (int v = 0; v < kVectors; ++v)
                sums[v] = L::add_product(sums[v], factor,
                                         L::load_unaligned(first + k + v * W - s * shifts.apart));
        }
        for (int v = 0; v < kVectors; ++v) L::store_unaligned(out + k + v * W, sums[v]);
    }
    for (; k < n; ++k)
        for (std::int64_t s = 0; s < shifts.count; ++s)
            out[k] += shifts.factors[s] * first[k - s * shifts.apart];
}

template <int W>
void run_windows(WindowJob job) {
    static_assert(W <= kMostLanes);
    if (job.averaged) {
        fill_means(job);
        job.padded = job.means;
    }
    std::int64_t most = kWindowVectors;
    if (job.shape_only || job.use_columns) {
        const std::int64_t size =
            job.n_used * job.windows.length * W * std::int64_t{sizeof(double)};
        while (most > 2 && most * size > kColumnsBytes) --most;
    }
    for (std::int64_t i = job.step_begin; i < job.step_end;) {
        const std::int64_t left = (job.step_end - i + W - 1) / W, n = left < most ? left : most;
        with_constant<kWindowVectors>(n, [&]<int N>() { compare_steps<W, N>(job, i); });
        i += n * W;
    }
}

}  // namespace slts::SLTS_TARGET
