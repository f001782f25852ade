// Python bindings. Systems are changed by one thread at a time.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "systems.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace slts {
namespace {

template <int N>
using Input = nb::ndarray<const double, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

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

nb::object definite_solution(Input<2> matrix, double diagonal, Input<1> right) {
    Vector entries(matrix.data(), matrix.data() + matrix.size()), solution = copied(right);
    bool succeeded = false;
    {
        const nb::gil_scoped_release nogil;
        succeeded = solve_definite(entries, diagonal, solution);
    }
    if (!succeeded) raise_indefinite();
    return array(solution);
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
    m.doc() = "Interior-point method for hinge problems.";
    load("scipy.linalg.cython_blas", "dsyrk", scipy.dsyrk);
    load("scipy.linalg.cython_blas", "dgemv", scipy.dgemv);
    load("scipy.linalg.cython_lapack", "dpotrf", scipy.dpotrf);
    load("scipy.linalg.cython_lapack", "dpotrs", scipy.dpotrs);
    m.def("solve_definite", &definite_solution, "matrix"_a, "diagonal"_a, "right"_a);
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
