// What is kept of the distances between windows and the steps of a series.
#pragma once

#include <algorithm>
#include <cstdint>
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
    PaddedSeries padded(windows, longest, series.channels, target, poll);
    WindowJob job{windows.view()};
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

// Distances of the windows `ids`, in ascending order, to every step of one series, into (ids,
// steps). Returns false if the run was stopped.
inline bool window_distances(const WindowStore& windows, const std::vector<std::int64_t>& ids,
                             const Series& series, double* out, const Target& target, Poll poll) {
    PaddedSeries padded(windows, series.offsets[1], series.channels, target, poll);
    padded.read(series.values, series.offsets[1]);
    std::vector<std::int64_t> places, rows(static_cast<std::size_t>(windows.count()));
    for (const std::int64_t id : ids) {
        rows[windows.place(id)] = static_cast<std::int64_t>(places.size());
        places.push_back(windows.place(id));
    }
    std::sort(places.begin(), places.end());
    WindowJob job{windows.view()};
    job.windows.id = rows.data();
    job.distances = out;
    // Neighbours of one kind are compared together.
    for (std::size_t k = 0; k < places.size();) {
        const std::int64_t begin = places[k], last = windows.kind_of(begin).end;
        std::int64_t end = begin;
        for (; k < places.size() && places[k] == end && end < last; ++k) ++end;
        if (!padded.compare(job, begin, end)) return false;
    }
    return true;
}

// What windows of one dilation add at the steps that they are centred on is divided evenly among
// the steps that they see. The first and last step, which repeat beyond the ends of the series,
// count once.
inline void add_to_seen(const std::vector<double>& centred, std::int64_t dilation,
                        std::int64_t length, std::int64_t steps, double* terms) {
    const std::int64_t row = static_cast<std::int64_t>(centred.size()) / steps;
    const std::int64_t apart = std::min(dilation, steps), half = length / 2;
    for (std::int64_t i = 0; i < steps; ++i) {
        const double* added = centred.data() + i * row;
        // Different steps on each side of the centre, at most one of which lies beyond an end.
        const std::int64_t before = std::min(half, (i + apart - 1) / apart);
        const std::int64_t after = std::min(length - 1 - half, (steps - 2 - i + apart) / apart);
        const double share = 1.0 / static_cast<double>(before + 1 + after);
        for (std::int64_t k = -before; k <= after; ++k) {
            double* out = terms + std::clamp(i + k * apart, std::int64_t{0}, steps - 1) * row;
            for (std::int64_t r = 0; r < row; ++r) out[r] += share * added[r];
        }
    }
}

// Inputs and outputs of `attribute_windows`.
struct WindowAttribution {
    std::int64_t steps, channels, problems;
    const double* distances;  // ids x steps
    const double* weights;    // all windows x (thresholds + 1) x problems
    double* terms;            // steps x channels x problems
    double* totals;           // all windows x problems: the sum of each window
};

// Divides what the windows `ids`, in ascending order of their dilations, add to the decision values
// of one series: weights[w][k] at a step that meets k thresholds of window w, evenly among the
// different steps that it is compared with and its channels.
inline void attribute_windows(const WindowStore& windows, const std::vector<std::int64_t>& ids,
                              const WindowAttribution& job) {
    const Windows all = windows.view();
    const std::int64_t problems = job.problems, row = job.channels * problems;
    const std::int64_t n_levels = all.n_thresholds + 1;
    std::vector<double> centred(static_cast<std::size_t>(job.steps * row));
    std::vector<double> shares(static_cast<std::size_t>(n_levels * problems));
    std::vector<std::int64_t> met(static_cast<std::size_t>(n_levels));
    for (std::size_t w = 0; w < ids.size(); ++w) {
        const std::int64_t place = windows.place(ids[w]);
        const double* distances = job.distances + static_cast<std::int64_t>(w) * job.steps;
        const double* limits = all.thresholds + place * all.n_thresholds;
        const double* weights = job.weights + ids[w] * n_levels * problems;
        const std::int64_t first = all.first[place], last = all.first[place + 1];
        for (std::size_t s = 0; s < shares.size(); ++s)
            shares[s] = weights[s] / static_cast<double>(last - first);
        std::fill(met.begin(), met.end(), 0);
        for (std::int64_t i = 0; i < job.steps; ++i) {
            std::int64_t level = 0;
            for (std::int64_t t = 0; t < all.n_thresholds; ++t) level += distances[i] <= limits[t];
            ++met[level];
            const double* share = shares.data() + level * problems;
            for (std::int64_t c = first; c < last; ++c) {
                double* out = centred.data() + i * row + all.channels[c] * problems;
                for (std::int64_t p = 0; p < problems; ++p) out[p] += share[p];
            }
        }
        // From counts of levels: series in which they are the same have equal sums.
        double* total = job.totals + ids[w] * problems;
        std::fill_n(total, problems, 0.0);
        for (std::int64_t level = 0; level < n_levels; ++level)
            for (std::int64_t p = 0; p < problems; ++p)
                total[p] += static_cast<double>(met[level]) * weights[level * problems + p];
        const std::int64_t dilation = windows.kind_of(place).dilation;
        if (w + 1 < ids.size() && windows.kind_of(windows.place(ids[w + 1])).dilation == dilation)
            continue;
        add_to_seen(centred, dilation, all.length, job.steps, job.terms);
        std::fill(centred.begin(), centred.end(), 0.0);
    }
}

}  // namespace slts
