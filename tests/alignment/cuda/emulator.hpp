// The part of CUDA that kernel.cu needs, on a CPU. The 32 lanes of a warp are fibers that switch
// where the warp synchronises. It is slow and serves tests only.
// Every case is a program of its own, so it includes only headers that compile quickly.
#include <ucontext.h>

#include <cstring>
#include <utility>

#define __device__
#define __global__
#define __constant__
#define __shared__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct Dim {
    unsigned x;
};
struct ushort2 {
    unsigned short x, y;
};
struct int2 {
    int x, y;
};
static Dim threadIdx, blockIdx, blockDim, gridDim;
unsigned char shared_memory[1 << 20] __attribute__((aligned(128)));

namespace emulator {
constexpr int kLanes = 32, kStack = 1 << 18;
static ucontext_t scheduler, fibers[kLanes];
static char stacks[kLanes * kStack];
static bool finished[kLanes];
static int lane;
static void (*body)(void*);
static void* context;
static unsigned char slots[kLanes][16];

inline void meet() { swapcontext(&fibers[lane], &scheduler); }
inline void run_lane() {
    body(context);
    finished[lane] = true;
}
inline void run_warp(unsigned warp) {
    for (int l = 0; l < kLanes; ++l) {
        getcontext(&fibers[l]);
        fibers[l].uc_stack = {&stacks[l * kStack], 0, kStack};
        fibers[l].uc_link = &scheduler;
        makecontext(&fibers[l], run_lane, 0);
        finished[l] = false;
    }
    for (bool going = true; going;) {
        going = false;
        for (lane = 0; lane < kLanes; ++lane) {
            if (finished[lane]) continue;
            threadIdx.x = warp * kLanes + lane;
            swapcontext(&scheduler, &fibers[lane]);
            going = true;
        }
    }
}
template <class V>
V exchange(V value, int from) {
    std::memcpy(slots[lane], &value, sizeof value);
    meet();
    std::memcpy(&value, slots[from], sizeof value);
    meet();
    return value;
}
template <class... A>
void launch(void (*kernel)(A...), unsigned grid, unsigned block, void** arguments) {
    auto call = [&]<std::size_t... K>(std::index_sequence<K...>) {
        kernel(*static_cast<std::remove_reference_t<A>*>(arguments[K])...);
    };
    auto all = [&] { call(std::index_sequence_for<A...>{}); };
    body = [](void* c) { (*static_cast<decltype(all)*>(c))(); };
    context = &all;
    gridDim.x = grid, blockDim.x = block;
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x)
        for (unsigned warp = 0; warp < block / kLanes; ++warp) run_warp(warp);
}
}  // namespace emulator

inline int2 make_int2(int x, int y) { return {x, y}; }
inline float __int_as_float(unsigned bits) {
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}
inline int min(int a, int b) { return a < b ? a : b; }
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline double ceil(double x) { return __builtin_ceil(x); }
inline double floor(double x) { return __builtin_floor(x); }
inline void __syncwarp() { emulator::meet(); }
template <class V>
V __shfl_sync(unsigned, V value, int from) {
    return emulator::exchange(value, from);
}
template <class V>
V __shfl_xor_sync(unsigned, V value, int mask) {
    return emulator::exchange(value, emulator::lane ^ mask);
}
template <class V>
V atomicAdd(V* at, V value) {
    return std::exchange(*at, *at + value);
}
template <class V>
V atomicMin(V* at, V value) {
    return std::exchange(*at, value < *at ? value : *at);
}
