// Python bindings. The caller (cpu.py) has validated all arguments, except those of `align_pair`.
#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <numpy/arrayobject.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "cancel.hpp"
#include "storage.hpp"
#include "targets.hpp"
#include "window_bindings.hpp"
#define SLTS_TARGET common
#include "band.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace slts {
namespace {

template <class T>
RowStore<T> make_rows(Array<const double, 2> values, Array<const std::int64_t, 1> offsets,
                      std::optional<Array<const double, 1>> shift) {
    return RowStore<T>(values.data(), offsets.data(),
                       static_cast<std::int64_t>(offsets.shape(0)) - 1,
                       static_cast<std::int64_t>(values.shape(1)), shift ? shift->data() : nullptr);
}

// What `grouped` sums if there is a basis (channels x directions): the rows times the basis. Each
// row is computed alone, so that its bits do not depend on the others.
template <class T>
std::optional<RowStore<T>> make_summed(Array<const double, 2> values,
                                       Array<const std::int64_t, 1> offsets,
                                       std::optional<Array<const double, 2>> basis) {
    if (!basis) return std::nullopt;
    const std::size_t steps = values.shape(0), d = values.shape(1), r = basis->shape(1);
    std::vector<double> products(steps * r, 0.0);
    for (std::size_t i = 0; i < steps; ++i)
        for (std::size_t k = 0; k < d; ++k)
            for (std::size_t c = 0; c < r; ++c)
                products[i * r + c] += values.data()[i * d + k] * basis->data()[k * r + c];
    return RowStore<T>(products.data(), offsets.data(),
                       static_cast<std::int64_t>(offsets.shape(0)) - 1,
                       static_cast<std::int64_t>(r), nullptr);
}

template <class T>
Result run_on(const Target& target, const Job<T>& job) {
    if constexpr (sizeof(T) == 4)
        return target.run_float(job);
    else
        return target.run_double(job);
}

struct Block {
    std::int64_t series_begin, series_end, pack_begin, pack_end;
};

template <class T>
Job<T> make_job(const RowStore<T>& x, const LandmarkStore<T>& y, Block block, Band band,
                Reduction reduction) {
    Job<T> job;
    job.series = x.view();
    job.landmarks = y.view();
    job.series_begin = block.series_begin, job.series_end = block.series_end;
    job.pack_begin = block.pack_begin, job.pack_end = block.pack_end;
    job.band = band;
    job.reduction = reduction;
    return job;
}

// Allocates scratch memory and runs without the GIL. Returns (outcome, series, landmark).
template <class T>
std::tuple<int, std::int64_t, std::int64_t> execute(Job<T>& job, const RowStore<T>& x,
                                                    const LandmarkStore<T>& y, int target_index,
                                                    CancelToken* token) {
    const Target& target = usable_target(target_index);
    const bool traced = job.reduction != Reduction::score;
    std::int64_t n = 1;
    for (std::int64_t p = job.series_begin; p < job.series_end; ++p) n = std::max(n, x.length(p));
    const auto size = [](std::int64_t s) { return static_cast<std::size_t>(s); };
    const std::int64_t wide = y.widest_frontier(), tiles = (n + kTileRows - 1) / kTileRows;
    const std::int64_t width = std::max(target.width_float, target.width_double);
    const bool grouped = job.reduction == Reduction::grouped;
    const std::int64_t stride = grouped || job.reduction == Reduction::sums
                                    ? job.landmarks.summed.stride
                                    : job.series.stride;
    const std::int64_t parts = grouped ? job.n_outer * job.n_phases : 1;
    AlignedArray<T> frontier(size(wide));
    AlignedArray<typename IntOf<T>::type> lengths(size(traced ? 0 : wide));
    AlignedArray<T> bounds(size(job.band.kind == Band::none ? 0 : n * 2 * width));
    AlignedArray<std::uint8_t> moves(size(traced ? tiles * wide : 0));
    AlignedArray<std::int32_t> ends(size(traced ? kWalks * walk_size(n) : 0));
    AlignedArray<T> sums(size(traced ? parts * n * stride : 0));
    std::vector<Span> touched(size(grouped ? parts : 0));
    AlignedArray<T> zeros(size(traced ? stride : 0));
    AlignedArray<T> product(size(traced ? job.series.channels * stride : 0));
    job.work = {frontier.data(), lengths.data(), bounds.data(), moves.data(),  ends.data(),
                sums.data(),     touched.data(), zeros.data(),  product.data()};
    job.poll = should_stop;
    job.poll_context = token;
    Result result;
    {
        nb::gil_scoped_release nogil;
        result = run_on(target, job);
    }
    if (result.outcome == Outcome::stopped && PyErr_Occurred()) throw nb::python_error();
    return {static_cast<int>(result.outcome), result.series, result.landmark};
}

template <class T>
void bind(nb::module_& m, const char* rows_name, const char* landmarks_name) {
    using X = RowStore<T>;
    using Y = LandmarkStore<T>;
    using Where = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
    using How = std::tuple<int, double>;
    const auto block = [](const Where& w) {
        return Block{std::get<0>(w), std::get<1>(w), std::get<2>(w), std::get<3>(w)};
    };
    const auto band = [](const How& h) {
        return Band{static_cast<Band::Kind>(std::get<0>(h)), std::get<1>(h)};
    };

    nb::class_<X>(m, rows_name)
        .def(
            "__init__",
            [](X* self, Array<const double, 2> values, Array<const std::int64_t, 1> offsets,
               std::optional<Array<const double, 1>> shift) {
                nb::gil_scoped_release nogil;
                new (self) X(make_rows<T>(values, offsets, shift));
            },
            "values"_a.noconvert(), "offsets"_a, "shift"_a.none());
    nb::class_<Y>(m, landmarks_name)
        .def(
            "__init__",
            [](Y* self, Array<const double, 2> values, Array<const std::int64_t, 1> offsets,
               std::optional<Array<const double, 1>> shift, std::int64_t width,
               std::optional<Array<const double, 2>> basis) {
                new (self) Y(make_rows<T>(values, offsets, shift),
                             make_summed<T>(values, offsets, basis), width);
            },
            "values"_a.noconvert(), "offsets"_a, "shift"_a.none(), "width"_a, "basis"_a.none())
        .def_prop_ro("summed_stride", [](const Y& y) { return y.view().summed.stride; })
        .def_prop_ro("pack_columns", [](const Y& y) {
            std::vector<std::int64_t> columns;
            for (const PackInfo& p : y.packs()) columns.push_back(p.columns * p.width);
            return columns;
        });

    m.def(
        "score",
        [=](const X& x, const Y& y, Where where, How how, Array<T, 2> values,
            Array<std::int32_t, 2> lengths, int target, CancelToken* token) {
            Job<T> job = make_job(x, y, block(where), band(how), Reduction::score);
            job.values = values.data(), job.lengths = lengths.data();
            return execute(job, x, y, target, token);
        },
        "series"_a, "landmarks"_a, "block"_a, "band"_a, "values"_a.noconvert(),
        "lengths"_a.noconvert(), "target"_a, "token"_a.none());
    m.def(
        "products",
        [=](const X& x, const Y& y, Where where, How how, Array<T, 4> out, int target,
            CancelToken* token) {
            Job<T> job = make_job(x, y, block(where), band(how), Reduction::products);
            job.out = out.data();
            return execute(job, x, y, target, token);
        },
        "series"_a, "landmarks"_a, "block"_a, "band"_a, "out"_a.noconvert(), "target"_a,
        "token"_a.none());
    m.def(
        "grouped",
        [=](const X& x, const Y& y, Where where, How how, Array<const T, 2> weights,
            Array<T, 5> out, int target, CancelToken* token) {
            Job<T> job = make_job(x, y, block(where), band(how), Reduction::grouped);
            job.out = out.data(), job.weights = weights.data();
            job.n_outer = static_cast<std::int64_t>(weights.shape(0));
            job.n_phases = static_cast<std::int64_t>(out.shape(2));
            return execute(job, x, y, target, token);
        },
        "series"_a, "landmarks"_a, "block"_a, "band"_a, "weights"_a, "out"_a.noconvert(),
        "target"_a, "token"_a.none());
    m.def(
        "projected",
        [=](const X& x, const Y& y, Where where, How how, Array<const T, 3> metrics,
            Array<T, 3> out, int target, CancelToken* token) {
            Job<T> job = make_job(x, y, block(where), band(how), Reduction::projected);
            job.out = out.data(), job.matrices = metrics.data();
            job.n_outer = static_cast<std::int64_t>(metrics.shape(0));
            return execute(job, x, y, target, token);
        },
        "series"_a, "landmarks"_a, "block"_a, "band"_a, "metrics"_a, "out"_a.noconvert(),
        "target"_a, "token"_a.none());
    m.def(
        "sums",
        [=](const X& x, const Y& y, Where where, How how, Array<T, 5> out, int target,
            CancelToken* token) {
            Job<T> job = make_job(x, y, block(where), band(how), Reduction::sums);
            job.out = out.data();
            job.n_phases = static_cast<std::int64_t>(out.shape(2));
            return execute(job, x, y, target, token);
        },
        "series"_a, "landmarks"_a, "block"_a, "band"_a, "out"_a.noconvert(), "target"_a,
        "token"_a.none());
}

// A NumPy array of float64, (channels, time) or (time,), with any strides. It is read through
// NumPy's own API: the conversion to an `nb::ndarray` takes as long as a short alignment.
struct SeriesArray {
    PyArrayObject* array;
    std::int64_t channels = 1, steps = 0, to_channel = 0, to_step = 0;

