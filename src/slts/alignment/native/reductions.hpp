// Reductions of a path. A path is one interval [first, last] of landmark steps per series step. All
// reductions are linear in the landmark rows summed over these intervals.
#pragma once

#include "job.hpp"
#include "lanes.hpp"
#include "recurrence.hpp"

namespace slts::SLTS_TARGET {

// sums[i] (+)= scale * sum of the landmark rows in `phase` that are aligned with series row i.
// Prefix sums would avoid the inner loop, but their differences lose digits after a large row.
template <class T, int C, bool Add, bool OneChunk = false>
SLTS_INLINE void sum_aligned_rows(const T* landmark, const T* zeros, std::int64_t any_stride,
                                  const Walk& path, Span rows, Span phase, T scale, T* sums) {
    using L = Lanes<T, C>;
    const std::int64_t stride = OneChunk ? C : any_stride;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        const std::int64_t first = path.first[i] > phase.begin ? path.first[i] : phase.begin;
        const std::int64_t last = path.last[i] < phase.end - 1 ? path.last[i] : phase.end - 1;
        const T* begin = landmark + first * stride;
        const T* end = landmark + last * stride;
        // The number of rows is hard to predict: add up to kUnrolled without a branch. The spare
        // rows of RowStore keep these pointers inside the allocation.
        static_assert(kUnrolled == 3);
        const T* second = begin + stride <= end ? begin + stride : zeros;
        const T* third = begin + 2 * stride <= end ? begin + 2 * stride : zeros;
        T* sum = sums + i * stride;
        for (std::int64_t k = 0; k < stride; k += C) {
            auto total = L::load_unaligned(begin + k) + L::load_unaligned(second + k);
            total = total + L::load_unaligned(third + k);
            for (const T* row = begin + kUnrolled * stride; row <= end; row += stride)
                total = total + L::load_unaligned(row + k);
            total = total * scale;
            if (Add) total = total + L::load_unaligned(sum + k);
            L::store_unaligned(sum + k, total);
        }
    }
}

// Q rows of the product at a time: out[q] = sum_i series[i][q] * sums[i].
template <class T, int C, int Q>
SLTS_INLINE void product_rows(const T* series, std::int64_t series_stride, const T* sums,
                              std::int64_t n, std::int64_t stride, T* out) {
    using L = Lanes<T, C>;
    for (std::int64_t k = 0; k < stride; k += C) {
        typename L::Value total[Q];
        for (int q = 0; q < Q; ++q) total[q] = L::broadcast(T(0));
        for (std::int64_t i = 0; i < n; ++i) {
            const auto sum = L::load_unaligned(sums + i * stride + k);
            for (int q = 0; q < Q; ++q) total[q] = total[q] + sum * series[i * series_stride + q];
        }
        for (int q = 0; q < Q; ++q) L::store_unaligned(out + q * stride + k, total[q]);
    }
}

// out (channels x stride) = series' sums; sums have `stride` numbers per row.
template <class T, int C>
SLTS_INLINE void series_times_sums(const T* series, std::int64_t channels, std::int64_t x,
                                   const T* sums, std::int64_t n, std::int64_t stride, T* out) {
    std::int64_t q = 0;
    for (; q + 8 <= channels; q += 8)
        product_rows<T, C, 8>(series + q, x, sums, n, stride, out + q * stride);
    if (q == channels) return;
    with_constant<7>(channels - q, [&]<int Q>() {
        product_rows<T, C, Q>(series + q, x, sums, n, stride, out + q * stride);
    });
}

// Copies rows without their padding.
template <class T>
SLTS_INLINE void copy_compact(const T* padded, std::int64_t rows, std::int64_t columns,
                              std::int64_t stride, T* out) {
    for (std::int64_t q = 0; q < rows; ++q)
        for (std::int64_t k = 0; k < columns; ++k) out[q * columns + k] = padded[q * stride + k];
}

template <class T>
SLTS_INLINE T inner(const T* padded, std::int64_t channels, std::int64_t stride, const T* matrix) {
    T total = 0;
    for (std::int64_t q = 0; q < channels; ++q)
        for (std::int64_t k = 0; k < channels; ++k)
            total += padded[q * stride + k] * matrix[q * channels + k];
    return total;
}

template <class T>
SLTS_INLINE const Rows<T>& summed_rows(const Job<T>& job) {
    const bool by_basis = job.reduction == Reduction::grouped || job.reduction == Reduction::sums;
    return by_basis ? job.landmarks.summed : job.landmarks.rows;
}

