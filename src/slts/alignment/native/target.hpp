// Entry points of one instruction set. Its file defines SLTS_TARGET and SLTS_VECTOR_BYTES.
#pragma once

#include "kernel.hpp"
#include "windows.hpp"

namespace slts::SLTS_TARGET {

Result run(const Job<float>& job) { return run<float, SLTS_VECTOR_BYTES / 4>(job); }
Result run(const Job<double>& job) { return run<double, SLTS_VECTOR_BYTES / 8>(job); }
void run(const WindowJob<float>& job) { run_windows<float, SLTS_VECTOR_BYTES / 4>(job); }
void run(const WindowJob<double>& job) { run_windows<double, SLTS_VECTOR_BYTES / 8>(job); }
void add_shifted(const Shifts& shifts, const double* x, std::int64_t n, double* out) {
    add_shifted<SLTS_VECTOR_BYTES / 8>(shifts, x, n, out);
}

}  // namespace slts::SLTS_TARGET
