#define SLTS_TARGET avx2
#include "kernel.hpp"
#include "targets.hpp"
#include "windows.hpp"

namespace slts {

Result run_avx2(const Job<float>& job) { return avx2::run<float, 8>(job); }
Result run_avx2(const Job<double>& job) { return avx2::run<double, 4>(job); }
void windows_avx2(const WindowJob& job) { avx2::run_windows<4>(job); }

}  // namespace slts
