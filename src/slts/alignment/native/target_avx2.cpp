#define SLTS_TARGET avx2
#define SLTS_VECTOR_BYTES 32
#include "target.hpp"
