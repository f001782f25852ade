#define SLTS_TARGET baseline
#include "kernel.hpp"
#include "targets.hpp"
#include "windows.hpp"

namespace slts {

Result run_baseline(const Job<float>& job) { return baseline::run<float, 4>(job); }
Result run_baseline(const Job<double>& job) { return baseline::run<double, 2>(job); }
void windows_baseline(const WindowJob& job) { baseline::run_windows<2>(job); }

}  // namespace slts
