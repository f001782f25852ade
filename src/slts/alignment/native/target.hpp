// Entry points of one instruction set. Its file defines SLTS_TARGET and SLTS_VECTOR_BYTES.
#pragma once

#include "kernel.hpp"
#include "windows.hpp"

namespace slts::SLTS_TARGET {

Result run(const Job<float>& job) { return run<float, SLTS_VECTOR_BYTES / 4>(job); }
Result run(const Job<double>& job) { return run<double, SLTS_VECTOR_BYTES / 8>(job); }
void run(const WindowJob& job) { run_windows<SLTS_VECTOR_BYTES / 8>(job); }
void add_scaled(const double* x, double factor, std::int64_t n, double* out) {
    for (std::int64_t k = 0; k < n; ++k) out[k] += factor * x[k];
}

}  // namespace slts::SLTS_TARGET
