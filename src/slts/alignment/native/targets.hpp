// Instruction sets of this build, and the selected one.
#pragma once

#include <vector>

#include "job.hpp"

namespace slts {

// Targets that this processor can run, best first.
const std::vector<const Target*>& usable_targets();

// The target named by the environment variable SLTS_ISA, or the best one if it is unset or empty.
// Throws std::invalid_argument for another name.
const Target& selected_target();

}  // namespace slts
