// Instruction sets of this build, and the selected one.
#pragma once

#include "job.hpp"

namespace slts {

Result run_baseline(const Job<float>&);
Result run_baseline(const Job<double>&);
void windows_baseline(const WindowJob&);
#if defined(SLTS_X86)
Result run_avx2(const Job<float>&);
Result run_avx2(const Job<double>&);
void windows_avx2(const WindowJob&);
Result run_avx512(const Job<float>&);
Result run_avx512(const Job<double>&);
void windows_avx512(const WindowJob&);
#endif

// Targets that this processor can run, best first.
int count_usable_targets();
const Target& usable_target(int k);

// Index of the target named by the environment variable SLTS_ISA, or of the best target if it is
// unset or empty. Returns -1 for an unknown name.
int selected_target();

}  // namespace slts
