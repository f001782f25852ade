// The arguments of one call of the window kernel: plain data, shared by all targets.
#pragma once

#include <cstdint>

namespace slts {

// Most vectors of steps that are compared at once, and the most lanes of a vector.
inline constexpr int kWindowVectors = 4, kMostLanes = 16;

// Steps beyond the end of a series that the kernel reads and ignores.
inline constexpr std::int64_t kWindowSlack = kWindowVectors * kMostLanes;

// Added to the mean square of second differences, where the variance of a channel is 1: noise is
// not scaled up to a shape.
inline constexpr double kWindowFlatness = 1e-2;

// Values at either end of a window that have no second difference.
inline constexpr std::int64_t kBendEdge = 1;

// Short windows of some channels. Window w has the channels first[w], ..., first[w + 1] - 1 of
// `channels`, and as many times `length` values. Its results go to row id[w]. A threshold for
// squared distances |x - y|^2 is a level for x.y - |x|^2 / 2, which has half of the operations:
// levels are compared in float32, and distances are float64.
template <class T>
struct Windows {
    const T* values = nullptr;
    const std::int64_t* first = nullptr;
    const std::int64_t* channels = nullptr;
    const std::int64_t* id = nullptr;
    std::int64_t length = 0, n_thresholds = 0;
    const float* levels = nullptr;  // windows x n_thresholds: (|y|^2 - threshold) / 2
};

// Factors of copies of an array that are `apart` from each other; the middle one is in its place.
struct Shifts {
    const double* factors;
    std::int64_t count, apart;
};

// Some steps of one series against the windows [begin, end), which are of one kind: they are
// compared with steps that are `dilation` apart, or with means of as many neighbouring steps if
// `averaged`; by their second differences, scaled to unit mean square in each channel, if
// `shape_only`.
template <class T>
struct WindowJob {
    Windows<T> windows;
    std::int64_t begin = 0, end = 0;
    std::int64_t step_begin = 0, step_end = 0, steps = 0;
    // Not larger than the series, whose edge values repeat beyond its ends in any case.
    std::int64_t dilation = 1;
    bool averaged = false, shape_only = false;
    std::int64_t pad = 0, stride = 0;
    const double* padded = nullptr;      // channels x stride: the series with `pad` steps before it
    double* means = nullptr;             // channels x stride, if `averaged`
    double* sums = nullptr;              // steps of a channel that means are made from
    const std::int64_t* used = nullptr;  // channels of the windows
    std::int64_t n_used = 0;
    T* columns = nullptr;            // channels x length x vectors: the values at each distance
    T* starts = nullptr;             // channels x vectors: -|x|^2 / 2
    std::int32_t* counts = nullptr;  // rows x n_thresholds: near steps are added
    std::uint8_t* met = nullptr;     // rows x steps: met thresholds, instead of `counts`
    double* distances = nullptr;     // rows x steps
};

}  // namespace slts
