// Python bindings. Arguments arrive validated (kernel.py); arrays in, arrays out.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "storage.hpp"
#include "targets.hpp"
#define SLTS_TARGET common
#include "band.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace slts {
namespace {

template <class T, int N>
using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

struct CancelToken {
    std::atomic<bool> cancelled{false};
};

// Ctrl-C reaches the main thread through PyErr_CheckSignals; other threads watch the token.
bool should_stop(void* context) {
    const auto* token = static_cast<const CancelToken*>(context);
    if (token != nullptr && token->cancelled.load(std::memory_order_relaxed)) return true;
    nb::gil_scoped_acquire gil;
    return PyErr_CheckSignals() != 0;
}

template <class T>
RowStore<T> make_rows(Array<const double, 2> values, Array<const std::int64_t, 1> offsets,
                      std::optional<Array<const double, 1>> shift) {
    return RowStore<T>(values.data(), offsets.data(),
                       static_cast<std::int64_t>(offsets.shape(0)) - 1,
                       static_cast<std::int64_t>(values.shape(1)), shift ? shift->data() : nullptr);
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

// Allocates scratch memory, runs without the GIL, reports (outcome, series, landmark).
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
    const std::int64_t stride = job.series.stride;
    const std::int64_t groups = job.reduction == Reduction::grouped ? job.n_outer : 1;
    AlignedArray<T> frontier(size(wide));
    AlignedArray<typename IntOf<T>::type> lengths(size(traced ? 0 : wide));
    AlignedArray<T> bounds(size(job.band.kind == Band::none ? 0 : n * 2 * width));
    AlignedArray<std::uint8_t> moves(size(traced ? tiles * wide : 0));
    AlignedArray<std::int32_t> ends(size(traced ? 2 * n : 0));
    AlignedArray<T> sums(size(traced ? groups * n * stride : 0));
    AlignedArray<T> product(size(traced ? job.series.channels * stride : 0));
    job.work = {frontier.data(), lengths.data(), bounds.data(),
                moves.data(),    ends.data(),    ends.data() + (traced ? n : 0),
                sums.data(),     product.data()};
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
                new (self) X(make_rows<T>(values, offsets, shift));
            },
            "values"_a, "offsets"_a, "shift"_a.none());
    nb::class_<Y>(m, landmarks_name)
        .def(
            "__init__",
            [](Y* self, Array<const double, 2> values, Array<const std::int64_t, 1> offsets,
               std::optional<Array<const double, 1>> shift,
               std::int64_t width) { new (self) Y(make_rows<T>(values, offsets, shift), width); },
            "values"_a, "offsets"_a, "shift"_a.none(), "width"_a)
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
        "series"_a, "landmarks"_a, "block"_a, "band"_a, "values"_a, "lengths"_a, "target"_a,
        "token"_a.none());
    m.def(
        "products",
        [=](const X& x, const Y& y, Where where, How how, Array<T, 4> out, int target,
            CancelToken* token) {
            Job<T> job = make_job(x, y, block(where), band(how), Reduction::products);
            job.out = out.data();
            return execute(job, x, y, target, token);
        },
        "series"_a, "landmarks"_a, "block"_a, "band"_a, "out"_a, "target"_a, "token"_a.none());
    m.def(
        "grouped",
        [=](const X& x, const Y& y, Where where, How how, Array<const T, 2> weights,
            Array<T, 4> out, int target, CancelToken* token) {
            Job<T> job = make_job(x, y, block(where), band(how), Reduction::grouped);
            job.out = out.data(), job.weights = weights.data();
            job.n_outer = static_cast<std::int64_t>(weights.shape(0));
            return execute(job, x, y, target, token);
        },
        "series"_a, "landmarks"_a, "block"_a, "band"_a, "weights"_a, "out"_a, "target"_a,
        "token"_a.none());
    m.def(
        "projected",
        [=](const X& x, const Y& y, Where where, How how, Array<const T, 3> metrics,
            Array<T, 3> out, int target, CancelToken* token) {
            Job<T> job = make_job(x, y, block(where), band(how), Reduction::projected);
            job.out = out.data(), job.matrices = metrics.data();
            job.n_outer = static_cast<std::int64_t>(metrics.shape(0));
            return execute(job, x, y, target, token);
        },
        "series"_a, "landmarks"_a, "block"_a, "band"_a, "metrics"_a, "out"_a, "target"_a,
        "token"_a.none());
}

