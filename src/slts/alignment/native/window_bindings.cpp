#include "window_bindings.hpp"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "storage.hpp"
#include "targets.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace slts {
namespace {

template <class T, int N>
using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

// Variances below this are rounding of flat parts: their standardised values are nearly zero.
constexpr double kFlat = 1e-6;

// Windows in ascending order of their dilations.
class WindowStore {
   public:
    WindowStore(Array<const double, 2> values, Array<const std::int64_t, 1> first,
                Array<const std::int64_t, 1> channels, Array<const std::int64_t, 1> dilation,
                Array<const bool, 1> shape_only, Array<const double, 2> thresholds)
        : values_(values.data(), values.data() + values.size()),
          first_(first.data(), first.data() + first.size()),
          channels_(channels.data(), channels.data() + channels.size()),
          dilation_(dilation.data(), dilation.data() + dilation.size()),
          shape_only_(shape_only.data(), shape_only.data() + shape_only.size()),
          thresholds_(thresholds.data(), thresholds.data() + thresholds.size()),
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
    std::int64_t pad() const {
        return dilation_.empty() ? 0 : length_ / 2 * dilation_.back();
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
    std::vector<double> thresholds_, energy_;
    std::int64_t length_, n_thresholds_;
};

// One series, channel by channel, with its edge values repeated on both sides.
class PaddedSeries {
   public:
    PaddedSeries(std::int64_t longest, std::int64_t channels, std::int64_t pad)
        : channels_(channels),
          pad_(pad),
          stride_(longest + 2 * pad + kWindowSlack),
          padded_(static_cast<std::size_t>(stride_ * channels)),
          norm_(static_cast<std::size_t>(stride_ * channels)),
          scale_(static_cast<std::size_t>(stride_ * channels)) {}

    void read(const double* rows, std::int64_t steps) {
        steps_ = steps;
        for (std::int64_t c = 0; c < channels_; ++c) {
            double* out = padded_.data() + c * stride_;
            std::fill_n(out, pad_, rows[c]);
            for (std::int64_t i = 0; i < steps; ++i) out[pad_ + i] = rows[i * channels_ + c];
            std::fill_n(out + pad_ + steps, pad_ + kWindowSlack, rows[(steps - 1) * channels_ + c]);
        }
    }

    // Prepares windows that are compared by their shape.
    void standardise(const std::vector<std::int64_t>& channels, std::int64_t length,
                     std::int64_t dilation) {
        const double share = 1.0 / static_cast<double>(length);
        for (const std::int64_t c : channels) {
            const double* x = padded_.data() + c * stride_ + pad_ - length / 2 * dilation;
            double *norm = norm_.data() + c * stride_, *scale = scale_.data() + c * stride_;
            std::fill_n(norm, steps_, 0.0);
            std::fill_n(scale, steps_, 0.0);
            for (std::int64_t k = 0; k < length; ++k)
                for (std::int64_t i = 0; i < steps_; ++i) scale[i] += x[k * dilation + i];
            for (std::int64_t i = 0; i < steps_; ++i) scale[i] *= share;  // the mean
            for (std::int64_t k = 0; k < length; ++k)
                for (std::int64_t i = 0; i < steps_; ++i) {
                    const double apart = x[k * dilation + i] - scale[i];
                    norm[i] += apart * apart;
                }
            for (std::int64_t i = 0; i < steps_; ++i) {
                const double inverse = 1.0 / (norm[i] * share + kFlat);
                norm[i] *= inverse;
                scale[i] = 2.0 * std::sqrt(inverse);
            }
        }
    }

    WindowJob job(const WindowStore& windows, std::int64_t begin, std::int64_t end) const {
        WindowJob job;
        job.windows = windows.view();
        job.begin = begin, job.end = end;
        job.n_steps = steps_, job.pad = pad_, job.stride = stride_;
        job.padded = padded_.data(), job.shape_norm = norm_.data(), job.shape_scale = scale_.data();
        return job;
    }

   private:
    std::int64_t channels_, pad_, stride_, steps_ = 0;
    AlignedArray<double> padded_, norm_, scale_;
};

void window_counts(const WindowStore& windows, Array<const double, 2> values,
                   Array<const std::int64_t, 1> offsets, std::int64_t begin, std::int64_t end,
                   Array<std::int32_t, 3> out, int target_index) {
    const Target& target = usable_target(target_index);
    const std::int64_t* offset = offsets.data();
    const auto channels = static_cast<std::int64_t>(values.shape(1));
    std::int32_t* counts = out.data();
    const std::size_t row = out.shape(1) * out.shape(2);
    nb::gil_scoped_release nogil;
    std::int64_t longest = 0;
    for (std::int64_t p = begin; p < end; ++p) longest = std::max(longest, offset[p + 1] - offset[p]);
    PaddedSeries series(longest, channels, windows.pad());
    for (std::int64_t p = begin; p < end; ++p, counts += row) {
        series.read(values.data() + offset[p] * channels, offset[p + 1] - offset[p]);
        for (std::int64_t w = 0; w < windows.count();) {
            const std::int64_t next = windows.same_dilation(w);
            series.standardise(windows.shape_channels(w, next), windows.length(),
                               windows.dilation(w));
            WindowJob job = series.job(windows, w, next);
            job.counts = counts;
            target.run_windows(job);
            w = next;
        }
    }
}

// Distances of some windows, given in ascending order, to every step of one series.
void window_distances(const WindowStore& windows, Array<const std::int64_t, 1> which,
                      Array<const double, 2> values, Array<double, 2> out, int target_index) {
    const Target& target = usable_target(target_index);
    const auto steps = static_cast<std::int64_t>(values.shape(0));
    const std::int64_t *wanted = which.data(), *end = wanted + which.size();
    double* row = out.data();
    nb::gil_scoped_release nogil;
    PaddedSeries series(steps, static_cast<std::int64_t>(values.shape(1)), windows.pad());
    series.read(values.data(), steps);
    std::vector<double> found(static_cast<std::size_t>(steps + kWindowSlack));
    std::int64_t begin = 0, next = 0;
    for (; wanted != end; ++wanted, row += steps) {
        if (*wanted >= next) {
            begin = *wanted, next = windows.same_dilation(begin);
            series.standardise(windows.shape_channels(begin, next), windows.length(),
                               windows.dilation(begin));
        }
        WindowJob job = series.job(windows, *wanted, *wanted + 1);
        job.distances = found.data();
        target.run_windows(job);
        std::copy_n(found.data(), steps, row);
    }
}

}  // namespace

void bind_windows(nb::module_& m) {
    nb::class_<WindowStore>(m, "Windows")
        .def(nb::init<Array<const double, 2>, Array<const std::int64_t, 1>,
                      Array<const std::int64_t, 1>, Array<const std::int64_t, 1>,
                      Array<const bool, 1>, Array<const double, 2>>(),
             "values"_a, "first"_a, "channels"_a, "dilation"_a, "shape_only"_a, "thresholds"_a);
    m.def("window_counts", &window_counts, "windows"_a, "values"_a, "offsets"_a, "begin"_a, "end"_a,
          "out"_a.noconvert(), "target"_a);
    m.def("window_distances", &window_distances, "windows"_a, "which"_a, "values"_a,
          "out"_a.noconvert(), "target"_a);
}

}  // namespace slts