    explicit SeriesArray(nb::handle given) : array(reinterpret_cast<PyArrayObject*>(given.ptr())) {
        const int axes = PyArray_CheckExact(given.ptr()) ? PyArray_NDIM(array) : 0;
        if (axes < 1 || axes > 2 || PyArray_TYPE(array) != NPY_DOUBLE ||
            !PyArray_ISBEHAVED_RO(array)) {
            array = nullptr;
            return;
        }
        steps = PyArray_DIM(array, axes - 1), to_step = PyArray_STRIDE(array, axes - 1);
        if (axes == 2) channels = PyArray_DIM(array, 0), to_channel = PyArray_STRIDE(array, 0);
    }
    double operator()(std::int64_t channel, std::int64_t step) const {
        return *reinterpret_cast<const double*>(PyArray_BYTES(array) + channel * to_channel +
                                                step * to_step);
    }
};

// As in settings.py.
constexpr double kUnitNorm = 1.0 + 1e-6, kLargestNorm = 1e140, kFar = 16.0;
// Operations of a pair that is aligned in some microseconds.
constexpr std::int64_t kShortPair = 20'000;
// Pairs of steps beyond which the caller must check the memory.
constexpr std::int64_t kLongPair = 1'000'000'000;

// One series of a single pair, read from (channels, time) with any strides.
struct PairSide {
    std::int64_t steps;
    std::int64_t offsets[2];
    double* rows = nullptr;   // padded with zeros to whole tiles of columns
    double* shift = nullptr;  // see AlignmentSettings.shift; none for affinity

