#include "targets.hpp"

#include <cstdlib>
#include <cstring>

#if defined(SLTS_X86) && defined(_MSC_VER)
#include <intrin.h>
#endif

namespace slts {
namespace {

bool always() { return true; }

#if defined(SLTS_X86)
#if defined(_MSC_VER)
bool cpu_has(int register_index, int bit) {
    int info[4];
    __cpuidex(info, 7, 0);
    return (info[register_index] >> bit) & 1;
}
bool os_saves(unsigned long long mask) {
    int info[4];
    __cpuid(info, 1);
    const bool usable = ((info[2] >> 27) & 1) && ((info[2] >> 12) & 1);  // OSXSAVE, FMA
    return usable && (_xgetbv(0) & mask) == mask;
}
bool has_avx2() {  // and BMI1, BMI2
    return os_saves(0x6) && cpu_has(1, 5) && cpu_has(1, 3) && cpu_has(1, 8);
}
bool has_avx512() {
    return has_avx2() && os_saves(0xe6) && cpu_has(1, 16) && cpu_has(1, 17) && cpu_has(1, 30) &&
           cpu_has(1, 31);
}
#else
bool has_avx2() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
bool has_avx512() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#endif
#endif

const Target kTargets[] = {
#if defined(SLTS_X86)
    {"avx512", has_avx512, 16, 8, run_avx512, run_avx512, windows_avx512},
    {"avx2", has_avx2, 8, 4, run_avx2, run_avx2, windows_avx2},
#endif
#if defined(__aarch64__) || defined(_M_ARM64)
    {"neon", always, 4, 2, run_baseline, run_baseline, windows_baseline},
#else
    {"baseline", always, 4, 2, run_baseline, run_baseline, windows_baseline},
#endif
};

}  // namespace

int count_usable_targets() {
    int count = 0;
    for (const Target& t : kTargets) count += t.usable() ? 1 : 0;
    return count;
}

const Target& usable_target(int k) {
    for (const Target& t : kTargets)
        if (t.usable() && k-- == 0) return t;
    return kTargets[sizeof(kTargets) / sizeof(kTargets[0]) - 1];
}

int selected_target() {
    const char* wanted = std::getenv("SLTS_ISA");
    if (wanted == nullptr || *wanted == '\0') return 0;
    for (int k = 0; k < count_usable_targets(); ++k)
        if (std::strcmp(usable_target(k).name, wanted) == 0) return k;
    return -1;
}

}  // namespace slts
