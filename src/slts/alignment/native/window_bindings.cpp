#include "window_bindings.hpp"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "cancel.hpp"
#include "storage.hpp"
#include "targets.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace slts {
namespace {

// As in series/channels.py: scaled values are clipped here, so that their squares stay finite.
constexpr double kFar = 1e140;
// Operations between two checks for an interrupt: about 30 ms.
constexpr std::int64_t kPollEvery = 200'000'000;
// Windows that use a channel, from which on it pays to copy what they see of it.
constexpr std::int64_t kFewWindows = 4;

std::size_t size(std::int64_t k) { return static_cast<std::size_t>(k); }

// Windows, and the scale of the series that they are compared with: (x - centre) / spread for each
// channel. The values of the windows are scaled already. Windows of one kind, with the same
// dilation and `shape_only`, are neighbours; a kind is sorted by numbers of channels, because
// loops of the same length are predicted, and by the first channel.
class WindowStore {
   public:
    WindowStore(Array<const double, 2> values, Array<const std::int64_t, 1> first,
                Array<const std::int64_t, 1> channels, Array<const std::int64_t, 1> dilation,
                Array<const bool, 1> shape_only, Array<const double, 2> thresholds,
                Array<const double, 1> centre, Array<const double, 1> spread)
        : id_(dilation.size()),
          centre_(centre.data(), centre.data() + centre.size()),
          spread_(spread.data(), spread.data() + spread.size()),
          length_(static_cast<std::int64_t>(values.shape(1))),
          n_thresholds_(static_cast<std::int64_t>(thresholds.shape(1))) {
        std::iota(id_.begin(), id_.end(), std::int64_t{0});
        const std::int64_t* begin = first.data();
        std::stable_sort(id_.begin(), id_.end(), [&](std::int64_t a, std::int64_t b) {
            const auto key = [&](std::int64_t w) {
                return std::make_tuple(dilation.data()[w], shape_only.data()[w],
                                       begin[w + 1] - begin[w], channels.data()[begin[w]]);
            };
            return key(a) < key(b);
        });
        first_.push_back(0);
        place_.resize(id_.size());
        for (const std::int64_t w : id_) {
            const std::int64_t from = begin[w], to = begin[w + 1];
            place_[size(w)] = count();
            dilation_.push_back(dilation.data()[w]);
            shape_only_.push_back(shape_only.data()[w]);
            values_.insert(values_.end(), values.data() + from * length_,
                           values.data() + to * length_);
            channels_.insert(channels_.end(), channels.data() + from, channels.data() + to);
            first_.push_back(first_.back() + to - from);
            const double* limits = thresholds.data() + w * n_thresholds_;
            thresholds_.insert(thresholds_.end(), limits, limits + n_thresholds_);
        }
        for (std::int64_t w = 0; w < count(); w = kinds_.back().end) kinds_.push_back(kind_from(w));
    }

    // Windows [begin, end) of one kind, and the channels that they use.
    struct Kind {
        std::int64_t begin, end;
        std::vector<std::int64_t> channels;
    };

    std::int64_t count() const { return static_cast<std::int64_t>(dilation_.size()); }
    std::int64_t place(std::int64_t id) const { return place_[size(id)]; }
    std::int64_t id(std::int64_t place) const { return id_[size(place)]; }
    const Kind& kind_of(std::int64_t place) const {
        return *std::partition_point(kinds_.begin(), kinds_.end(),
                                     [=](const Kind& kind) { return kind.end <= place; });
    }
    const std::vector<std::int64_t>& first() const { return first_; }
    // Steps beyond the ends of a series of n steps that a window reaches.
    std::int64_t reach(std::int64_t n) const {
        return dilation_.empty() ? 0 : length_ / 2 * std::min(dilation_.back(), n);
    }
    std::int64_t rows_of(std::int64_t begin, std::int64_t end) const {
        return first_[size(end)] - first_[size(begin)];
    }
    double scaled(double x, std::int64_t channel) const {
        const double y = (x - centre_[size(channel)]) / spread_[size(channel)];
        return std::min(std::max(y, -kFar), kFar);
    }
    std::int64_t length() const { return length_; }
    std::int64_t dilation(std::int64_t w) const { return dilation_[size(w)]; }
    bool shape_only(std::int64_t w) const { return shape_only_[size(w)] != 0; }