// Reduces the path of (series p, landmark q), C channels at a time.
template <class T, int C>
void reduce_path_by(const Job<T>& job, std::int64_t p, std::int64_t q, const Walk& path) {
    const Rows<T>&x = job.series, &y = summed_rows(job);
    const std::int64_t n = x.offsets[p + 1] - x.offsets[p], d = x.channels, stride = y.stride;
    const std::int64_t m = y.offsets[q + 1] - y.offsets[q];
    const T* series = x.data + x.offsets[p] * x.stride;
    const T* landmark = y.data + y.offsets[q] * stride;
    const T share = T(1) / static_cast<T>(path.length);
    const Workspace<T>& w = job.work;
    const std::int64_t pair = p * job.landmarks.count + q;

    if (job.reduction == Reduction::path) {
        for (std::int64_t i = 0; i < n; ++i)
            job.path_first[i] = path.first[i], job.path_last[i] = path.last[i];
    } else if (job.reduction == Reduction::grouped || job.reduction == Reduction::sums) {
        Span rows{0, 0};
        for (std::int64_t f = 0; f < job.n_phases; ++f) {
            // Step j of the landmark is in phase floor(j * phases / m).
            const Span phase{(f * m + job.n_phases - 1) / job.n_phases,
                             ((f + 1) * m + job.n_phases - 1) / job.n_phases};
            if (phase.begin == phase.end) continue;
            if (job.n_phases == 1) {
                rows.end = n;
            } else {
                while (path.last[rows.begin] < phase.begin) ++rows.begin;
                rows.end = rows.end < rows.begin ? rows.begin : rows.end;
                while (rows.end < n && path.first[rows.end] < phase.end) ++rows.end;
            }
            if (job.reduction == Reduction::sums) {
                sum_aligned_rows<T, C, false>(landmark, w.zeros, stride, path, rows, phase, share,
                                              job.out + (q * job.n_phases + f) * n * stride);
                continue;
            }
            for (std::int64_t g = 0; g < job.n_outer; ++g) {
                const T weight = job.weights[g * job.landmarks.count + q];
                if (weight == T(0)) continue;
                const std::int64_t part = g * job.n_phases + f;
                Span& touched = w.touched[part];
                touched.begin = touched.begin < rows.begin ? touched.begin : rows.begin;
                touched.end = touched.end > rows.end ? touched.end : rows.end;
                T* sums = w.sums + part * n * stride;
                if (stride == C)
                    sum_aligned_rows<T, C, true, true>(landmark, w.zeros, C, path, rows, phase,
                                                       weight * share, sums);
                else
                    sum_aligned_rows<T, C, true>(landmark, w.zeros, stride, path, rows, phase,
                                                 weight * share, sums);
            }
        }
    } else {
        sum_aligned_rows<T, C, false>(landmark, w.zeros, stride, path, {0, n}, {0, m}, share,
                                      w.sums);
        series_times_sums<T, C>(series, d, x.stride, w.sums, n, stride, w.product);
        if (job.reduction == Reduction::products) {
            copy_compact(w.product, d, d, stride, job.out + pair * d * d);
        } else {
            for (std::int64_t c = 0; c < job.n_outer; ++c)
                job.out[pair * job.n_outer + c] =
                    inner(w.product, d, stride, job.matrices + c * d * d);
        }
    }
}

// Calls f<C>() with channels at a time: a row's padding divides by C, and C is at most the native
// width W.
template <int W, class F>
SLTS_INLINE void by_chunk(std::int64_t stride, F&& f) {
    if (stride % kWideRow == 0)
        f.template operator()<(W < kWideRow ? W : kWideRow)>();
    else
        f.template operator()<(W < kNarrowRow ? W : kNarrowRow)>();
}

template <class T, int W>
void reduce_path(const Job<T>& job, std::int64_t p, std::int64_t q, const Walk& path) {
    by_chunk<W>(summed_rows(job).stride, [&]<int C>() { reduce_path_by<T, C>(job, p, q, path); });
}

template <class T>
SLTS_INLINE void start_series(const Job<T>& job, std::int64_t n) {
    if (job.reduction != Reduction::grouped) return;
    const std::int64_t parts = job.n_outer * job.n_phases;
    const std::int64_t size = parts * n * job.landmarks.summed.stride;
    for (std::int64_t k = 0; k < size; ++k) job.work.sums[k] = T(0);
    for (std::int64_t k = 0; k < parts; ++k) job.work.touched[k] = {n, 0};
}

// After all landmarks: one product per group and phase, because all landmarks share the series
// side.
template <class T, int W>
SLTS_INLINE void finish_series(const Job<T>& job, std::int64_t p, std::int64_t n) {
    if (job.reduction != Reduction::grouped) return;
    const Rows<T>&x = job.series, &y = job.landmarks.summed;
    const std::int64_t parts = job.n_outer * job.n_phases, size = x.channels * y.channels;
    for (std::int64_t k = 0; k < parts; ++k) {
        const Span rows = job.work.touched[k];
        const std::int64_t count = rows.end > rows.begin ? rows.end - rows.begin : 0;
        const std::int64_t begin = count > 0 ? rows.begin : 0;
        const T* series = x.data + (x.offsets[p] + begin) * x.stride;
        const T* sums = job.work.sums + (k * n + begin) * y.stride;
        by_chunk<W>(y.stride, [&]<int C>() {
            series_times_sums<T, C>(series, x.channels, x.stride, sums, count, y.stride,
                                    job.work.product);
        });
        copy_compact(job.work.product, x.channels, y.channels, y.stride,
                     job.out + (p * parts + k) * size);
    }
}

}  // namespace slts::SLTS_TARGET
