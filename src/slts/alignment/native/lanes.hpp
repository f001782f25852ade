// Vectors of W values. The recurrence is written once for this type, and each target (baseline,
// AVX2, AVX-512, NEON) compiles it at its native width.
//
// All code is in a namespace named after the target, because the linker must not merge the same
// template compiled for different instruction sets. For the same reason the target files use no
// templates of the standard library.
#pragma once

#include <cmath>
#include <cstdint>

#include "job.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#ifndef SLTS_TARGET
#error "SLTS_TARGET must name the target namespace before lanes.hpp is included"
#endif

#define SLTS_INLINE inline __attribute__((always_inline))

namespace slts::SLTS_TARGET {

// Calls f<n>() for a number n from 1 to Most that is known at run time.
template <int Most, class F>
SLTS_INLINE void with_constant(std::int64_t n, F&& f) {
    if constexpr (Most > 1)
        if (n < Most) return with_constant<Most - 1>(n, f);
    f.template operator()<Most>();
}

// Compilers do not turn compare and select of vectors into one maximum, which has half the latency.
template <class V>
SLTS_INLINE V native_max(V a, V b) {
    return b > a ? b : a;
}
template <class V>
SLTS_INLINE V native_min(V a, V b) {
    return b < a ? b : a;
}
// Nor do they find or count the true lanes of a comparison with few instructions.
template <class V>
SLTS_INLINE std::uint64_t native_larger_lanes(V a, V b) {
    std::uint64_t lanes = 0;
    for (unsigned w = 0; w < sizeof(V) / sizeof(a[0]); ++w)
        lanes |= static_cast<std::uint64_t>(a[w] > b[w]) << w;
    return lanes;
}
template <class V>
SLTS_INLINE int native_count_at_most(V a, V b) {
    int count = 0;
    for (unsigned w = 0; w < sizeof(V) / sizeof(a[0]); ++w) count += a[w] <= b[w];
    return count;
}
#define SLTS_NATIVE(V, MAX, MIN, LARGER)                         \
    template <>                                                  \
    SLTS_INLINE V native_max<V>(V a, V b) {                      \
        return V(MAX(a, b));                                     \
    }                                                            \
    template <>                                                  \
    SLTS_INLINE V native_min<V>(V a, V b) {                      \
        return V(MIN(a, b));                                     \
    }                                                            \
    template <>                                                  \
    SLTS_INLINE std::uint64_t native_larger_lanes<V>(V a, V b) { \
        return static_cast<std::uint64_t>(LARGER);               \
    }
#define SLTS_NATIVE_COUNT(V, COUNT)                     \
    template <>                                         \
    SLTS_INLINE int native_count_at_most<V>(V a, V b) { \
        return COUNT;                                   \
    }
#if defined(__SSE2__)
SLTS_NATIVE(__m128, _mm_max_ps, _mm_min_ps, _mm_movemask_ps(_mm_cmpgt_ps(a, b)))
SLTS_NATIVE(__m128d, _mm_max_pd, _mm_min_pd, _mm_movemask_pd(_mm_cmpgt_pd(a, b)))
// Bits of a number below 16, from a table in hexadecimal digits.
SLTS_NATIVE_COUNT(__m128, (0x4332322132212110 >> 4 * _mm_movemask_ps(_mm_cmple_ps(a, b))) & 15)
#elif defined(__ARM_NEON)
SLTS_NATIVE(float32x4_t, vmaxq_f32, vminq_f32,
            vaddvq_u32(vandq_u32(vcgtq_f32(a, b), uint32x4_t{1, 2, 4, 8})))
SLTS_NATIVE(float64x2_t, vmaxq_f64, vminq_f64,
            vaddvq_u64(vandq_u64(vcgtq_f64(a, b), uint64x2_t{1, 2})))
#endif
#if defined(__AVX__)
SLTS_NATIVE(__m256, _mm256_max_ps, _mm256_min_ps,
            _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)))
SLTS_NATIVE(__m256d, _mm256_max_pd, _mm256_min_pd,
            _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_GT_OQ)))
SLTS_NATIVE_COUNT(__m256, __builtin_popcount(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LE_OQ))))
#endif
#if defined(__AVX512F__)
SLTS_NATIVE(__m512, _mm512_max_ps, _mm512_min_ps, _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ))
SLTS_NATIVE(__m512d, _mm512_max_pd, _mm512_min_pd, _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ))
SLTS_NATIVE_COUNT(__m512, __builtin_popcount(_mm512_cmp_ps_mask(a, b, _CMP_LE_OQ)))
#endif
#undef SLTS_NATIVE
#undef SLTS_NATIVE_COUNT

template <class T, int W>
struct Lanes {
    using Int = typename IntOf<T>::type;
    typedef T Value __attribute__((vector_size(W * sizeof(T))));
    typedef Int Bits __attribute__((vector_size(W * sizeof(T))));

