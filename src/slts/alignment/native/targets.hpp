// Instruction sets this build carries, and the one in use.
#pragma once

#include "job.hpp"

namespace slts {

Result run_baseline(const Job<float>&);
Result run_baseline(const Job<double>&);
#if defined(SLTS_X86)
Result run_avx2(const Job<float>&);
Result run_avx2(const Job<double>&);
Result run_avx512(const Job<float>&);
Result run_avx512(const Job<double>&);
#endif

// Best first; only those this processor can run.
int count_usable_targets();
const Target& usable_target(int k);

// Index of the one that the environment variable SLTS_ISA names, of the best one if it is unset or
// empty, -1 if it names none of them.
int selected_target();

}  // namespace slts
