// What both files of bindings need.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <atomic>
#include <cstdint>

#include "job.hpp"

namespace slts {

template <class T, int N>
using Array = nanobind::ndarray<T, nanobind::ndim<N>, nanobind::c_contig, nanobind::device::cpu>;

inline std::int64_t size(std::size_t n) { return static_cast<std::int64_t>(n); }

// Stops calls without the GIL in threads that do not see Ctrl-C.
struct CancelToken {
    std::atomic<bool> cancelled{false};
};

// `token` may be null. A signal sets a Python error.
inline Poll poll_python(CancelToken* token) {
    const auto stop = [](void* context) {
        const auto* token = static_cast<const CancelToken*>(context);
        if (token != nullptr && token->cancelled.load(std::memory_order_relaxed)) return true;
        nanobind::gil_scoped_acquire gil;
        return PyErr_CheckSignals() != 0;
    };
    return {stop, token};
}

// Calls `work(poll)` without the GIL, and raises the error of a signal that stopped it.
template <class Work>
auto without_gil(CancelToken* token, Work&& work) {
    const auto result = [&] {
        nanobind::gil_scoped_release nogil;
        return work(poll_python(token));
    }();
    if (PyErr_Occurred()) throw nanobind::python_error();
    return result;
}

void bind_windows(nanobind::module_& m);

}  // namespace slts
