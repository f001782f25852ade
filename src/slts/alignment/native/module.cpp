// Python bindings. The caller (cpu.py) has validated all arguments, except those of `align_pair`.
#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <numpy/arrayobject.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bindings.hpp"
#include "pair.hpp"
#include "storage.hpp"
#include "targets.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace slts {
namespace {

using Indices = std::tuple<std::int64_t, std::int64_t>;
using Offsets = Array<const std::int64_t, 1>;
using Values = Array<const double, 2>;
using Shift = std::optional<Array<const double, 1>>;

Series series_of(const Values& values, const Offsets& offsets, const Shift& shift) {
    return {values.data(), offsets.data(), size(offsets.shape(0)) - 1, size(values.shape(1)),
            shift ? shift->data() : nullptr};
}

// Runs without the GIL. Returns the series and the landmark that the band admits no path between,
// or None.
template <class T>
std::optional<Indices> run(Job<T>& job, const Target& target, CancelToken* token) {
    Scratch<T> scratch(job, target.width<T>());
    job.work = scratch.view();
    const Result result = without_gil(token, [&](Poll poll) {
        job.poll = poll;
        return target.run(job);
    });
    if (result.outcome != Outcome::no_path) return std::nullopt;
    return Indices{result.series, result.landmark};
}

// Binds a reduction. `set` adds its arrays A to the job.
template <class T, class... A, class Set>
void bind_reduction(nb::module_& m, const char* name, Reduction reduction, Set set) {
    m.def(
        name,
        [=](const RowStore<T>& series, const LandmarkStore<T>& landmarks, Indices packs,
            std::tuple<std::int64_t, double> band, A... arrays, const Target& target,
            CancelToken* token) {
            Job<T> job;
            job.series = series.view(), job.landmarks = landmarks.view();
            job.n_series = series.count();
            job.pack_begin = std::get<0>(packs), job.pack_end = std::get<1>(packs);
            job.band = {std::get<0>(band), std::get<1>(band)};
            job.reduction = reduction;
            set(job, arrays...);
            return run(job, target, token);
        },
        nb::arg(), nb::arg(), nb::arg(), nb::arg(),
        (static_cast<void>(sizeof(A)), nb::arg().noconvert())..., nb::arg(), nb::arg().none());
}

template <class T>
void bind(nb::module_& m, const char* rows_name, const char* landmarks_name) {
    using X = RowStore<T>;
    using Y = LandmarkStore<T>;
    nb::class_<X>(m, rows_name)
        .def(
            "__init__",
            [](X* self, Values values, Offsets offsets, Shift shift) {
                nb::gil_scoped_release nogil;
                new (self) X(series_of(values, offsets, shift));
            },
            "values"_a.noconvert(), "offsets"_a, "shift"_a.none());
    nb::class_<Y>(m, landmarks_name)
        .def(
            "__init__",
            [](Y* self, Values values, Offsets offsets, Shift shift, std::int64_t width,
               std::optional<Values> basis) {
                new (self) Y(series_of(values, offsets, shift), width,
                             basis ? basis->data() : nullptr, basis ? size(basis->shape(1)) : 0);
            },
            "values"_a.noconvert(), "offsets"_a, "shift"_a.none(), "width"_a, "basis"_a.none())
        .def_prop_ro("summed_stride", [](const Y& y) { return y.view().summed.stride; })
        .def_prop_ro("pack_columns", [](const Y& y) {
            std::vector<std::int64_t> columns;
            for (const PackInfo& p : y.packs()) columns.push_back(p.columns * p.width);
            return columns;
        });

    bind_reduction<T, Array<T, 2>, Array<std::int32_t, 2>>(
        m, "score", Reduction::score, [](Job<T>& job, auto& values, auto& lengths) {
            job.values = values.data(), job.lengths = lengths.data();
        });
    bind_reduction<T, Array<T, 4>>(m, "products", Reduction::products,
                                   [](Job<T>& job, auto& out) { job.out = out.data(); });
    bind_reduction<T, Array<const T, 2>, Array<T, 5>>(
        m, "grouped", Reduction::grouped, [](Job<T>& job, auto& weights, auto& out) {
            job.weights = weights.data(), job.out = out.data();
            job.n_outer = size(weights.shape(0)), job.n_phases = size(out.shape(2));
        });
    bind_reduction<T, Array<const T, 3>, Array<T, 3>>(
        m, "projected", Reduction::projected, [](Job<T>& job, auto& metrics, auto& out) {
            job.matrices = metrics.data(), job.out = out.data();
            job.n_outer = size(metrics.shape(0));
        });
    bind_reduction<T, Array<T, 5>>(m, "sums", Reduction::sums, [](Job<T>& job, auto& out) {
        job.out = out.data(), job.n_phases = size(out.shape(2));
    });
}

// Operations of a pair that is aligned in some microseconds.
constexpr std::int64_t kShortPair = 20'000;
// Pairs of steps beyond which the memory is checked: to find out the limit takes long.
constexpr std::int64_t kLongPair = 1'000'000'000;

// Reads an array of float64, (channels, time) or (time,), through NumPy's own API: the conversion
// to an `nb::ndarray` takes as long as a short alignment. `data` is null for everything else.
StridedSeries strided(nb::handle value) {
    StridedSeries series;
    if (!PyArray_CheckExact(value.ptr())) return series;
    auto* array = reinterpret_cast<PyArrayObject*>(value.ptr());
    const int axes = PyArray_NDIM(array);
    if (axes < 1 || axes > 2 || PyArray_TYPE(array) != NPY_DOUBLE || !PyArray_ISBEHAVED_RO(array))
        return series;
    series.steps = PyArray_DIM(array, axes - 1), series.to_step = PyArray_STRIDE(array, axes - 1);
    if (axes == 2)
        series.channels = PyArray_DIM(array, 0), series.to_channel = PyArray_STRIDE(array, 0);
    series.data = PyArray_BYTES(array);
    return series;
}

std::optional<Objective> objective_of(nb::handle name) {
    const std::tuple<const char*, Objective> names[] = {{"affinity", Objective::affinity},
                                                        {"cost", Objective::cost},
                                                        {"distance", Objective::distance}};
    if (PyUnicode_Check(name.ptr()))
        for (const auto& [text, objective] : names)
            if (PyUnicode_CompareWithASCIIString(name.ptr(), text) == 0) return objective;
    return std::nullopt;
}

// Returns the path of one pair, shape (length, 2), its length and the mean affinity, as
// `result_type`. Returns None if a series or a setting is invalid or the band admits no path; the
// caller finds out which. `check_memory` is called with the lengths of a long pair.
nb::object align_pair(nb::handle one, nb::handle other, nb::handle objective_name, bool normalize,
                      std::int64_t radius, double slope, double largest_norm, double far_spreads,
                      nb::handle check_memory, nb::handle result_type) {
    const Target& target = selected_target();
    const StridedSeries a = strided(one), b = strided(other);
    const std::optional<Objective> objective = objective_of(objective_name);
    if (a.data == nullptr || b.data == nullptr || !objective) return nb::none();
    const std::int64_t d = a.channels, n = a.steps, m = b.steps;
    if (d == 0 || d != b.channels || n == 0 || m == 0) return nb::none();
    if (n * m > kLongPair) check_memory(n, m);
    PairAlignment pair;
    Outcome outcome;
    {
        // To release the GIL and to get it back takes as long as a short alignment.
        std::optional<nb::gil_scoped_release> nogil;
        if (n * m * (d + 4) > kShortPair) nogil.emplace();
        outcome =
            pair.run(a, b, {*objective, normalize, {radius, slope}, largest_norm, far_spreads},
                     target, poll_python(nullptr));
    }
    if (outcome == Outcome::stopped) throw nb::python_error();
    if (outcome == Outcome::no_path) return nb::none();
    npy_intp shape[] = {pair.length(), 2};
    const nb::object path = nb::steal(PyArray_SimpleNew(2, shape, NPY_INT64));
    if (!path.is_valid()) throw nb::python_error();
    pair.write_path(
        static_cast<std::int64_t*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(path.ptr()))));
    // `tuple.__new__(result_type, (path, length, similarity))`. The constructor of a named tuple
    // takes a tenth of the time of a short alignment.
    const nb::tuple fields = nb::make_tuple(path, pair.length(), pair.mean_affinity()),
                    arguments = nb::make_tuple(fields);
    auto* type = reinterpret_cast<PyTypeObject*>(result_type.ptr());
    nb::object aligned = nb::steal(PyTuple_Type.tp_new(type, arguments.ptr(), nullptr));
    if (!aligned.is_valid()) throw nb::python_error();
    return aligned;
}

}  // namespace
}  // namespace slts

