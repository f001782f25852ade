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

// Inputs and outputs of `attribute_windows`.
struct WindowAttribution {
    std::int64_t steps, channels, problems;
    const bool* observed;     // steps x channels
    const double* distances;  // ids x steps
    const double* weights;    // all windows x (thresholds + 1) x problems
    double* terms;            // steps x channels x problems
    double* totals;           // all windows x problems: the sum of each window
};

// What windows that are compared in one way add at the steps that they are centred on, steps x
// channels x problems. It is divided evenly among the observed values that the windows see; what
// sees none is left out.
class CentredTerms {
   public:
    CentredTerms(const WindowAttribution& job, std::int64_t length)
        : job_(job),
          half_(length / 2),
          row_(job.channels * job.problems),
          terms_(static_cast<std::size_t>(job.steps * row_)),
          n_before_(static_cast<std::size_t>((job.steps + 1) * job.channels)) {
        for (std::int64_t k = 0; k < job.steps * job.channels; ++k)
            n_before_[k + job.channels] = n_before_[k] + job.observed[k];
    }

    double* at(std::int64_t step, std::int64_t channel) {
        return terms_.data() + step * row_ + channel * job_.problems;
    }

    void divide(const Comparison& comparison) {
        const std::int64_t apart = std::min(comparison.dilation, job_.steps);
        if (comparison.averaged)
            divide_over_ranges(apart);
        else
            divide_over_steps(apart);
        std::fill(terms_.begin(), terms_.end(), 0.0);
    }

   private:
    void divide_over_steps(std::int64_t apart) {
        for (std::int64_t i = 0; i < job_.steps; ++i) {
            const std::int64_t first = i - std::min(half_, i / apart) * apart;
            const std::int64_t last = std::min(i + half_ * apart, job_.steps - 1);
            for (std::int64_t c = 0; c < job_.channels; ++c) {
                const bool* observed = job_.observed + c;
                std::int64_t count = 0;
                for (std::int64_t k = first; k <= last; k += apart)
                    count += observed[k * job_.channels];
                for (std::int64_t k = first; k <= last; k += apart)
                    if (observed[k * job_.channels])
                        add(at(i, c), 1.0 / static_cast<double>(count),
                            job_.terms + k * row_ + c * job_.problems);
            }
        }
    }

    // A window of means sees all steps from its first to its last: changes at the ends of these
    // ranges are added up.
    void divide_over_ranges(std::int64_t apart) {
        std::vector<double> changes(static_cast<std::size_t>((job_.steps + 1) * row_));
        for (std::int64_t i = 0; i < job_.steps; ++i) {
            const std::int64_t reach = half_ * apart;
            const std::int64_t first = std::max(i - reach - (apart - 1) / 2, std::int64_t{0});
            const std::int64_t end = std::min(i + reach + apart / 2 + 1, job_.steps);
            for (std::int64_t c = 0; c < job_.channels; ++c) {
                const std::int64_t count = n_before_[end * job_.channels + c] -
                                           n_before_[first * job_.channels + c];
                if (count == 0) continue;
                const double share = 1.0 / static_cast<double>(count);
                add(at(i, c), share, changes.data() + first * row_ + c * job_.problems);
                add(at(i, c), -share, changes.data() + end * row_ + c * job_.problems);
            }
        }
        for (std::int64_t i = 0; i < job_.steps; ++i) {
            double* sums = changes.data() + i * row_;
            for (std::int64_t c = 0; c < job_.channels; ++c)
                if (job_.observed[i * job_.channels + c])
                    add(sums + c * job_.problems, 1.0,
                        job_.terms + i * row_ + c * job_.problems);
            for (std::int64_t r = 0; r < row_; ++r) sums[row_ + r] += sums[r];
        }
    }

    void add(const double* terms, double share, double* out) const {
        for (std::int64_t p = 0; p < job_.problems; ++p) out[p] += share * terms[p];
    }

    const WindowAttribution& job_;
    std::int64_t half_, row_;
    std::vector<double> terms_;
    std::vector<std::int64_t> n_before_;  // observed values before each step
};

// Divides what the windows `ids`, in ascending order of their dilations, add to the decision values
// of one series: weights[w][k] at a step that meets k thresholds of window w, evenly among its
// channels and the observed values that it is compared with.
inline void attribute_windows(const WindowStore& windows, const std::vector<std::int64_t>& ids,
                              const WindowAttribution& job) {
    const Windows all = windows.view();
    const std::int64_t problems = job.problems, n_levels = all.n_thresholds + 1;
    CentredTerms centred[2] = {{job, all.length}, {job, all.length}};
    std::vector<double> shares(static_cast<std::size_t>(n_levels * problems));
    std::vector<std::int64_t> met(static_cast<std::size_t>(n_levels));
    for (std::size_t w = 0; w < ids.size(); ++w) {
        const std::int64_t place = windows.place(ids[w]);
        const Comparison comparison = windows.kind_of(place).comparison;
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
                double* out = centred[comparison.averaged].at(i, all.channels[c]);
                for (std::int64_t p = 0; p < problems; ++p) out[p] += share[p];
            }
        }
        // From counts of levels: series in which they are the same have equal sums.
        double* total = job.totals + ids[w] * problems;
        std::fill_n(total, problems, 0.0);
        for (std::int64_t level = 0; level < n_levels; ++level)
            for (std::int64_t p = 0; p < problems; ++p)
                total[p] += static_cast<double>(met[level]) * weights[level * problems + p];
        if (w + 1 < ids.size() &&
            windows.kind_of(windows.place(ids[w + 1])).comparison.dilation == comparison.dilation)
            continue;
        for (const bool averaged : {false, true})
            centred[averaged].divide({comparison.dilation, averaged, false});
    }
}

}  // namespace slts