    static SLTS_INLINE Value broadcast(T x) { return x - Value{}; }
    static SLTS_INLINE Bits broadcast_bits(Int x) { return x - Bits{}; }
    // Broadcasts a number from memory, as bits: for floating-point numbers, AVX-512 of AMD needs an
    // operation more.
    static SLTS_INLINE Value broadcast_from(const T* p) {
        return Value(broadcast_bits(*reinterpret_cast<const AnyInt*>(p)));
    }
    // sum + a * b, fused if the target has it (contraction is on for the target files).
    static SLTS_INLINE Value add_product(Value sum, Value a, Value b) { return sum + a * b; }
    static SLTS_INLINE Value larger(Value a, Value b) { return native_max(a, b); }
    static SLTS_INLINE Value smaller(Value a, Value b) { return native_min(a, b); }
    // Bit w says whether lane w of a is larger than that of b.
    static SLTS_INLINE std::uint64_t larger_lanes(Value a, Value b) {
        return native_larger_lanes(a, b);
    }
    // Number of lanes of a that are not larger than those of b.
    static SLTS_INLINE int count_at_most(Value a, Value b) { return native_count_at_most(a, b); }
    static SLTS_INLINE Value select(Bits mask, Value a, Value b) { return mask ? a : b; }
    static SLTS_INLINE Bits select_bits(Bits mask, Bits a, Bits b) { return mask ? a : b; }
    static SLTS_INLINE Value load(const T* p) { return *reinterpret_cast<const Aligned*>(p); }
    static SLTS_INLINE void store(T* p, Value v) { *reinterpret_cast<Aligned*>(p) = v; }
    static SLTS_INLINE Bits load_bits(const Int* p) {
        return *reinterpret_cast<const AlignedBits*>(p);
    }
    static SLTS_INLINE void store_bits(Int* p, Bits v) { *reinterpret_cast<AlignedBits*>(p) = v; }
    static SLTS_INLINE Value load_unaligned(const T* p) {
        return *reinterpret_cast<const Unaligned*>(p);
    }
    static SLTS_INLINE void store_unaligned(T* p, Value v) { *reinterpret_cast<Unaligned*>(p) = v; }

   private:
    typedef Int AnyInt __attribute__((may_alias));
    typedef Int AlignedBits __attribute__((vector_size(W * sizeof(T)), may_alias));
    typedef T Aligned __attribute__((vector_size(W * sizeof(T)), may_alias));
    typedef T Unaligned __attribute__((vector_size(W * sizeof(T)), may_alias, aligned(sizeof(T))));
};

// Scalars with the same interface, for a single landmark.
template <class T>
struct Lanes<T, 1> {
    using Int = typename IntOf<T>::type;
    using Value = T;
    using Bits = Int;

    static SLTS_INLINE Value broadcast(T x) { return x; }
    static SLTS_INLINE Bits broadcast_bits(Int x) { return x; }
    static SLTS_INLINE Value broadcast_from(const T* p) { return *p; }
    // Scalars must round like vectors, but the compiler may leave them uncontracted.
    static SLTS_INLINE Value add_product(Value sum, Value a, T b) {
#if (defined(__FMA__) || defined(__aarch64__)) && !defined(_MSC_VER)
        if constexpr (sizeof(T) == 4)
            return __builtin_fmaf(a, b, sum);
        else
            return __builtin_fma(a, b, sum);
#else
        return sum + a * b;
#endif
    }
    static SLTS_INLINE Value larger(Value a, Value b) { return b > a ? b : a; }
    static SLTS_INLINE Value smaller(Value a, Value b) { return b < a ? b : a; }
    static SLTS_INLINE std::uint64_t larger_lanes(Value a, Value b) { return a > b; }
    static SLTS_INLINE int count_at_most(Value a, Value b) { return a <= b; }
    static SLTS_INLINE Value select(Bits mask, Value a, Value b) { return mask ? a : b; }
    // The direction of a path is hard to predict: do not branch on it.
    static SLTS_INLINE Bits select_bits(bool mask, Bits a, Bits b) {
        return b ^ ((a ^ b) & -static_cast<Int>(mask));
    }
    static SLTS_INLINE Value load(const T* p) { return *p; }
    static SLTS_INLINE void store(T* p, Value v) { *p = v; }
    static SLTS_INLINE Bits load_bits(const Int* p) { return *p; }
    static SLTS_INLINE void store_bits(Int* p, Bits v) { *p = v; }
    static SLTS_INLINE Value load_unaligned(const T* p) { return *p; }
    static SLTS_INLINE void store_unaligned(T* p, Value v) { *p = v; }
};

}  // namespace slts::SLTS_TARGET