// One series given as (channels, time), with any strides, as rows; false if a value is not finite.
bool read_rows(nb::ndarray<const double, nb::ndim<2>, nb::device::cpu> series, bool normalize,
               std::vector<double>& rows) {
    const auto d = static_cast<std::int64_t>(series.shape(0));
    const auto n = static_cast<std::int64_t>(series.shape(1));
    const std::int64_t to_channel = series.stride(0), to_step = series.stride(1);
    const double* values = series.data();
    rows.resize(static_cast<std::size_t>(n * d));
    for (std::int64_t i = 0; i < n; ++i) {
        double* row = rows.data() + i * d;
        double largest = 0.0;
        for (std::int64_t k = 0; k < d; ++k) {
            row[k] = values[k * to_channel + i * to_step];
            if (!std::isfinite(row[k])) return false;
            largest = std::max(largest, std::abs(row[k]));
        }
        if (!normalize || largest == 0.0) continue;
        if (largest < 1e-140 || largest > 1e140) {
            // Keeps the squares in range; a power of two costs no rounding (as normalize_rows).
            int exponent = 0;
            std::frexp(largest, &exponent);
            for (std::int64_t k = 0; k < d; ++k) row[k] = std::ldexp(row[k], -exponent);
        }
        double squares = 0.0;
        for (std::int64_t k = 0; k < d; ++k) squares += row[k] * row[k];
        const double norm = std::sqrt(squares);
        for (std::int64_t k = 0; k < d; ++k) row[k] /= norm;
    }
    return true;
}

// AlignmentSettings.shift for one series; empty for the affinity, objective 0.
std::vector<double> pair_shift(const std::vector<double>& rows, std::int64_t d, int objective) {
    std::vector<double> shift;
    if (objective == 0) return shift;
    shift.assign(rows.size() / static_cast<std::size_t>(d), objective == 1 ? 0.5 : 0.0);
    if (objective == 2) {
        for (std::size_t i = 0; i < rows.size(); ++i)
            shift[i / static_cast<std::size_t>(d)] += 0.5 * rows[i] * rows[i];
    }
    return shift;
}

// The path of one pair as (length, 2) steps and the mean affinity along it; None if a value is not
// finite or the band admits no path: the caller finds out which.
nb::object align_pair(nb::ndarray<const double, nb::ndim<2>, nb::device::cpu> a,
                      nb::ndarray<const double, nb::ndim<2>, nb::device::cpu> b, bool normalize,
                      int objective, std::tuple<int, double> how, int target) {
    const auto d = static_cast<std::int64_t>(a.shape(0));
    const auto n = static_cast<std::int64_t>(a.shape(1)), m = static_cast<std::int64_t>(b.shape(1));
    std::vector<double> x_rows, y_rows;
    if (!read_rows(a, normalize, x_rows) || !read_rows(b, normalize, y_rows)) return nb::none();
    const std::vector<double> x_shift = pair_shift(x_rows, d, objective);
    const std::vector<double> y_shift = pair_shift(y_rows, d, objective);
    const std::int64_t x_offsets[] = {0, n}, y_offsets[] = {0, m};
    const RowStore<double> x(x_rows.data(), x_offsets, 1, d,
                             x_shift.empty() ? nullptr : x_shift.data());
    const LandmarkStore<double> y(RowStore<double>(y_rows.data(), y_offsets, 1, d,
                                                   y_shift.empty() ? nullptr : y_shift.data()),
                                  1);

    const Band band{static_cast<Band::Kind>(std::get<0>(how)), std::get<1>(how)};
    Job<double> job = make_job(x, y, Block{0, 1, 0, 1}, band, Reduction::path);
    std::vector<std::int32_t> first(static_cast<std::size_t>(n)), last(first);
    job.path_first = first.data(), job.path_last = last.data();
    if (std::get<0>(execute(job, x, y, target, nullptr)) != 0) return nb::none();

    std::int64_t length = 0;
    for (std::int64_t i = 0; i < n; ++i) length += last[i] - first[i] + 1;
    auto* path = new std::int64_t[static_cast<std::size_t>(2 * length)];
    nb::capsule owner(path, [](void* p) noexcept { delete[] static_cast<std::int64_t*>(p); });
    double total = 0.0;
    std::int64_t* cell = path;
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = first[i]; j <= last[i]; ++j, cell += 2) {
            cell[0] = i, cell[1] = j;
            for (std::int64_t k = 0; k < d; ++k) total += x_rows[i * d + k] * y_rows[j * d + k];
        }
    }
    const std::size_t shape[] = {static_cast<std::size_t>(length), 2};
    return nb::make_tuple(nb::ndarray<nb::numpy, std::int64_t>(path, 2, shape, owner),
                          total / static_cast<double>(length));
}

}  // namespace
}  // namespace slts

NB_MODULE(_native, m) {
    using namespace slts;
    m.doc() = "DTW recurrence and its reductions; see slts.alignment.kernel.";
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
    m.def("band_bounds", [](int kind, double parameter, std::int64_t n, std::int64_t m_steps) {
        std::vector<std::tuple<std::int64_t, std::int64_t>> rows;
        const Band band{static_cast<Band::Kind>(kind), parameter};
        for (std::int64_t i = 0; i < n; ++i) {
            const auto in = common::band_interval(band, i, n, m_steps);
            rows.emplace_back(in.start, in.stop);
        }
        return rows;
    });
    m.def("align_pair", &align_pair, "a"_a, "b"_a, "normalize"_a, "objective"_a, "band"_a,
          "target"_a);
    bind<float>(m, "Rows32", "Landmarks32");
    bind<double>(m, "Rows64", "Landmarks64");
}