    Windows view() const {
        return {values_.data(), first_.data(), channels_.data(), thresholds_.data(),
                id_.data(),     length_,       n_thresholds_};
    }

   private:
    Kind kind_from(std::int64_t begin) const {
        Kind kind{begin, begin, {}};
        while (kind.end < count() && dilation(kind.end) == dilation(begin) &&
               shape_only(kind.end) == shape_only(begin))
            ++kind.end;
        kind.channels.assign(channels_.begin() + first_[size(begin)],
                             channels_.begin() + first_[size(kind.end)]);
        std::sort(kind.channels.begin(), kind.channels.end());
        kind.channels.erase(std::unique(kind.channels.begin(), kind.channels.end()),
                            kind.channels.end());
        return kind;
    }

    std::vector<std::int64_t> id_, place_;
    std::vector<double> values_;
    std::vector<std::int64_t> first_, channels_, dilation_;
    std::vector<std::uint8_t> shape_only_;
    std::vector<double> thresholds_, centre_, spread_;
    std::vector<Kind> kinds_;
    std::int64_t length_, n_thresholds_;
};

// One scaled series, channel by channel, with its edge values repeated on both sides.
class PaddedSeries {
   public:
    PaddedSeries(const WindowStore& windows, std::int64_t longest, std::int64_t channels)
        : windows_(windows),
          channels_(channels),
          pad_(windows.reach(longest)),
          stride_(longest + 2 * pad_ + kWindowSlack),
          padded_(size(stride_ * channels)),
          columns_(size(channels * windows.length() * kWindowVectors * kMostLanes)) {}

    void read(const double* rows, std::int64_t steps) {
        steps_ = steps;
        const std::int64_t reach = windows_.reach(steps);
        for (std::int64_t c = 0; c < channels_; ++c) {
            double* out = padded_.data() + c * stride_ + pad_;
            for (std::int64_t i = 0; i < steps; ++i)
                out[i] = windows_.scaled(rows[i * channels_ + c], c);
            std::fill_n(out - reach, reach, out[0]);
            std::fill_n(out + steps, reach + kWindowSlack, out[steps - 1]);
        }
    }

    // Runs the windows [begin, end) of a kind; false if the call must stop. `job` has the outputs;
    // `work` counts operations since the last poll.
    bool run(const Target& target, WindowJob job, std::int64_t begin, std::int64_t end,
             CancelToken* token, std::int64_t& work) {
        const WindowStore::Kind& kind = windows_.kind_of(begin);
        job.begin = begin, job.end = end;
        job.steps = steps_;
        job.dilation = std::min(windows_.dilation(begin), steps_);
        job.shape_only = windows_.shape_only(begin);
        job.pad = pad_, job.stride = stride_;
        job.padded = padded_.data(), job.columns = columns_.data();
        job.used = kind.channels.data();
        job.n_used = static_cast<std::int64_t>(kind.channels.size());
        const std::int64_t rows = windows_.rows_of(begin, end);
        if (end - begin == 1) {
            // One window does not need the channels of all.
            job.used = job.windows.channels + job.windows.first[begin];
            job.n_used = rows;
        }
        job.use_columns = rows >= kFewWindows * job.n_used;
        for (std::int64_t i = 0; i < steps_; i += kWindowSteps) {
            job.step_begin = i, job.step_end = std::min(i + kWindowSteps, steps_);
            target.run_windows(job);
            work += (job.step_end - i) * rows * windows_.length();
            if (work < kPollEvery) continue;
            work = 0;
            if (should_stop(token)) return false;
        }
        return true;
    }

