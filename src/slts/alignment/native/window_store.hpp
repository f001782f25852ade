// What the window kernel works on: windows sorted by kind, and one padded series.
#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <vector>

#include "job.hpp"
#include "storage.hpp"
#include "window_job.hpp"

namespace slts {

// Scaled values are clipped here, so that their squares stay finite in float32.
inline constexpr double kLargestScaled = 1e17;
// Steps that one call compares with all windows of a kind: whole vectors.
inline constexpr std::int64_t kWindowSteps = 1024;

// A step meets a threshold if its distance, in float32, is at most this much larger than the
// threshold. The distance is -2 (x.y - |x|^2 / 2 - level) + threshold, from sums of n products that
// are rounded about n / 2 + n / 6 times (two sums alternate, and each channel of three values or
// more starts with its |x|^2 / 2), and from inputs that are rounded up to four times. At the
// threshold |x|^2 and |x||y| are at most (|y| + sqrt(threshold))^2, of which this is a bound.
inline double level_rounding(std::int64_t n, double squares, double threshold) {
    const double each = 0.5 * std::numeric_limits<float>::epsilon();
    return 2.0 * each * static_cast<double>(3 * n + 16) * (squares + threshold);
}

// (x - centre) / spread for each channel.
struct ChannelScale {
    std::vector<double> centre, spread;

    double operator()(double x, std::int64_t channel) const {
        const auto c = static_cast<std::size_t>(channel);
        return std::clamp((x - centre[c]) / spread[c], -kLargestScaled, kLargestScaled);
    }
};

// How windows are compared; see `WindowJob`.
struct Comparison {
    std::int64_t dilation;
    bool averaged, shape_only;

    auto operator<=>(const Comparison&) const = default;
};

// Windows [begin, end) of a store that are compared in the same way, and the channels they use.
struct WindowKind {
    std::int64_t begin, end;
    Comparison comparison;
    std::vector<std::int64_t> channels;
};

// Windows, and the scale of the series that they are compared with. Their values are scaled
// already. Kinds are in ascending order of dilations, and a kind is sorted by numbers of channels,
// because loops of the same length are predicted, and by the first channel. The position of a
// window in this order is its `place`; its position in the caller's order is its `id`.
class WindowStore {
   public:
    // The arguments are in the caller's order. `windows` has no ids and no levels; `thresholds` are
    // squared distances (windows x n_thresholds).
    WindowStore(const Windows<double>& windows, const double* thresholds,
                const std::vector<Comparison>& comparisons, ChannelScale scale)
        : scale_(std::move(scale)),
          id_(comparisons.size()),
          place_(id_.size()),
          first_{0},
          length_(windows.length),
          n_thresholds_(windows.n_thresholds) {
        const std::int64_t* first = windows.first;
        std::iota(id_.begin(), id_.end(), std::int64_t{0});
        std::stable_sort(id_.begin(), id_.end(), [&](std::int64_t a, std::int64_t b) {
            const auto key = [&](std::int64_t w) {
                return std::make_tuple(comparisons[w], first[w + 1] - first[w],
                                       windows.channels[first[w]]);
            };
            return key(a) < key(b);
        });
        for (std::int64_t place = 0; place < count(); ++place) {
            const std::int64_t w = id_[place], from = first[w], to = first[w + 1];
            if (kinds_.empty() || kinds_.back().comparison != comparisons[w])
                kinds_.push_back({place, place, comparisons[w], {}});
            WindowKind& kind = kinds_.back();
            kind.end = place + 1;
            append(kind.channels, windows.channels, from, to);
            place_[w] = place;
            append(values_, windows.values, from * length_, to * length_);
            append(channels_, windows.channels, from, to);
            const double* values = windows.values;
            const double squares = std::inner_product(
                values + from * length_, values + to * length_, values + from * length_, 0.0);
            for (std::int64_t t = w * n_thresholds_; t < (w + 1) * n_thresholds_; ++t) {
                const double least = squares - thresholds[t];
                const double slack = level_rounding((to - from) * length_, squares, thresholds[t]);
                levels_.push_back(static_cast<float>(0.5 * (least - slack)));
            }
            first_.push_back(first_.back() + to - from);
        }
        rounded_.assign(values_.begin(), values_.end());
        for (WindowKind& kind : kinds_) {
            std::vector<std::int64_t>& used = kind.channels;
            std::sort(used.begin(), used.end());
            used.erase(std::unique(used.begin(), used.end()), used.end());
        }
    }

