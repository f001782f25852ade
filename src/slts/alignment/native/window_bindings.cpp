#include "window_bindings.hpp"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cancel.hpp"
#include "storage.hpp"
#include "targets.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace slts {
namespace {

template <class T, int N>
using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

// Added to the variance of a window, where that of a channel is 1: noise is not scaled up to a shape.
constexpr double kFlat = 1e-2;
// As in series/channels.py: scaled values are clipped here, so that their squares stay finite.
constexpr double kFar = 1e140;
// Operations between two checks for an interrupt: about 30 ms.
constexpr std::int64_t kPollEvery = 200'000'000;

// Windows in ascending order of their dilations, and the scale of the series that they are compared
// with: (x - centre) / spread for each channel. The values of the windows are scaled already.
class WindowStore {
   public:
    WindowStore(Array<const double, 2> values, Array<const std::int64_t, 1> first,
                Array<const std::int64_t, 1> channels, Array<const std::int64_t, 1> dilation,
                Array<const bool, 1> shape_only, Array<const double, 2> thresholds,
                Array<const double, 1> centre, Array<const double, 1> spread)
        : values_(values.data(), values.data() + values.size()),
          first_(first.data(), first.data() + first.size()),
          channels_(channels.data(), channels.data() + channels.size()),
          dilation_(dilation.data(), dilation.data() + dilation.size()),
          shape_only_(shape_only.data(), shape_only.data() + shape_only.size()),
          thresholds_(thresholds.data(), thresholds.data() + thresholds.size()),
          centre_(centre.data(), centre.data() + centre.size()),
          spread_(spread.data(), spread.data() + spread.size()),
          length_(static_cast<std::int64_t>(values.shape(1))),
          n_thresholds_(static_cast<std::int64_t>(thresholds.shape(1))) {
        for (std::int64_t w = 0; w < count(); ++w) {
            double sum = 0.0;
            const std::int64_t end = first_[size(w + 1)] * length_;
            for (std::int64_t k = first_[size(w)] * length_; k < end; ++k)
                sum += values_[size(k)] * values_[size(k)];
            energy_.push_back(sum);
        }
    }

    std::int64_t count() const { return static_cast<std::int64_t>(dilation_.size()); }
    // Steps beyond the ends of a series of n steps that a window reaches.
    std::int64_t reach(std::int64_t n) const {
        return dilation_.empty() ? 0 : length_ / 2 * std::min(dilation_.back(), n);
    }
    std::int64_t values_of(std::int64_t begin, std::int64_t end) const {
        return (first_[size(end)] - first_[size(begin)]) * length_;
    }
    double scaled(double x, std::int64_t channel) const {
        const double y = (x - centre_[size(channel)]) / spread_[size(channel)];
        return std::min(std::max(y, -kFar), kFar);
    }
    std::int64_t length() const { return length_; }
    std::int64_t dilation(std::int64_t w) const { return dilation_[size(w)]; }

    // The end of the windows from `w` on that have the same dilation.
    std::int64_t same_dilation(std::int64_t w) const {
        return std::upper_bound(dilation_.begin() + w, dilation_.end(), dilation(w)) -
               dilation_.begin();
    }

    // Channels that the windows [begin, end) compare by their shape.
    std::vector<std::int64_t> shape_channels(std::int64_t begin, std::int64_t end) const {
        std::vector<std::int64_t> used;
        for (std::int64_t w = begin; w < end; ++w)
            if (shape_only_[size(w)] != 0)
                used.insert(used.end(), channels_.begin() + first_[size(w)],
                            channels_.begin() + first_[size(w + 1)]);
        std::sort(used.begin(), used.end());
        used.erase(std::unique(used.begin(), used.end()), used.end());
        return used;
    }

    Windows view() const {
        return {values_.data(),     first_.data(),  channels_.data(),   dilation_.data(),
                shape_only_.data(), energy_.data(), thresholds_.data(), length_,
                n_thresholds_};
    }

   private:
    static std::size_t size(std::int64_t k) { return static_cast<std::size_t>(k); }
    std::vector<double> values_;
    std::vector<std::int64_t> first_, channels_, dilation_;
    std::vector<std::uint8_t> shape_only_;
    std::vector<double> thresholds_, centre_, spread_, energy_;
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
          padded_(static_cast<std::size_t>(stride_ * channels)),
          norm_(static_cast<std::size_t>(kWindowSteps * channels)),
          scale_(static_cast<std::size_t>(kWindowSteps * channels)) {}

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

