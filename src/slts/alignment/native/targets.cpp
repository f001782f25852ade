#include "targets.hpp"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#if defined(SLTS_X86) && defined(_MSC_VER)
#include <intrin.h>
#endif

// The entry points that target.hpp defines.
#define SLTS_DECLARE(TARGET)                                               \
    namespace slts::TARGET {                                               \
    Result run(const Job<float>&);                                         \
    Result run(const Job<double>&);                                        \
    void run(const WindowJob<float>&);                                     \
    void run(const WindowJob<double>&);                                    \
    void add_shifted(const Shifts&, const double*, std::int64_t, double*); \
    }
SLTS_DECLARE(baseline)
#if defined(SLTS_X86)
SLTS_DECLARE(avx2)
SLTS_DECLARE(avx512)
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
    {"avx512", has_avx512, 64, avx512::run, avx512::run, avx512::run, avx512::run,
     avx512::add_shifted},
    {"avx2", has_avx2, 32, avx2::run, avx2::run, avx2::run, avx2::run, avx2::add_shifted},
#endif
#if defined(__aarch64__) || defined(_M_ARM64)
    {"neon", always, 16, baseline::run, baseline::run, baseline::run, baseline::run,
     baseline::add_shifted},
#else
    {"baseline", always, 16, baseline::run, baseline::run, baseline::run, baseline::run,
     baseline::add_shifted},
#endif
};

}  // namespace

const std::vector<const Target*>& usable_targets() {
    static const std::vector<const Target*> targets = [] {
        std::vector<const Target*> usable;
        for (const Target& target : kTargets)
            if (target.usable()) usable.push_back(&target);
        return usable;
    }();
    return targets;
}

const Target& selected_target() {
    const char* name = std::getenv("SLTS_ISA");
    if (name == nullptr || *name == '\0') return *usable_targets().front();
    std::string names;
    for (const Target* target : usable_targets()) {
        if (std::strcmp(target->name, name) == 0) return *target;
        names += std::string(names.empty() ? "" : ", ") + target->name;
    }
    throw std::invalid_argument("SLTS_ISA must be one of " + names + " on this machine. Got '" +
                                name + "' instead.");
}

}  // namespace slts
