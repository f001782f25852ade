// One call of the kernel: for each series and each pack of landmarks, sweep the grid and reduce the
// paths. Each target file defines SLTS_TARGET and includes this file.
#pragma once

#include "recurrence.hpp"
#include "reductions.hpp"

namespace slts::SLTS_TARGET {

// Counts operations, and says whether to stop.
struct Poller {
    const Poll& poll;
    std::int64_t work = 0;

    SLTS_INLINE bool operator()(std::int64_t operations) {
        work += operations;
        if (work < kPollEvery) return false;
        work = 0;
        return poll.stop(poll.context);
    }
};

template <class T, int W>
void fill_bounds(const Job<T>& job, const PackInfo& pack, std::int64_t n) {
    const std::int64_t* offsets = job.landmarks.rows.offsets;
    for (int w = 0; w < W; ++w) {
        // Unused lanes repeat the first one, so that they do not widen a range.
        const std::int64_t q = job.landmarks.order[pack.first + (w < pack.lanes ? w : 0)];
        const std::int64_t m = offsets[q + 1] - offsets[q];
        for (std::int64_t i = 0; i < n; ++i) {
            const Interval in = band_interval(job.band, i, n, m);
            job.work.bounds[i * 2 * W + w] = static_cast<T>(in.start);
            job.work.bounds[(i * 2 + 1) * W + w] = static_cast<T>(in.stop);
        }
    }
}

// W is the width of this pack, Native the width of the target.
template <class T, int W, int Native, bool Shifted, bool Banded>
Result run_pack(const Job<T>& job, std::int64_t p, const PackInfo& pack, Poller& poll) {
    const Rows<T>&x = job.series, &y = job.landmarks.rows;
    Grid<T> g;
    g.n = x.offsets[p + 1] - x.offsets[p];
    g.series = x.data + x.offsets[p] * x.stride;
    g.series_shift = Shifted ? x.shift + x.offsets[p] : nullptr;
    g.landmark = job.landmarks.packed + pack.data;
    g.landmark_shift = Shifted ? job.landmarks.packed_shift + pack.shift : nullptr;
    g.channels = x.channels, g.stride = x.stride, g.columns = pack.columns;
    g.frontier = job.work.frontier, g.lengths = job.work.lengths, g.bounds = job.work.bounds,
    g.moves = job.work.moves;
    if (Banded) fill_bounds<T, W>(job, pack, g.n);

    const bool scoring = job.reduction == Reduction::score;
    const bool finished = scoring ? sweep<T, W, Shifted, Banded, Keep::length>(g, poll)
                                  : sweep<T, W, Shifted, Banded, Keep::moves>(g, poll);
    if (!finished) return {Outcome::stopped, p, -1};
    for (int w = 0; w < pack.lanes; ++w) {
        const std::int64_t q = job.landmarks.order[pack.first + w];
        const std::int64_t m = y.offsets[q + 1] - y.offsets[q], end = (m - 1) * W + w;
        if (Banded && !(g.frontier[end] > T(-INFINITY))) return {Outcome::no_path, p, q};
        const std::int64_t pair = p * job.landmarks.count + q;
        if (job.values != nullptr) job.values[pair] = g.frontier[end];
        if (scoring) job.lengths[pair] = static_cast<std::int32_t>(g.lengths[end]);
    }
    constexpr int K = W < kWalks ? W : kWalks;
    for (int w = 0; w < pack.lanes && !scoring; w += K) {
        const int count = static_cast<int>(pack.lanes - w < K ? pack.lanes - w : K);
        Walk walks[K];
        for (int k = 0; k < K; ++k) {
            std::int32_t* ends = job.work.ends + k * walk_size(g.n);
            walks[k] = {0, 0, 1, ends, ends + g.n + 1};
            if (k >= count) continue;
            const std::int64_t q = job.landmarks.order[pack.first + w + k];
            walks[k].i = g.n - 1, walks[k].j = y.offsets[q + 1] - y.offsets[q] - 1;
        }
        walk_back<W, K>(g.moves, g.columns, w, walks);
        for (int k = 0; k < count; ++k)
            reduce_path<T, Native>(job, p, job.landmarks.order[pack.first + w + k], walks[k]);
    }
    return {};
}

template <class T, int W, bool Shifted, bool Banded>
Result run_job(const Job<T>& job) {
    Poller poll{job.poll};
    for (std::int64_t p = 0; p < job.n_series; ++p) {
        const std::int64_t n = job.series.offsets[p + 1] - job.series.offsets[p];
        start_series(job, n);
        for (std::int64_t k = job.pack_begin; k < job.pack_end; ++k) {
            const PackInfo& pack = job.landmarks.packs[k];
            const Result r = pack.width == 1
                                 ? run_pack<T, 1, W, Shifted, Banded>(job, p, pack, poll)
                                 : run_pack<T, W, W, Shifted, Banded>(job, p, pack, poll);
            if (r.outcome != Outcome::done) return r;
        }
        finish_series<T, W>(job, p, n);
    }
    return {};
}

template <class T, int W>
Result run(const Job<T>& job) {
    const bool shifted = job.series.shift != nullptr, banded = !admits_all(job.band);
    if (shifted) return banded ? run_job<T, W, true, true>(job) : run_job<T, W, true, false>(job);
    return banded ? run_job<T, W, false, true>(job) : run_job<T, W, false, false>(job);
}

}  // namespace slts::SLTS_TARGET
