// Squared distances of short windows to every step of a series. Each target file defines
// SLTS_TARGET and includes this file. Lanes are successive steps of the series.
#pragma once

#include "lanes.hpp"
#include "window_job.hpp"

namespace slts::SLTS_TARGET {

// Most vectors of steps whose distances are computed at once, so that additions do not wait.
inline constexpr int kWindowVectors = 4;

// Distances of one window to the steps i, ..., i + N * W - 1.
template <int W, int N>
SLTS_INLINE void window_distances(const WindowJob& job, std::int64_t window, std::int64_t i,
                                  typename Lanes<double, W>::Value* out) {
    using L = Lanes<double, W>;
    const Windows& all = job.windows;
    const std::int64_t first = all.first[window], last = all.first[window + 1];
    const std::int64_t length = all.length, dilation = job.dilation;
    const double* value = all.values + first * length;
    const bool shape = all.shape_only[window] != 0;
    const std::int64_t begin = job.pad + i - length / 2 * dilation;
    for (int v = 0; v < N; ++v) out[v] = L::broadcast(shape ? all.energy[window] : 0.0);
    for (std::int64_t c = first; c < last; ++c, value += length) {
        const std::int64_t channel = all.channels[c];
        const double* x = job.padded + channel * job.stride + begin;
        if (shape) {
            typename L::Value dot[N];
            for (int v = 0; v < N; ++v) dot[v] = L::broadcast(0.0);
            for (std::int64_t k = 0; k < length; ++k, x += dilation)
                for (int v = 0; v < N; ++v)
                    dot[v] = L::add_product(dot[v], L::load_unaligned(x + v * W), value[k]);
            const std::int64_t at = channel * job.shape_stride + i - job.step_begin;
            const double *norm = job.shape_norm + at, *scale = job.shape_scale + at;
            for (int v = 0; v < N; ++v)
                out[v] = out[v] + L::load_unaligned(norm + v * W) -
                         dot[v] * L::load_unaligned(scale + v * W);
        } else {
            for (std::int64_t k = 0; k < length; ++k, x += dilation) {
                const typename L::Value own = L::broadcast(value[k]);
                for (int v = 0; v < N; ++v) {
                    const typename L::Value apart = L::load_unaligned(x + v * W) - own;
                    out[v] = out[v] + apart * apart;
                }
            }
        }
    }
}

// Compares one window with the steps from i on, and adds to the counts.
template <int W, int N>
SLTS_INLINE void compare_steps(const WindowJob& job, std::int64_t window, std::int64_t i,
                               typename Lanes<double, W>::Bits* counts) {
    using L = Lanes<double, W>;
    typename L::Value found[N];
    window_distances<W, N>(job, window, i, found);
    if (job.distances != nullptr) {
        double* out = job.distances + i;
        for (int v = 0; v < N; ++v) L::store_unaligned(out + v * W, found[v]);
        return;
    }
    const std::int64_t left = job.step_end - i, n_thresholds = job.windows.n_thresholds;
    if (left < N * W) {
        alignas(64) double lane[W];
        for (int w = 0; w < W; ++w) lane[w] = w;
        const typename L::Value far = L::broadcast(INFINITY);
        for (int v = 0; v < N; ++v) {
            const auto inside = L::load(lane) < L::broadcast(static_cast<double>(left - v * W));
            found[v] = L::select(inside, found[v], far);
        }
    }
    for (std::int64_t t = 0; t < n_thresholds; ++t) {
        const auto limit = L::broadcast(job.windows.thresholds[window * n_thresholds + t]);
        for (int v = 0; v < N; ++v) counts[t] = counts[t] + (found[v] <= limit);
    }
}

template <int W>
void run_windows(const WindowJob& job) {
    using L = Lanes<double, W>;
    const std::int64_t n = job.step_end, n_thresholds = job.windows.n_thresholds;
    for (std::int64_t window = job.begin; window < job.end; ++window) {
        typename L::Bits counts[kMostThresholds];
        for (auto& count : counts) count = L::broadcast_bits(0);
        std::int64_t i = job.step_begin;
        for (; n - i > 2 * W; i += kWindowVectors * W)
            compare_steps<W, kWindowVectors>(job, window, i, counts);
        if (n - i > W)
            compare_steps<W, 2>(job, window, i, counts);
        else if (n - i > 0)
            compare_steps<W, 1>(job, window, i, counts);
        if (job.counts == nullptr) continue;
        for (std::int64_t t = 0; t < n_thresholds; ++t) {
            alignas(64) std::int64_t lanes[W];
            L::store_bits(lanes, counts[t]);
            std::int64_t total = 0;
            for (int w = 0; w < W; ++w) total -= lanes[w];  // a true lane is -1
            job.counts[window * n_thresholds + t] += static_cast<std::int32_t>(total);
        }
    }
}

}  // namespace slts::SLTS_TARGET