    // Numbers that `read` needs.
    static std::int64_t size(const SeriesArray& series) {
        return (series.steps + kTileColumns - 1) * (series.channels + 1);
    }

    // Returns false if a value is not finite or the norm of a row is too large.
    bool read(const SeriesArray& series, bool normalize, Objective objective, double* memory) {
        const std::int64_t d = series.channels;
        steps = series.steps;
        offsets[0] = 0, offsets[1] = steps;
        const std::int64_t padded = steps + kTileColumns - 1;
        rows = memory;
        std::fill(rows + steps * d, rows + padded * d, 0.0);
        if (objective != Objective::affinity) {
            shift = memory + padded * d;
            std::fill(shift, shift + padded, -0.5);
        }
        const double limit = objective == Objective::cost ? kUnitNorm : kLargestNorm;
        for (std::int64_t i = 0; i < steps; ++i) {
            double* row = rows + i * d;
            double largest = 0.0, squares = 0.0;
            for (std::int64_t k = 0; k < d; ++k) {
                row[k] = series(k, i);
                squares += row[k] * row[k];
                largest = std::max(largest, std::abs(row[k]));
            }
            // AlignmentSettings.check_rows does the same check and raises the error.
            if (!normalize && !(squares <= limit * limit)) return false;
            if (!std::isfinite(squares) || (normalize && squares < 1e-280 && largest > 0.0)) {
                for (std::int64_t k = 0; k < d; ++k)
                    if (!std::isfinite(row[k])) return false;
                // The squares are out of range: scale by a power of two, which is exact.
                int exponent = 0;
                std::frexp(largest, &exponent);
                squares = 0.0;
                for (std::int64_t k = 0; k < d; ++k) {
                    row[k] = std::ldexp(row[k], -exponent);
                    squares += row[k] * row[k];
                }
            }
            if (normalize && largest > 0.0) {
                const double norm = std::sqrt(squares);
                for (std::int64_t k = 0; k < d; ++k) row[k] /= norm;
            }
        }
        return true;
    }

