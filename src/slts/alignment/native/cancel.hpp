// Stops a call that runs without the GIL: the main thread sees Ctrl-C, other threads a token.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>

namespace slts {

struct CancelToken {
    std::atomic<bool> cancelled{false};
};

// `context` is a CancelToken or null. If a signal stops the call, a Python error is set.
inline bool should_stop(void* context) {
    const auto* token = static_cast<const CancelToken*>(context);
    if (token != nullptr && token->cancelled.load(std::memory_order_relaxed)) return true;
    nanobind::gil_scoped_acquire gil;
    return PyErr_CheckSignals() != 0;
}

}  // namespace slts