    const WindowKind& kind_of(std::int64_t place) const {
        return *std::partition_point(kinds_.begin(), kinds_.end(),
                                     [=](const WindowKind& kind) { return kind.end <= place; });
    }
    // Steps beyond the ends of a series of n steps that a window reaches, or that a mean does.
    std::int64_t reach(std::int64_t n) const {
        return kinds_.empty() ? 0
                              : (length_ / 2 + 1) * std::min(kinds_.back().comparison.dilation, n);
    }
    std::int64_t count() const { return static_cast<std::int64_t>(id_.size()); }
    std::int64_t place(std::int64_t id) const { return place_[id]; }
    std::int64_t id(std::int64_t place) const { return id_[place]; }
    const std::vector<std::int64_t>& first() const { return first_; }
    const ChannelScale& scale() const { return scale_; }

    template <class T>
    Windows<T> view() const {
        const T* values;
        if constexpr (std::is_same_v<T, float>)
            values = rounded_.data();
        else
            values = values_.data();
        return {values,  first_.data(), channels_.data(), id_.data(),
                length_, n_thresholds_, levels_.data()};
    }

   private:
    template <class T>
    static void append(std::vector<T>& to, const T* from, std::int64_t begin, std::int64_t end) {
        to.insert(to.end(), from + begin, from + end);
    }

    ChannelScale scale_;
    std::vector<std::int64_t> id_, place_, first_, channels_;
    std::vector<double> values_;
    std::vector<float> rounded_, levels_;
    std::vector<WindowKind> kinds_;
    std::int64_t length_, n_thresholds_;
};

// One scaled series at a time, channel by channel, with its edge values repeated on both sides.
// What windows see of it is compared as T.
template <class T>
class PaddedSeries {
   public:
    PaddedSeries(const WindowStore& windows, std::int64_t longest, std::int64_t channels,
                 const Target& target, Poll poll)
        : windows_(windows),
          target_(target),
          poll_(poll),
          channels_(channels),
          pad_(windows.reach(longest)),
          stride_(longest + 2 * pad_ + kWindowSlack),
          padded_(stride_ * channels),
          means_(stride_ * channels),
          sums_(stride_),
          columns_(channels * windows.view<T>().length * kWindowVectors * kMostLanes),
          starts_(channels * kWindowVectors * kMostLanes) {}

    void read(const double* rows, std::int64_t steps) {
        steps_ = steps;
        const std::int64_t reach = windows_.reach(steps);
        for (std::int64_t c = 0; c < channels_; ++c) {
            double* out = padded_.data() + c * stride_ + pad_;
            for (std::int64_t i = 0; i < steps; ++i)
                out[i] = windows_.scale()(rows[i * channels_ + c], c);
            std::fill_n(out - reach, reach, out[0]);
            std::fill_n(out + steps, reach + kWindowSlack, out[steps - 1]);
        }
    }

    // Compares the series with the windows [begin, end) of one kind. `job` has the outputs. Returns
    // false if the run must stop.
    bool compare(WindowJob<T> job, std::int64_t begin, std::int64_t end) {
        const WindowKind& kind = windows_.kind_of(begin);
        job.begin = begin, job.end = end;
        job.steps = steps_;
        job.dilation = std::min(kind.comparison.dilation, steps_);
        job.averaged = kind.comparison.averaged && job.dilation > 1;
        job.shape_only = kind.comparison.shape_only;
        job.pad = pad_, job.stride = stride_;
        job.padded = padded_.data(), job.means = means_.data(), job.sums = sums_.data();
        job.columns = columns_.data(), job.starts = starts_.data();
        job.used = kind.channels.data();
        job.n_used = static_cast<std::int64_t>(kind.channels.size());
        const std::int64_t rows = job.windows.first[end] - job.windows.first[begin];
        if (end - begin == 1) {
            // One window does not need the channels of all.
            job.used = job.windows.channels + job.windows.first[begin];
            job.n_used = rows;
        }
        for (std::int64_t i = 0; i < steps_; i += kWindowSteps) {
            job.step_begin = i, job.step_end = std::min(i + kWindowSteps, steps_);
            target_.run(job);
            work_ += (job.step_end - i) * rows * job.windows.length;
            if (work_ < kPollEvery) continue;
            work_ = 0;
            if (poll_.stop(poll_.context)) return false;
        }
        return true;
    }

   private:
    const WindowStore& windows_;
    const Target& target_;
    Poll poll_;
    std::int64_t channels_, pad_, stride_, steps_ = 0, work_ = 0;
    AlignedArray<double> padded_, means_, sums_;
    AlignedArray<T> columns_, starts_;
};

}  // namespace slts
