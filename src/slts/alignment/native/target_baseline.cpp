#define SLTS_TARGET baseline
#include "kernel.hpp"
#include "targets.hpp"

namespace slts {

Result run_baseline(const Job<float>& job) { return baseline::run<float, 4>(job); }
Result run_baseline(const Job<double>& job) { return baseline::run<double, 2>(job); }

}  // namespace slts
