#define SLTS_TARGET avx512
#include "kernel.hpp"
#include "targets.hpp"
#include "windows.hpp"

namespace slts {

Result run_avx512(const Job<float>& job) { return avx512::run<float, 16>(job); }
Result run_avx512(const Job<double>& job) { return avx512::run<double, 8>(job); }
void windows_avx512(const WindowJob& job) { avx512::run_windows<8>(job); }

}  // namespace slts
