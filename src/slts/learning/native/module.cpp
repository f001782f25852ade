// Python bindings. Systems are changed by one thread at a time.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <array>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "banded.hpp"
#include "systems.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace slts {
namespace {

template <int N>
using Input = nb::ndarray<const double, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
using Square = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// About the time until Ctrl-C stops the steps.
constexpr std::chrono::milliseconds kSignalInterval{100};

// Keeps the array in memory. Like every change of a reference, this needs the GIL.
Matrix shared(const Input<2>& rows) {
    return {{rows.data(), [rows](const double*) {}}, rows.shape(0), rows.shape(1)};
}

Vector copied(const Input<1>& values) {
    return Vector(values.data(), values.data() + values.shape(0));
}

nb::object array(const Vector& values) {
    using View = nb::ndarray<nb::numpy, const double, nb::ndim<1>>;
    return nb::cast(View(values.data(), {values.size()}), nb::rv_policy::copy);
}

[[noreturn]] void raise_indefinite() {
    PyErr_SetString(nb::module_::import_("numpy.linalg").attr("LinAlgError").ptr(),
                    "The matrix is not positive definite.");
    throw nb::python_error();
}

int minimise(RowSystem& system, double tol, int max_iter, double floor) {
    int n_iter = 0;
    {
        const nb::gil_scoped_release nogil;
        // To wait for the GIL after each step would take longer than the steps.
        auto checked = std::chrono::steady_clock::now();
        n_iter = system.minimise(tol, max_iter, floor, [&checked] {
            const auto now = std::chrono::steady_clock::now();
            if (now - checked < kSignalInterval) return false;
            checked = now;
            const nb::gil_scoped_acquire gil;
            return PyErr_CheckSignals() != 0;
        });
    }
    if (n_iter < 0) throw nb::python_error();
    return n_iter;
}

// Returns the Newton step for a change `target` of the products, for tests.
nb::tuple direction(RowSystem& system, Input<1> target) {
    Direction found;
    system.values();
    if (!system.factorise()) raise_indefinite();
    system.solve(copied(target), found);
    return nb::make_tuple(array(found.primal), array(found.dual), array(found.coef));
}

nb::object solve_definite(Input<2> matrix, double diagonal, Input<1> right) {
    Vector entries(matrix.data(), matrix.data() + matrix.size()), solution = copied(right);
    bool succeeded = false;
    {
        const nb::gil_scoped_release nogil;
        for (std::size_t j = 0; j < solution.size(); ++j)
            entries[j * solution.size() + j] += diagonal;
        Factor factor;
        succeeded = factor.factorise(entries, solution.size());
        if (succeeded) factor.solve(solution);
    }
    if (!succeeded) raise_indefinite();
    return array(solution);
}

// A new array of NumPy, and where its numbers are.
template <std::size_t N>
std::pair<nb::object, double*> new_array(const std::array<std::size_t, N>& shape) {
    std::size_t size = 1;
    for (const std::size_t length : shape) size *= length;
    double* numbers = new double[size];
    const nb::capsule owner(numbers, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    using View = nb::ndarray<nb::numpy, double, nb::ndim<N>>;
    return {nb::cast(View(numbers, N, shape.data(), owner)), numbers};
}

// Overwrites the lower triangle of a semidefinite matrix (in Fortran's order) with its Cholesky
// factor with pivots. Returns the order of the rows and the rank: smaller pivots than `least` are
// rounding.
nb::tuple factorise_pivoted(nb::ndarray<double, nb::ndim<2>, nb::f_contig, nb::device::cpu> matrix,
                            double least) {
    const std::size_t size = matrix.shape(0);
    if (size != matrix.shape(1)) throw nb::value_error("The matrix is not square.");
    for (std::size_t j = 0; j < size; ++j)
        if (!std::isfinite(matrix.data()[j * size + j]))
            throw nb::value_error("The matrix is not finite.");
    std::vector<Integer> order(size);
    Integer n = static_cast<Integer>(size), rank = 0, info = 0;
    {
        const nb::gil_scoped_release nogil;
        char lower = 'L';
        Vector work(2 * size);
        if (size > 0)
            scipy.dpstrf(&lower, &n, matrix.data(), &n, order.data(), &rank, &least, work.data(),
                         &info);
    }
    // Integers of 32 bits fill half of the memory: the first number is then followed by another.
    const bool is_short = size > 1 && (order[0] >> 32) != 0;
    const auto* shorts = reinterpret_cast<const std::int32_t*>(order.data());
    nb::list rows;
    for (std::size_t j = 0; j < size; ++j)
        rows.append((is_short ? static_cast<Integer>(shorts[j]) : order[j]) - 1);
    return nb::make_tuple(rows, rank);
}

// Solves L x = b, or L' x = b, for every row b. L is the first part of a triangle that may be
// larger, in Fortran's order.
nb::object solve_lower(nb::ndarray<const double, nb::ndim<2>, nb::f_contig, nb::device::cpu> factor,
                       Input<2> rows, bool transposed) {
    const std::size_t count = rows.shape(0), size = rows.shape(1), stride = factor.shape(0);
    if (size > stride || stride != factor.shape(1))
        throw nb::value_error("The rows are longer than the factor, or it is not square.");
    const auto [solved, numbers] = new_array<2>({count, size});
    Integer info = 0;
    {
        const nb::gil_scoped_release nogil;
        std::copy_n(rows.data(), rows.size(), numbers);
        char lower = 'L', trans = transposed ? 'T' : 'N', plain = 'N';
        Integer n = static_cast<Integer>(size), m = static_cast<Integer>(count),
                lda = static_cast<Integer>(stride);
        // LAPACK declares what it only reads as variable.
        if (count > 0 && size > 0)
            scipy.dtrtrs(&lower, &trans, &plain, &n, &m, const_cast<double*>(factor.data()), &lda,
                         numbers, &n, &info);
    }
    if (info != 0) throw nb::value_error("The factor is singular.");
    return solved;
}

void check_columns(const Banded& system, const Input<2>& rows) {
    if (rows.shape(1) != system.size()) throw nb::value_error("The rows have another length.");
    if (!system.is_factorised()) throw nb::value_error("Not all shifts are factorised.");
}

nb::object rotate(const Banded& system, Input<2> rows, bool back) {
    check_columns(system, rows);
    const auto [rotated, numbers] = new_array<2>({rows.shape(0), rows.shape(1)});
    {
        const nb::gil_scoped_release nogil;
        std::copy_n(rows.data(), rows.size(), numbers);
        system.rotate(numbers, rows.shape(0), back);
    }
    return rotated;
}

nb::object solve(const Banded& system, Input<2> rows, std::size_t begin, std::size_t end) {
    check_columns(system, rows);
    if (begin > end || end > system.n_shifts()) throw nb::value_error("There is no such shift.");
    const auto [solved, numbers] = new_array<3>({end - begin, rows.shape(0), rows.shape(1)});
    {
        const nb::gil_scoped_release nogil;
        system.solve(rows.data(), rows.shape(0), begin, end, numbers);
    }
    return solved;
}

nb::object quadratic(const Banded& system, Input<2> rows) {
    check_columns(system, rows);
    const auto [values, numbers] = new_array<2>({rows.shape(0), system.n_shifts()});
    {
        const nb::gil_scoped_release nogil;
        system.quadratic(rows.data(), rows.shape(0), numbers);
    }
    return values;
}

// SciPy exports each function as a capsule whose name is its signature.
template <class F>
void load(const char* module, const char* name, F& function) {
    const nb::object capsule =
        nb::module_::import_(module).attr("__pyx_capi__").attr("__getitem__")(name);
    function =
        reinterpret_cast<F>(PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr())));
    if (function == nullptr) throw nb::python_error();
}