    // Runs the windows [begin, end), which have the same dilation; false if the call must stop.
    // `job` has the outputs; `work` counts operations since the last poll.
    bool run(const Target& target, WindowJob job, std::int64_t begin, std::int64_t end,
             CancelToken* token, std::int64_t& work) {
        job.windows = windows_.view();
        job.begin = begin, job.end = end;
        job.dilation = std::min(windows_.dilation(begin), steps_);
        job.pad = pad_, job.stride = stride_, job.shape_stride = kWindowSteps;
        job.padded = padded_.data(), job.shape_norm = norm_.data(), job.shape_scale = scale_.data();
        const std::vector<std::int64_t> shapes = windows_.shape_channels(begin, end);
        for (std::int64_t i = 0; i < steps_; i += kWindowSteps) {
            job.step_begin = i, job.step_end = std::min(i + kWindowSteps, steps_);
            standardise(shapes, job);
            target.run_windows(job);
            work += (job.step_end - i) * windows_.values_of(begin, end);
            if (work < kPollEvery) continue;
            work = 0;
            if (should_stop(token)) return false;
        }
        return true;
    }

   private:
    // Prepares some steps for windows that are compared by their shape.
    void standardise(const std::vector<std::int64_t>& channels, const WindowJob& job) {
        const std::int64_t length = windows_.length(), steps = job.step_end - job.step_begin;
        const double share = 1.0 / static_cast<double>(length);
        for (const std::int64_t c : channels) {
            const double* x =
                padded_.data() + c * stride_ + pad_ + job.step_begin - length / 2 * job.dilation;
            double *norm = norm_.data() + c * kWindowSteps,
                   *scale = scale_.data() + c * kWindowSteps;
            std::fill_n(norm, steps, 0.0);
            std::fill_n(scale, steps, 0.0);
            for (std::int64_t k = 0; k < length; ++k)
                for (std::int64_t i = 0; i < steps; ++i) scale[i] += x[k * job.dilation + i];
            for (std::int64_t i = 0; i < steps; ++i) scale[i] *= share;  // the mean
            for (std::int64_t k = 0; k < length; ++k)
                for (std::int64_t i = 0; i < steps; ++i) {
                    const double apart = x[k * job.dilation + i] - scale[i];
                    norm[i] += apart * apart;
                }
            for (std::int64_t i = 0; i < steps; ++i) {
                const double inverse = 1.0 / (norm[i] * share + kFlat);
                norm[i] *= inverse;
                scale[i] = 2.0 * std::sqrt(inverse);
            }
        }
    }

    const WindowStore& windows_;
    std::int64_t channels_, pad_, stride_, steps_ = 0;
    AlignedArray<double> padded_, norm_, scale_;
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
    bool stopped = false;
    {
        nb::gil_scoped_release nogil;
        std::int64_t longest = 0, work = 0;
        for (std::int64_t p = begin; p < end; ++p)
            longest = std::max(longest, offset[p + 1] - offset[p]);
        PaddedSeries series(windows, longest, channels);
        for (std::int64_t p = begin; p < end && !stopped; ++p) {
            series.read(values.data() + offset[p] * channels, offset[p + 1] - offset[p]);
            WindowJob job;
            job.counts = out.data() + static_cast<std::size_t>(p) * row;
            std::fill(job.counts + window_begin * static_cast<std::int64_t>(out.shape(2)),
                      job.counts + window_end * static_cast<std::int64_t>(out.shape(2)), 0);
            for (std::int64_t w = window_begin; w < window_end && !stopped;) {
                const std::int64_t next = std::min(windows.same_dilation(w), window_end);
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
        std::vector<double> found(static_cast<std::size_t>(steps + kWindowSlack));
        WindowJob job;
        job.distances = found.data();
        std::int64_t work = 0;
        double* row = out.data();
        for (std::size_t k = 0; k < which.size() && !stopped; ++k, row += steps) {
            const std::int64_t w = which.data()[k];
            stopped = !series.run(target, job, w, w + 1, nullptr, work);
            std::copy_n(found.data(), steps, row);
        }
    }
    if (stopped) throw nb::python_error();
}

}  // namespace

void bind_windows(nb::module_& m) {
    nb::class_<WindowStore>(m, "Windows")
        .def(nb::init<Array<const double, 2>, Array<const std::int64_t, 1>,
                      Array<const std::int64_t, 1>, Array<const std::int64_t, 1>,
                      Array<const bool, 1>, Array<const double, 2>, Array<const double, 1>,
                      Array<const double, 1>>(),
             "values"_a, "first"_a, "channels"_a, "dilation"_a, "shape_only"_a, "thresholds"_a,
             "centre"_a, "spread"_a);
    m.def("window_counts", &window_counts, "windows"_a, "values"_a, "offsets"_a, "begin"_a, "end"_a,
          "window_begin"_a, "window_end"_a, "out"_a.noconvert(), "target"_a, "token"_a.none());
    m.def("window_distances", &window_distances, "windows"_a, "which"_a, "values"_a,
          "out"_a.noconvert(), "target"_a);
}

}  // namespace slts
