// Forward substitution with a banded triangle, for as many right-hand sides as vectors have lanes.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace slts {

// Diagonals of a triangle below its main one; unknowns that are found together.
inline constexpr std::size_t kBand = 16, kTogether = 4;

#if defined(__GNUC__) || defined(__clang__)
#define SLTS_VECTORS
#define SLTS_ALWAYS_INLINE inline __attribute__((always_inline))
template <int N>
struct LanesOf {
    typedef double Vector __attribute__((vector_size(N * sizeof(double))));
    typedef double InMemory
        __attribute__((vector_size(N * sizeof(double)), aligned(sizeof(double)), may_alias));
};
#else
#define SLTS_ALWAYS_INLINE inline
template <int N>
struct LanesOf {
    static_assert(N == 1);
    using Vector = double;
    using InMemory = double;
};
#endif

// Finds y with L y = x, and its squared lengths. There are 2 N right-hand sides: x has a row of
// lanes for each unknown, and y has kBand rows of zeros before. Unknowns are padded to a multiple
// of kTogether. Each of them has its row of L: kBand entries left of the diagonal, and the inverse
// of that on the diagonal.
template <int N>
SLTS_ALWAYS_INLINE void substitute(const double* triangle, const double* x, double* y,
                                   std::size_t size, double* squares) {
    // No function takes or returns vectors: that depends on the instruction set.
    using Vector = typename LanesOf<N>::Vector;
    using InMemory = typename LanesOf<N>::InMemory;
    // `auto` would forget how they are aligned.
    const InMemory* right = reinterpret_cast<const InMemory*>(x);
    InMemory* known = reinterpret_cast<InMemory*>(y);
    Vector square0 = {}, square1 = {};
    for (std::size_t first = 0; first < size; first += kTogether) {
        Vector sum0[kTogether], sum1[kTogether];
        for (std::size_t j = 0; j < kTogether; ++j) {
            sum0[j] = right[2 * j];
            sum1[j] = right[2 * j + 1];
        }
        // Each vector that is loaded counts for several unknowns.
        for (std::size_t k = 0; k < kBand; ++k) {
            const Vector known0 = known[2 * k], known1 = known[2 * k + 1];
            for (std::size_t j = 0; j < kTogether; ++j)
                if (j <= k) {
                    const double entry = triangle[j * (kBand + 1) + k - j];
                    sum0[j] -= entry * known0;
                    sum1[j] -= entry * known1;
                }
        }
        for (std::size_t j = 0; j < kTogether; ++j) {
            for (std::size_t k = 0; k < j; ++k) {
                const double entry = triangle[j * (kBand + 1) + kBand - j + k];
                sum0[j] -= entry * sum0[k];
                sum1[j] -= entry * sum1[k];
            }
            const double inverse = triangle[j * (kBand + 1) + kBand];
            sum0[j] *= inverse;
            sum1[j] *= inverse;
            square0 += sum0[j] * sum0[j];
            square1 += sum1[j] * sum1[j];
            known[2 * (kBand + j)] = sum0[j];
            known[2 * (kBand + j) + 1] = sum1[j];
        }
        triangle += kTogether * (kBand + 1);
        right += 2 * kTogether;
        known += 2 * kTogether;
    }
    InMemory* found = reinterpret_cast<InMemory*>(squares);
    found[0] = square0;
    found[1] = square1;
}

// The same for the instructions of this processor, and its number of right-hand sides.
struct Substitution {
    std::size_t lanes;
    void (*run)(const double* triangle, const double* x, double* y, std::size_t size,
                double* squares);
};

#define SLTS_SUBSTITUTE(NAME, N)                                                           \
    inline void NAME(const double* triangle, const double* x, double* y, std::size_t size, \
                     double* squares) {                                                    \
        substitute<N>(triangle, x, y, size, squares);                                      \
    }
#if defined(SLTS_VECTORS)
inline constexpr int kBaselineLanes = 2;
#else
inline constexpr int kBaselineLanes = 1;
#endif
SLTS_SUBSTITUTE(substitute_baseline, kBaselineLanes)
// The compiler's test of the processor is not linked on Windows.
#if defined(SLTS_VECTORS) && defined(__x86_64__) && !defined(_MSC_VER)
#define SLTS_SUBSTITUTE_X86
__attribute__((target("avx2,fma"))) SLTS_SUBSTITUTE(substitute_avx2, 4)
    __attribute__((target("avx512f,avx2,fma"))) SLTS_SUBSTITUTE(substitute_avx512, 8)
#endif
#undef SLTS_SUBSTITUTE

    // Chooses the widest vectors, or those that SLTS_ISA names.
    inline Substitution best_substitution() {
#if defined(SLTS_SUBSTITUTE_X86)
    const char* wanted = std::getenv("SLTS_ISA");
    const auto allowed = [wanted](const char* name) {
        return wanted == nullptr || *wanted == '\0' || std::strcmp(wanted, name) == 0;
    };
    const bool fused = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (fused && __builtin_cpu_supports("avx512f") && allowed("avx512"))
        return {16, substitute_avx512};
    if (fused && allowed("avx2")) return {8, substitute_avx2};
#endif
    return {2 * kBaselineLanes, substitute_baseline};
}

}  // namespace slts
