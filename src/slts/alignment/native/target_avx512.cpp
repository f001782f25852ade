#define SLTS_TARGET avx512
#define SLTS_VECTOR_BYTES 64
#include "target.hpp"