   private:
    const WindowStore& windows_;
    std::int64_t channels_, pad_, stride_, steps_ = 0;
    AlignedArray<double> padded_, columns_;
};

// Counts of the windows [window_begin, window_end) in the series [begin, end).
void window_counts(const WindowStore& windows, Array<const double, 2> values,
                   Array<const std::int64_t, 1> offsets, std::int64_t begin, std::int64_t end,
                   std::int64_t window_begin, std::int64_t window_end, Array<std::int32_t, 3> out,
                   int target_index, CancelToken* token) {
    const Target& target = usable_target(target_index);
    const std::int64_t* offset = offsets.data();
    const auto channels = static_cast<std::int64_t>(values.shape(1));
    const std::size_t row = out.shape(1) * out.shape(2);
    const auto n_thresholds = static_cast<std::int64_t>(out.shape(2));
    bool stopped = false;
    {
        nb::gil_scoped_release nogil;
        std::int64_t longest = 0, work = 0;
        for (std::int64_t p = begin; p < end; ++p)
            longest = std::max(longest, offset[p + 1] - offset[p]);
        PaddedSeries series(windows, longest, channels);
        for (std::int64_t p = begin; p < end && !stopped; ++p) {
            series.read(values.data() + offset[p] * channels, offset[p + 1] - offset[p]);
            WindowJob job{windows.view()};
            job.counts = out.data() + static_cast<std::size_t>(p) * row;
            if (window_end - window_begin == windows.count())
                std::fill_n(job.counts, row, 0);
            else
                for (std::int64_t w = window_begin; w < window_end; ++w)
                    std::fill_n(job.counts + windows.id(w) * n_thresholds, n_thresholds, 0);
            for (std::int64_t w = window_begin; w < window_end && !stopped;) {
                const std::int64_t next = std::min(windows.kind_of(w).end, window_end);
                stopped = !series.run(target, job, w, next, token, work);
                w = next;
            }
        }
    }
    if (stopped && PyErr_Occurred()) throw nb::python_error();
}

// Distances of some windows, given in ascending order, to every step of one series.
void window_distances(const WindowStore& windows, Array<const std::int64_t, 1> which,
                      Array<const double, 2> values, Array<double, 2> out, int target_index) {
    const Target& target = usable_target(target_index);
    const auto steps = static_cast<std::int64_t>(values.shape(0));
    bool stopped = false;
    {
        nb::gil_scoped_release nogil;
        PaddedSeries series(windows, steps, static_cast<std::int64_t>(values.shape(1)));
        series.read(values.data(), steps);
        std::vector<std::int64_t> places, rows(size(windows.count()));
        for (std::size_t k = 0; k < which.size(); ++k) {
            places.push_back(windows.place(which.data()[k]));
            rows[size(places.back())] = static_cast<std::int64_t>(k);
        }
        std::sort(places.begin(), places.end());
        WindowJob job{windows.view()};
        job.windows.id = rows.data();
        job.distances = out.data();
        std::int64_t work = 0;
        for (std::size_t k = 0; k < places.size() && !stopped;) {
            const std::int64_t begin = places[k], last = windows.kind_of(begin).end;
            std::int64_t end = begin;
            for (; k < places.size() && places[k] == end && end < last; ++k) ++end;
            stopped = !series.run(target, job, begin, end, nullptr, work);
        }
    }
    if (stopped) throw nb::python_error();
}

// What windows of one dilation add at the steps that they are centred on is divided evenly among
// the steps that they see. The first and last step, which repeat beyond the ends of the series,
// count once.
void add_to_seen(const std::vector<double>& centred, std::int64_t dilation, std::int64_t length,
                 std::int64_t steps, double* terms) {
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

// Divides what some windows, given in ascending order, add to the decision values of one series:
// weights[w][k] at a step that meets k thresholds of window w, evenly among the different steps
// that it is compared with and its channels. `terms` has the shape (steps, channels, problems), and
// `totals`, the sum of each window, (windows, problems).
void window_attribution(const WindowStore& windows, Array<const std::int64_t, 1> which,
                        Array<const double, 2> distances, Array<const double, 3> weights,
                        Array<double, 3> terms, Array<double, 2> totals) {
    nb::gil_scoped_release nogil;
    const Windows all = windows.view();
    const auto steps = static_cast<std::int64_t>(terms.shape(0));
    const auto problems = static_cast<std::int64_t>(terms.shape(2));
    const auto row = static_cast<std::int64_t>(terms.shape(1)) * problems;
    const std::int64_t n_levels = all.n_thresholds + 1;
    std::vector<double> centred(size(steps * row)), shares(size(n_levels * problems));
    std::vector<std::int64_t> met(size(n_levels));
    for (std::size_t w = 0; w < which.size(); ++w) {
        const std::int64_t id = which.data()[w], place = windows.place(id);
        const double* found = distances.data() + static_cast<std::int64_t>(w) * steps;
        const double* limits = all.thresholds + place * all.n_thresholds;
        const double* own = weights.data() + id * n_levels * problems;
        const std::int64_t first = all.first[place], last = all.first[place + 1];
        for (std::size_t s = 0; s < shares.size(); ++s)
            shares[s] = own[s] / static_cast<double>(last - first);
        std::fill(met.begin(), met.end(), 0);
        for (std::int64_t i = 0; i < steps; ++i) {
            std::int64_t level = 0;
            for (std::int64_t t = 0; t < all.n_thresholds; ++t) level += found[i] <= limits[t];
            ++met[size(level)];
            const double* share = shares.data() + level * problems;
            for (std::int64_t c = first; c < last; ++c) {
                double* out = centred.data() + i * row + all.channels[c] * problems;
                for (std::int64_t p = 0; p < problems; ++p) out[p] += share[p];
            }
        }
        // From counts of levels: series in which they are the same have equal sums.
        double* total = totals.data() + id * problems;
        std::fill_n(total, problems, 0.0);
        for (std::int64_t level = 0; level < n_levels; ++level)
            for (std::int64_t p = 0; p < problems; ++p)
                total[p] += static_cast<double>(met[size(level)]) * own[level * problems + p];
        const std::int64_t dilation = windows.dilation(place);
        if (w + 1 < which.size() &&
            windows.dilation(windows.place(which.data()[w + 1])) == dilation)
            continue;
        add_to_seen(centred, dilation, all.length, steps, terms.data());
        std::fill(centred.begin(), centred.end(), 0.0);
    }
}

}  // namespace

void bind_windows(nb::module_& m) {
    nb::class_<WindowStore>(m, "Windows")
        .def(nb::init<Array<const double, 2>, Array<const std::int64_t, 1>,
                      Array<const std::int64_t, 1>, Array<const std::int64_t, 1>,
                      Array<const bool, 1>, Array<const double, 2>, Array<const double, 1>,
                      Array<const double, 1>>(),
             "values"_a, "first"_a, "channels"_a, "dilation"_a, "shape_only"_a, "thresholds"_a,
             "centre"_a, "spread"_a)
        .def_prop_ro("first", &WindowStore::first);
    m.def("window_counts", &window_counts, "windows"_a, "values"_a, "offsets"_a, "begin"_a, "end"_a,
          "window_begin"_a, "window_end"_a, "out"_a.noconvert(), "target"_a, "token"_a.none());
    m.def("window_distances", &window_distances, "windows"_a, "which"_a, "values"_a,
          "out"_a.noconvert(), "target"_a);
    m.def("window_attribution", &window_attribution, "windows"_a, "which"_a, "distances"_a,
          "weights"_a, "terms"_a.noconvert(), "totals"_a.noconvert());
}

}  // namespace slts
