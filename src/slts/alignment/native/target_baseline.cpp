#define SLTS_TARGET baseline
#define SLTS_VECTOR_BYTES 16
#include "target.hpp"
