// Squared distances of short windows to every step of a series. Each target file defines
// SLTS_TARGET and includes this file. Lanes are successive steps of the series.
#pragma once

#include "lanes.hpp"
#include "window_job.hpp"

namespace slts::SLTS_TARGET {

// Columns that stay in the first-level cache while all windows are compared with them.
inline constexpr std::int64_t kColumnsBytes = 20 * 1024;

// Means of `dilation` neighbouring steps, for all that windows around the steps of a job see. Sums
// of 1, 2, 4, ... steps are added up, so that steps outside of a sum do not round it.
template <class T, int W>
void fill_means(const WindowJob<T>& job) {
    const std::int64_t width = job.dilation, reach = job.windows.length / 2 * width;
    const std::int64_t n = (job.step_end - job.step_begin + W - 1) / W * W + 2 * reach;
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
// of a window, and -|x|^2 / 2. Values are float64 until they are rounded to T.
template <class T, int W, int N>
void fill_columns(const WindowJob<T>& job, std::int64_t i) {
    constexpr int kWide = W * sizeof(T) / sizeof(double), kRow = N * W;
    using L = Lanes<double, kWide>;
    using Out = Lanes<T, kWide>;
    using Value = typename L::Value;
    const auto rounded = [](Value value) {
        return __builtin_convertvector(value, typename Out::Value);
    };
    const std::int64_t length = job.windows.length;
    const double share = 1.0 / static_cast<double>(length - 2 * kBendEdge);
    for (std::int64_t u = 0; u < job.n_used; ++u) {
        const double* x =
            job.padded + job.used[u] * job.stride + job.pad + i - length / 2 * job.dilation;
        T* out = job.columns + job.used[u] * length * kRow;
        T* starts = job.starts + job.used[u] * kRow;
        for (int w = 0; w < kRow; w += kWide, x += kWide, out += kWide) {
            Value squares = L::broadcast(0.0);
            if (!job.shape_only) {
                for (std::int64_t k = 0; k < length; ++k) {
                    const Value value = L::load_unaligned(x + k * job.dilation);
                    squares = squares + value * value;
                    Out::store(out + k * kRow, rounded(value));
                }
            } else {
                // Second differences, without the ends of the window, scaled to unit mean square.
                static_assert(kBendEdge == 1);
                Value before = L::load_unaligned(x), middle = L::load_unaligned(x + job.dilation);
                for (std::int64_t k = kBendEdge; k < length - kBendEdge; ++k) {
                    const Value after = L::load_unaligned(x + (k + 1) * job.dilation);
                    const Value bend = (before - middle) + (after - middle);
                    squares = squares + bend * bend;
                    Out::store(out + k * kRow, rounded(bend));
                    before = middle, middle = after;
                }
                alignas(64) T inverse[kWide];
                Out::store(inverse, rounded(squares * share + kWindowFlatness));
                for (T& each : inverse) each = T(1) / std::sqrt(each);
                const auto factor = Out::load(inverse);
                const Value wide = __builtin_convertvector(factor, Value);
                squares = squares * wide * wide;
                for (std::int64_t k = kBendEdge; k < length - kBendEdge; ++k)
                    Out::store(out + k * kRow, Out::load(out + k * kRow) * factor);
            }
            Out::store(starts + w, rounded(squares * -0.5));
        }
        // Steps beyond the end of the series are infinitely far from any window.
        for (std::int64_t w = job.steps - i; w < kRow; ++w) starts[w] = -INFINITY;
    }
}

// Compares U successive windows, which have the same channels, with N * W steps: squared distances
// if T is double, x.y - |x|^2 / 2 if it is float. Two sums alternate, so that additions do not
// wait.
template <class T, int W, int N, int U>
SLTS_INLINE void window_sums(const WindowJob<T>& job, std::int64_t window,
                             typename Lanes<T, W>::Value (*out)[N]) {
    using L = Lanes<T, W>;
    using Value = typename L::Value;
    constexpr bool kProducts = sizeof(T) == sizeof(float);
    constexpr std::int64_t kRow = N * W;
    const Windows<T>& all = job.windows;
    const std::int64_t length = all.length, begin = all.first[window];
    const std::int64_t n_channels = all.first[window + 1] - begin;
    const std::int64_t to_window = n_channels * length, edge = job.shape_only ? kBendEdge : 0;
    const T* value = all.values + begin * length + edge;
    Value even[U][N], odd[U][N];
    // Arrays stay in registers if their loops are unrolled.
#pragma GCC unroll 8
    for (int u = 0; u < U; ++u)
#pragma GCC unroll 8
        for (int v = 0; v < N; ++v) even[u][v] = odd[u][v] = L::broadcast(T(0));
    if constexpr (kProducts)
        for (std::int64_t c = begin; c < begin + n_channels; ++c) {
            const T* start = job.starts + all.channels[c] * kRow;
#pragma GCC unroll 8
            for (int u = 0; u < U; ++u)
#pragma GCC unroll 8
                for (int v = 0; v < N; ++v) even[u][v] = even[u][v] + L::load(start + v * W);
        }
    const auto add = [&](Value(*sum)[N], const T* x, const T* window_value) {
#pragma GCC unroll 8
        for (int v = 0; v < N; ++v) {
            const Value step = L::load(x + v * W);
#pragma GCC unroll 8
            for (int u = 0; u < U; ++u) {
                const Value other = L::broadcast_from(window_value + u * to_window);
                if constexpr (kProducts) {
                    sum[u][v] = sum[u][v] + step * other;
                } else {
                    const Value difference = step - other;
                    sum[u][v] = sum[u][v] + difference * difference;
                }
            }
        }
    };
    for (std::int64_t c = begin; c < begin + n_channels; ++c, value += 2 * edge) {
        const T* x = job.columns + (all.channels[c] * length + edge) * kRow;
        std::int64_t k = edge;
        for (; k + 1 < length - edge; k += 2, value += 2, x += 2 * kRow) {
            add(even, x, value);
            add(odd, x + kRow, value + 1);
        }
        if (k < length - edge) add(even, x, value++);
    }
#pragma GCC unroll 8
    for (int u = 0; u < U; ++u)
#pragma GCC unroll 8
        for (int v = 0; v < N; ++v) out[u][v] = even[u][v] + odd[u][v];
}

// Compares U windows with the steps i, ..., i + N * W - 1.
template <class T, int W, int N, int U>
SLTS_INLINE void compare_windows(const WindowJob<T>& job, std::int64_t window, std::int64_t i) {
    using L = Lanes<T, W>;
    const Windows<T>& all = job.windows;
    const std::int64_t n = job.steps - i < N * W ? job.steps - i : N * W;
    typename L::Value sums[U][N];
    window_sums<T, W, N, U>(job, window, sums);
#pragma GCC unroll 8
    for (int u = 0; u < U; ++u, ++window) {
        const std::int64_t row = all.id[window], at = row * job.steps + i;
        if constexpr (sizeof(T) == sizeof(double)) {
            alignas(64) T lanes[N * W];
#pragma GCC unroll 8
            for (int v = 0; v < N; ++v) L::store(lanes + v * W, sums[u][v]);
            for (std::int64_t w = 0; w < n; ++w) job.distances[at + w] = lanes[w];
        } else {
            const T* limits = all.levels + window * all.n_thresholds;
            if (job.met != nullptr) {
                alignas(64) typename L::Int lanes[N * W];
#pragma GCC unroll 8
                for (int v = 0; v < N; ++v) {
                    typename L::Bits met = L::broadcast_bits(0);
                    for (std::int64_t t = 0; t < all.n_thresholds; ++t)
                        met -= L::broadcast_from(limits + t) <= sums[u][v];
                    L::store_bits(lanes + v * W, met);
                }
                for (std::int64_t w = 0; w < n; ++w)
                    job.met[at + w] = static_cast<std::uint8_t>(lanes[w]);
                continue;
            }
            std::int32_t* counts = job.counts + row * all.n_thresholds;
            for (std::int64_t t = 0; t < all.n_thresholds; ++t) {
                const auto limit = L::broadcast_from(limits + t);
                int near = 0;
#pragma GCC unroll 8
                for (int v = 0; v < N; ++v) near += L::count_at_most(limit, sums[u][v]);
                counts[t] += near;
            }
        }
    }
}

// Compares all windows with the steps i, ..., i + N * W - 1.
template <class T, int W, int N>
void compare_steps(const WindowJob<T>& job, std::int64_t i) {
    const Windows<T>& all = job.windows;
    fill_columns<T, W, N>(job, i);
    // Two windows of one channel share what is loaded of it, if there are registers for both.
    constexpr int kPair = W * sizeof(T) == 64 ? 2 : 1;
    const auto alone = [&](std::int64_t window) {
        return all.first[window + 1] - all.first[window] == 1;
    };
    for (std::int64_t window = job.begin; window < job.end;) {
        const std::int64_t next = window + 1;
        if (kPair == 2 && next < job.end && alone(window) && alone(next) &&
            all.channels[all.first[window]] == all.channels[all.first[next]]) {
            compare_windows<T, W, N, kPair>(job, window, i);
            window += 2;
        } else {
            compare_windows<T, W, N, 1>(job, window++, i);
        }
    }
}

// out[k] += the sum over s of factors[s] * x[k - (s - middle) * apart], for n numbers.
template <int W>
void add_shifted(const Shifts& shifts, const double* x, std::int64_t n, double* out) {
    using L = Lanes<double, W>;
    const double* first = x + shifts.count / 2 * shifts.apart;
    std::int64_t k = 0;
    const auto add = [&]<int N>() {
        for (; k + N * W <= n; k += N * W) {
            typename L::Value sums[N];
            for (int v = 0; v < N; ++v) sums[v] = L::load_unaligned(out + k + v * W);
            for (std::int64_t s = 0; s < shifts.count; ++s) {
                const auto factor = L::broadcast_from(shifts.factors + s);
                for (int v = 0; v < N; ++v)
                    sums[v] = L::add_product(
                        sums[v], factor, L::load_unaligned(first + k + v * W - s * shifts.apart));
            }
            for (int v = 0; v < N; ++v) L::store_unaligned(out + k + v * W, sums[v]);
        }
    };
    add.template operator()<4>();
    add.template operator()<1>();
    for (; k < n; ++k) {
        double sum = out[k];
        for (std::int64_t s = 0; s < shifts.count; ++s)
            sum += shifts.factors[s] * first[k - s * shifts.apart];
        out[k] = sum;
    }
}

template <class T, int W>
void run_windows(WindowJob<T> job) {
    static_assert(W <= kMostLanes);
    if (job.averaged) {
        fill_means<T, W>(job);
        job.padded = job.means;
    }
    std::int64_t most = kWindowVectors;
    const std::int64_t size = job.n_used * job.windows.length * W * std::int64_t{sizeof(T)};
    while (most > 2 && most * size > kColumnsBytes) --most;
    for (std::int64_t i = job.step_begin; i < job.step_end;) {
        const std::int64_t left = (job.step_end - i + W - 1) / W, n = left < most ? left : most;
        with_constant<kWindowVectors>(n, [&]<int N>() { compare_steps<T, W, N>(job, i); });
        i += n * W;
    }
}

}  // namespace slts::SLTS_TARGET