NB_MODULE(_native, m) {
    if (_import_array() < 0) throw nb::python_error();
    using namespace slts;
    // Models may live until Python ends.
    nb::set_leak_warnings(false);
    m.doc() = "DTW recurrence and its reductions; see slts.alignment.aligner.";
    nb::class_<CancelToken>(m, "CancelToken").def(nb::init<>()).def("cancel", [](CancelToken& t) {
        t.cancelled = true;
    });
    nb::class_<Target>(m, "Target")
        .def_prop_ro("name", [](const Target& target) { return target.name; })
        .def(
            "width",
            [](const Target& target, const std::string& dtype) {
                return dtype == "float32" ? target.width<float>() : target.width<double>();
            },
            "dtype"_a);
    m.def("available_targets", &usable_targets, nb::rv_policy::reference);
    m.def("selected_target", &selected_target, nb::rv_policy::reference);
    m.def("align_pair", &align_pair, "a"_a.none(), "b"_a.none(), "objective"_a.none(),
          "normalize"_a, "radius"_a, "slope"_a, "largest_norm"_a, "far_spreads"_a, "check_memory"_a,
          "result_type"_a);
    bind_windows(m);
    bind<float>(m, "Rows32", "Landmarks32");
    bind<double>(m, "Rows64", "Landmarks64");
}
