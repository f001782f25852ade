// The arguments of one call of the window kernel: plain data, shared by all targets.
#pragma once

#include <cstdint>

namespace slts {

inline constexpr int kMostThresholds = 8;

// Steps beyond the end of a series that the kernel reads and ignores.
inline constexpr std::int64_t kWindowSlack = 64;

// Steps that are compared with all windows of a dilation before the next ones: whole vectors.
inline constexpr std::int64_t kWindowSteps = 1024;

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

// Some steps of one series against the windows [begin, end), which have the same dilation.
struct WindowJob {
    Windows windows;
    std::int64_t begin = 0, end = 0;
    std::int64_t step_begin = 0, step_end = 0;
    // Not larger than the series, whose edge values repeat beyond its ends in any case.
    std::int64_t dilation = 1;
    std::int64_t pad = 0, stride = 0, shape_stride = 0;
    const double* padded = nullptr;      // channels x stride: the series with `pad` steps before it
    const double* shape_norm = nullptr;  // channels x shape_stride, from step_begin on: sum of
                                         // squares of the standardised values
    const double* shape_scale = nullptr;  // the same: 2 / standard deviation
    std::int32_t* counts = nullptr;       // all windows x n_thresholds: near steps are added
    double* distances = nullptr;          // one window only: by step, with kWindowSlack more
};

}  // namespace slts