// Computes the first point without the GIL.
template <class S, class... Args>
void construct(S* self, const Args&... args) {
    const nb::gil_scoped_release nogil;
    new (self) S(args...);
}

template <auto Member>
nb::object get(const RowSystem& system) {
    return array(system.*Member);
}

template <auto Member>
void set(RowSystem& system, Input<1> values) {
    system.*Member = copied(values);
}

}  // namespace
}  // namespace slts

NB_MODULE(_solvers, m) {
    using namespace slts;
    // Models may live until Python ends.
    nb::set_leak_warnings(false);
    m.doc() = "Interior-point method for hinge problems; symmetric matrices of ridge regressions.";
    load("scipy.linalg.cython_blas", "dsyrk", scipy.dsyrk);
    load("scipy.linalg.cython_blas", "dgemv", scipy.dgemv);
    load("scipy.linalg.cython_blas", "dgemm", scipy.dgemm);
    load("scipy.linalg.cython_blas", "dtrmm", scipy.dtrmm);
    load("scipy.linalg.cython_lapack", "dpotrf", scipy.dpotrf);
    load("scipy.linalg.cython_lapack", "dpotrs", scipy.dpotrs);
    load("scipy.linalg.cython_lapack", "dpstrf", scipy.dpstrf);
    load("scipy.linalg.cython_lapack", "dtrtrs", scipy.dtrtrs);
    load("scipy.linalg.cython_lapack", "dgeqr2", scipy.dgeqr2);
    load("scipy.linalg.cython_lapack", "dlarft", scipy.dlarft);
    m.def("solve_definite", &solve_definite, "matrix"_a, "diagonal"_a, "right"_a);
    m.def("factorise_pivoted", &factorise_pivoted, "matrix"_a.noconvert(), "least"_a);
    m.def("solve_lower", &solve_lower, "factor"_a, "rows"_a, nb::kw_only(), "transposed"_a = false);
    m.attr("BAND") = kBand;
    m.attr("STRIP") = Banded::kStrip;
    const nb::call_guard<nb::gil_scoped_release> nogil;
    nb::class_<Banded>(m, "Banded")
        .def(
            "__init__",
            [](Banded* self, Square matrix, Input<1> shifts) {
                if (matrix.shape(0) != matrix.shape(1))
                    throw nb::value_error("The matrix is not square.");
                // Keeps the array in memory.
                const std::shared_ptr<double> own{matrix.data(), [matrix](double*) {}};
                new (self) Banded(own, matrix.shape(0), copied(shifts));
            },
            "matrix"_a.noconvert(), "shifts"_a)
        .def_prop_ro("n_panels", &Banded::n_panels)
        .def_prop_ro("n_strips", &Banded::n_strips)
        .def_prop_ro("n_blocks", &Banded::n_blocks)
        .def("reflect_panel", &Banded::reflect_panel, "number"_a, nogil)
        .def("multiply", &Banded::multiply, "number"_a, "strip"_a, nogil)
        .def("end_panel", &Banded::end_panel, "number"_a, nogil)
        .def("form_block", &Banded::form_block, "number"_a, nogil)
        .def("factorise", &Banded::factorise, "number"_a, nogil)
        .def("rotate", &rotate, "rows"_a, nb::kw_only(), "back"_a = false)
        .def("solve", &solve, "rows"_a, "begin"_a, "end"_a)
        .def("quadratic", &quadratic, "rows"_a);
    nb::class_<RowSystem>(m, "System")
        .def_prop_rw("primal", &get<&RowSystem::primal>, &set<&RowSystem::primal>)
        .def_prop_rw("dual", &get<&RowSystem::dual>, &set<&RowSystem::dual>)
        .def_prop_rw("coef", &get<&RowSystem::coef>, &set<&RowSystem::coef>)
        .def_prop_ro("margins", &get<&RowSystem::margins>)
        .def_ro("loss", &RowSystem::loss)
        .def_prop_ro("certificate",
                     [](const RowSystem& s) { return nb::make_tuple(s.total, array(s.gradient)); })
        .def("values", &RowSystem::values)
        .def("direction", &direction, "target"_a)
        .def("minimise", &minimise, nb::kw_only(), "tol"_a, "max_iter"_a, "floor"_a = 0.0);
    nb::class_<SquaredNormSystem, RowSystem>(m, "SquaredNormSystem")
        .def(
            "__init__",
            [](SquaredNormSystem* self, Input<2> rows, Input<1> weights, double strength,
               Input<1> start) {
                construct(self, shared(rows), copied(weights), strength, copied(start));
            },
            "rows"_a, "weights"_a, "strength"_a, "start"_a);
    nb::class_<L1BallSystem, RowSystem>(m, "L1BallSystem")
        .def(
            "__init__",
            [](L1BallSystem* self, Input<2> rows, Input<1> weights, double radius) {
                construct(self, shared(rows), copied(weights), radius);
            },
            "rows"_a, "weights"_a, "radius"_a);
    nb::class_<SmallestNormSystem, RowSystem>(m, "SmallestNormSystem")
        .def(
            "__init__",
            [](SmallestNormSystem* self, Input<2> rows, Input<1> start) {
                construct(self, shared(rows), copied(start));
            },
            "rows"_a, "start"_a);
}