    // The mean row if it is far from the origin, else zero; see LandmarkLayouts.centred.
    std::vector<double> far_centre(std::size_t d) const {
        std::vector<double> mean(d, 0.0);
        const auto count = static_cast<std::size_t>(steps) * d;
        for (std::size_t k = 0; k < count; ++k) mean[k % d] += rows[k] / static_cast<double>(steps);
        double squares = 0.0, farthest = 0.0;
        for (std::size_t k = 0; k < count; ++k)
            squares += (rows[k] - mean[k % d]) * (rows[k] - mean[k % d]);
        for (const double m : mean) farthest = std::max(farthest, std::abs(m));
        const double spread = std::sqrt(squares / static_cast<double>(count));
        return farthest > kFar * spread ? mean : std::vector<double>(d, 0.0);
    }

    // Subtracts one row from every row and sets the shifts of the squared distance.
    void move(const std::vector<double>& at) {
        const auto d = at.size();
        for (std::int64_t i = 0; i < steps; ++i) {
            double squares = 0.0;
            double* row = rows + static_cast<std::size_t>(i) * d;
            for (std::size_t k = 0; k < d; ++k) {
                row[k] -= at[k];
                squares += row[k] * row[k];
            }
            shift[static_cast<std::size_t>(i)] = -0.5 * squares;
        }
    }

