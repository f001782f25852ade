// Python bindings of the window kernel. The caller has checked all arguments.
#include <nanobind/stl/vector.h>

#include <vector>

#include "bindings.hpp"
#include "window_reductions.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace slts {
namespace {

using Ids = Array<const std::int64_t, 1>;

std::vector<std::int64_t> as_vector(const Ids& ids) {
    return {ids.data(), ids.data() + ids.size()};
}

void make_windows(WindowStore* self, Array<const double, 2> values, Ids first, Ids channels,
                  Ids dilations, Array<const bool, 1> averaged, Array<const bool, 1> shape_only,
                  Array<const double, 2> thresholds, Array<const double, 1> centre,
                  Array<const double, 1> spread) {
    const Windows<double> windows{values.data(), first.data(),          channels.data(),
                                  nullptr,       size(values.shape(1)), size(thresholds.shape(1))};
    std::vector<Comparison> comparisons;
    for (std::size_t w = 0; w < dilations.size(); ++w)
        comparisons.push_back({dilations(w), averaged(w), shape_only(w)});
    new (self) WindowStore(windows, thresholds.data(), comparisons,
                           {{centre.data(), centre.data() + centre.size()},
                            {spread.data(), spread.data() + spread.size()}});
}

void counts(const WindowStore& windows, Array<const double, 2> values,
            Array<const std::int64_t, 1> offsets, std::int64_t begin, std::int64_t end,
            std::int64_t window_begin, std::int64_t window_end, Array<std::int32_t, 3> out,
            const Target& target, CancelToken* token) {
    const Series series{values.data(), offsets.data() + begin, end - begin, size(values.shape(1))};
    std::int32_t* rows = out.data() + begin * size(out.shape(1) * out.shape(2));
    without_gil(token, [&](Poll poll) {
        return count_windows(windows, series, {window_begin, window_end}, rows, target, poll);
    });
}

template <class T>
void rows(const WindowStore& windows, Ids ids, Array<const double, 2> values,
          const WindowJob<T>& job, const Target& target) {
    const std::int64_t offsets[] = {0, size(values.shape(0))};
    const Series series{values.data(), offsets, 1, size(values.shape(1))};
    without_gil(nullptr, [&](Poll poll) {
        return window_rows(windows, as_vector(ids), series, job, target, poll);
    });
}

void distances(const WindowStore& windows, Ids ids, Array<const double, 2> values,
               Array<double, 2> out, const Target& target) {
    WindowJob<double> job;
    job.distances = out.data();
    rows(windows, ids, values, job, target);
}

void met(const WindowStore& windows, Ids ids, Array<const double, 2> values,
         Array<std::uint8_t, 2> out, const Target& target) {
    WindowJob<float> job;
    job.met = out.data();
    rows(windows, ids, values, job, target);
}

void attribution(const WindowStore& windows, Ids ids, Array<const std::uint8_t, 2> met,
                 Array<const double, 3> weights, Array<double, 3> terms, Array<double, 2> totals,
                 const Target& target) {
    nb::gil_scoped_release nogil;
    attribute_windows(windows, as_vector(ids),
                      {size(terms.shape(1)), size(terms.shape(0)), size(terms.shape(2)), met.data(),
                       weights.data(), terms.data(), totals.data()},
                      target);
}

}  // namespace

void bind_windows(nb::module_& m) {
    m.attr("WINDOW_FLATNESS") = kWindowFlatness;
    nb::class_<WindowStore>(m, "Windows")
        .def("__init__", &make_windows, "values"_a, "first"_a, "channels"_a, "dilations"_a,
             "averaged"_a, "shape_only"_a, "thresholds"_a, "centre"_a, "spread"_a)
        .def_prop_ro("first", &WindowStore::first);
    m.def("window_counts", &counts, "windows"_a, "values"_a, "offsets"_a, "begin"_a, "end"_a,
          "window_begin"_a, "window_end"_a, "out"_a.noconvert(), "target"_a, "token"_a.none());
    m.def("window_distances", &distances, "windows"_a, "which"_a, "values"_a, "out"_a.noconvert(),
          "target"_a);
    m.def("window_met", &met, "windows"_a, "which"_a, "values"_a, "out"_a.noconvert(), "target"_a);
    m.def("window_attribution", &attribution, "windows"_a, "which"_a, "met"_a, "weights"_a,
          "terms"_a.noconvert(), "totals"_a.noconvert(), "target"_a);
}

}  // namespace slts
