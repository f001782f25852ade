// What is kept of the distances between windows and the steps of a series.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "window_store.hpp"

namespace slts {

// Steps of each series within each threshold of the windows at `places`, into (series, ids,
// thresholds). Returns false if the run was stopped.
inline bool count_windows(const WindowStore& windows, const Series& series, Span places,
                          std::int32_t* out, const Target& target, Poll poll) {
    const std::int64_t* offsets = series.offsets;
    std::int64_t longest = 0;
    for (std::int64_t p = 0; p < series.count; ++p)
        longest = std::max(longest, offsets[p + 1] - offsets[p]);
    PaddedSeries<float> padded(windows, longest, series.channels, target, poll);
    WindowJob<float> job{windows.view<float>()};
    const std::int64_t n_thresholds = job.windows.n_thresholds;
    for (std::int64_t p = 0; p < series.count; ++p) {
        padded.read(series.values + offsets[p] * series.channels, offsets[p + 1] - offsets[p]);
        job.counts = out + p * windows.count() * n_thresholds;
        for (std::int64_t w = places.begin; w < places.end; ++w)
            std::fill_n(job.counts + windows.id(w) * n_thresholds, n_thresholds, 0);
        for (std::int64_t w = places.begin, next; w < places.end; w = next) {
            next = std::min(windows.kind_of(w).end, places.end);
            if (!padded.compare(job, w, next)) return false;
        }
    }
    return true;
}

// Distances of the windows `ids`, in ascending order, to every step of one series if T is double,
// or the number of thresholds that each step meets if T is float, into the (ids, steps) that `job`
// has for it. Returns false if the run was stopped.
template <class T>
bool window_rows(const WindowStore& windows, const std::vector<std::int64_t>& ids,
                 const Series& series, WindowJob<T> job, const Target& target, Poll poll) {
    PaddedSeries<T> padded(windows, series.offsets[1], series.channels, target, poll);
    padded.read(series.values, series.offsets[1]);
    std::vector<std::int64_t> rows(static_cast<std::size_t>(windows.count()), -1);
    for (std::size_t k = 0; k < ids.size(); ++k)
        rows[windows.place(ids[k])] = static_cast<std::int64_t>(k);
    job.windows = windows.view<T>();
    job.windows.id = rows.data();
    // Neighbours of one kind are compared together.
    for (std::int64_t begin = 0, end; begin < windows.count(); begin = end) {
        end = begin + 1;
        if (rows[begin] < 0) continue;
        for (const std::int64_t last = windows.kind_of(begin).end; end < last; ++end)
            if (rows[end] < 0) break;
        if (!padded.compare(job, begin, end)) return false;
    }
    return true;
}

// Added to squares of compared values: windows of values that hardly differ from the mean are
// divided evenly.
inline constexpr double kSmallSquare = 1e-9;

// Inputs and outputs of `attribute_windows`.
struct WindowAttribution {
    std::int64_t steps, channels, problems;
    const std::uint8_t* met;  // ids x steps: the number of met thresholds
    const double* weights;    // all windows x (thresholds + 1) x problems
    double* terms;            // channels x steps x problems
    double* totals;           // all windows x problems: the sum of each window
};

// Divides what belongs to means evenly among their steps. `means` has `pad` means more before and
// after the steps of each channel.
inline void divide_means(const WindowAttribution& job, const std::vector<double>& means,
                         std::int64_t width, std::int64_t pad) {
    const std::int64_t problems = job.problems, row = (job.steps + 2 * pad) * problems;
    const double share = 1.0 / static_cast<double>(width);
    std::vector<double> sums(static_cast<std::size_t>(problems));
    for (std::int64_t c = 0; c < job.channels; ++c) {
        const double* first = means.data() + c * row + (pad - width / 2) * problems;
        double* out = job.terms + c * job.steps * problems;
        std::fill(sums.begin(), sums.end(), 0.0);
        for (std::int64_t k = 0; k < width - 1; ++k)
            for (std::int64_t p = 0; p < problems; ++p) sums[p] += first[k * problems + p];
        for (std::int64_t i = 0; i < job.steps; ++i, first += problems, out += problems)
            for (std::int64_t p = 0; p < problems; ++p) {
                sums[p] += first[(width - 1) * problems + p];
                out[p] += share * sums[p];
                sums[p] -= first[p];
            }
    }
}

// Divides what the windows `ids`, in ascending order of their dilations, add to the decision values
// of one series: weights[w][k] at a step that meets k thresholds of window w. It is divided among
// the values that the window is compared with, in proportion to the squares of its own values. What
// belongs to values beyond the ends of the series is left out.
inline void attribute_windows(const WindowStore& windows, const std::vector<std::int64_t>& ids,
                              const WindowAttribution& job, const Target& target) {
    const Windows<double> all = windows.view<double>();
    const std::int64_t problems = job.problems, n_levels = all.n_thresholds + 1;
    const std::int64_t half = all.length / 2;
    // What is added at each step, with zeros beyond the ends as far as two windows reach.
    const std::int64_t far = 2 * windows.reach(job.steps) * problems;
    std::vector<double> padded(static_cast<std::size_t>(job.steps * problems + 2 * far)), means;
    std::vector<double> shares(static_cast<std::size_t>(all.length));
    double* added = padded.data() + far;
    // Some counts of each level, in turn: additions do not wait.
    constexpr std::int64_t kTurns = 4;
    std::vector<std::int64_t> often(static_cast<std::size_t>(kTurns * n_levels));
    for (std::size_t w = 0; w < ids.size(); ++w) {
        const std::int64_t place = windows.place(ids[w]);
        const std::uint8_t* met = job.met + static_cast<std::int64_t>(w) * job.steps;
        const double* weights = job.weights + ids[w] * n_levels * problems;
        std::fill(often.begin(), often.end(), 0);
        for (std::int64_t i = 0; i < job.steps; ++i) {
            ++often[i % kTurns * n_levels + met[i]];
            if (problems == 1)
                added[i] = weights[met[i]];
            else
                std::copy_n(weights + met[i] * problems, problems, added + i * problems);
        }
        // From counts of levels: series in which they are the same have equal sums.
        double* total = job.totals + ids[w] * problems;
        std::fill_n(total, problems, 0.0);
        for (std::int64_t level = 0; level < n_levels; ++level) {
            std::int64_t steps = 0;
            for (std::int64_t turn = 0; turn < kTurns; ++turn)
                steps += often[turn * n_levels + level];
            for (std::int64_t p = 0; p < problems; ++p)
                total[p] += static_cast<double>(steps) * weights[level * problems + p];
        }

        const auto [dilation, averaged, _] = windows.kind_of(place).comparison;
        const std::int64_t apart = std::min(dilation, job.steps), pad = averaged ? half * apart : 0;
        const std::int64_t stride = job.steps + 2 * pad;
        if (averaged && means.empty())
            means.resize(static_cast<std::size_t>(job.channels * stride * problems));
        double* terms = averaged ? means.data() : job.terms;
        const double* value = all.values + all.first[place] * all.length;
        const double* end = all.values + all.first[place + 1] * all.length;
        const double squares = std::inner_product(value, end, value, 0.0) +
                               kSmallSquare * static_cast<double>(end - value);
        const Shifts shifts{shares.data(), all.length, apart * problems};
        for (std::int64_t c = all.first[place]; value < end; ++c) {
            for (double& share : shares) {
                share = (*value * *value + kSmallSquare) / squares;
                ++value;
            }
            target.add_shifted(shifts, added - pad * problems, stride * problems,
                               terms + all.channels[c] * stride * problems);
        }
        if (w + 1 < ids.size() &&
            windows.kind_of(windows.place(ids[w + 1])).comparison.dilation == dilation)
            continue;
        if (!means.empty()) divide_means(job, means, apart, half * apart);
        means.clear();
    }
}

}  // namespace slts