    Rows<double> view(std::int64_t d) const { return {rows, shift, offsets, d, d}; }
};

// Returns -1 for anything but a name of an objective. The order is that of `Objective`.
int objective_code(nb::handle name) {
    const char* names[] = {"affinity", "cost", "distance"};
    for (int k = 0; PyUnicode_Check(name.ptr()) && k < 3; ++k)
        if (PyUnicode_CompareWithASCIIString(name.ptr(), names[k]) == 0) return k;
    return -1;
}

// Returns the path of one pair, shape (length, 2), its length and the mean affinity. Returns None
// if a series or a setting is invalid or the band admits no path; the caller finds out which.
// Avoids the layouts above, because their set-up takes as long as the alignment of a short pair.
nb::object align_pair(nb::handle one, nb::handle other, bool normalize, nb::handle objective_name,
                      int band_kind, double band_parameter, bool may_be_long,
                      nb::handle result_type) {
    const SeriesArray a(one), b(other);
    const int target_index = selected_target(), code = objective_code(objective_name);
    if (a.array == nullptr || b.array == nullptr || target_index < 0 || code < 0) return nb::none();
    const std::int64_t d = a.channels, n = a.steps, m = b.steps;
    if (d == 0 || d != b.channels || n == 0 || m == 0) return nb::none();
    if (!may_be_long && n * m > kLongPair) return nb::none();
    const auto objective = static_cast<Objective>(code);
    const std::int64_t columns = (m + kTileColumns - 1) / kTileColumns * kTileColumns,
                       tiles = (n + kTileRows - 1) / kTileRows, only = 0;
    // One allocation for everything: several would take as long as a short alignment.
    const std::int64_t in_x = PairSide::size(a), in_y = PairSide::size(b),
                       n_ends = walk_size(n) + 2 * n, numbers = in_x + in_y + columns + 2 * n;
    const std::unique_ptr<double[]> memory(new double[static_cast<std::size_t>(
        numbers + (n_ends + 1) / 2 + (tiles * columns + 7) / 8)]);
    PairSide x, y;
    if (!x.read(a, normalize, objective, memory.get())) return nb::none();
    if (!y.read(b, normalize, objective, memory.get() + in_x)) return nb::none();
    std::vector<double> centre(static_cast<std::size_t>(d), 0.0);
    if (objective == Objective::distance) {
        centre = y.far_centre(centre.size());
        x.move(centre), y.move(centre);
    }
    const PackInfo pack{0, 1, 1, columns, 0, 0};
    Job<double> job;
    job.series = x.view(d);
    job.landmarks = {y.view(d), y.view(d), y.rows, y.shift, &pack, &only, 1};
    job.series_end = job.pack_end = 1;
    job.band = {static_cast<Band::Kind>(band_kind), band_parameter};
    job.reduction = Reduction::path;
    double total = 0.0;
    job.work.frontier = memory.get() + in_x + in_y;
    job.work.bounds = job.work.frontier + columns;
    job.work.ends = reinterpret_cast<std::int32_t*>(memory.get() + numbers);
    job.work.moves = reinterpret_cast<std::uint8_t*>(memory.get() + numbers + (n_ends + 1) / 2);
    job.values = &total;
    std::int32_t *first = job.work.ends + walk_size(n), *last = first + n;
    job.path_first = first, job.path_last = last;
    job.poll = should_stop;
    const Target& target = usable_target(target_index);
    Result result;
    {
        // To release the GIL and to get it back takes as long as a short alignment.
        std::optional<nb::gil_scoped_release> nogil;
        if (n * m * (d + 4) > kShortPair) nogil.emplace();
        result = target.run_double(job);
    }
    if (result.outcome == Outcome::stopped) throw nb::python_error();
    if (result.outcome != Outcome::done) return nb::none();

    std::int64_t length = 0;
    for (std::int64_t i = 0; i < n; ++i) length += last[i] - first[i] + 1;
    npy_intp shape[] = {length, 2};
    nb::object array = nb::steal(PyArray_SimpleNew(2, shape, NPY_INT64));
    if (!array.is_valid()) throw nb::python_error();
    auto* path =
        static_cast<std::int64_t*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.ptr())));
    std::int64_t* cell = path;
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = first[i]; j <= last[i]; ++j, cell += 2) cell[0] = i, cell[1] = j;
    if (objective == Objective::cost) total += static_cast<double>(length);
    if (objective == Objective::distance) {
        total = 0.0;
        for (const std::int64_t* c = path; c != cell; c += 2)
            for (std::int64_t k = 0; k < d; ++k)
                total += (x.rows[c[0] * d + k] + centre[k]) * (y.rows[c[1] * d + k] + centre[k]);
    }
    // `tuple.__new__(result_type, (path, length, similarity))`. The constructor of a named tuple
    // takes a tenth of the time of a short alignment.
    const nb::tuple fields = nb::make_tuple(array, length, total / static_cast<double>(length)),
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
    m.def("targets", [] {
        std::vector<std::tuple<std::string, std::int64_t, std::int64_t>> all;
        for (int k = 0; k < count_usable_targets(); ++k) {
            const Target& t = usable_target(k);
            all.emplace_back(t.name, t.width_float, t.width_double);
        }
        return all;
    });
    m.def("selected_target", &selected_target);
    m.def("align_pair", &align_pair, "a"_a.none(), "b"_a.none(), "normalize"_a,
          "objective"_a.none(), "band_kind"_a, "band_parameter"_a, "may_be_long"_a,
          "result_type"_a);
    bind_windows(m);
    bind<float>(m, "Rows32", "Landmarks32");
    bind<double>(m, "Rows64", "Landmarks64");
}
