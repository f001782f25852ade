// The arguments of one call of the window kernel: plain data, shared by all targets.
#pragma once

#include <cstdint>

namespace slts {

inline constexpr int kMostThresholds = 8;

// Steps beyond the end of a series that the kernel reads and ignores.
inline constexpr std::int64_t kWindowSlack = 64;

// Short windows of some channels. Window w has the channels first[w], ..., first[w + 1] - 1 of
// `channels`, and as many times `length` values. It is compared with steps that are `dilation`
// apart. If `shape_only`, its values have mean zero and unit variance in each channel, and so have
// those it is compared with; `energy` is then the sum of their squares.
struct Windows {
    const double* values = nullptr;
    const std::int64_t* first = nullptr;
    const std::int64_t* channels = nullptr;
    const std::int64_t* dilation = nullptr;
    const std::uint8_t* shape_only = nullptr;
    const double* energy = nullptr;
    const double* thresholds = nullptr;  // windows x n_thresholds
    std::int64_t length = 0, n_thresholds = 0;
};

// One series against the windows [begin, end), which have the same dilation.
struct WindowJob {
    Windows windows;
    std::int64_t begin = 0, end = 0;
    std::int64_t n_steps = 0, pad = 0, stride = 0;
    const double* padded = nullptr;       // channels x stride: the series with `pad` steps before it
    const double* shape_norm = nullptr;   // channels x stride: sum of squares of standardised values
    const double* shape_scale = nullptr;  // channels x stride: 2 / standard deviation
    std::int32_t* counts = nullptr;       // all windows x n_thresholds: steps that are near enough
    double* distances = nullptr;          // one window only: n_steps + kWindowSlack
};

}  // namespace slts
