// A band is one interval [start, stop) of admitted columns per row, never a dense mask.
#pragma once

#include <cmath>
#include <cstdint>

#include "job.hpp"
#include "lanes.hpp"

namespace slts::SLTS_TARGET {

struct Interval {
    std::int64_t start, stop;
};

// The interval of row i of an n x m grid. Both ends never decrease with i, which the recurrence
// needs.
inline Interval band_interval(const Band& band, std::int64_t i, std::int64_t n, std::int64_t m) {
    std::int64_t start = 0, stop = m;
    if (band.radius >= 0) {
        const std::int64_t surplus = m - n;
        start = i + (surplus < 0 ? surplus : 0) - band.radius;
        stop = i + (surplus > 0 ? surplus : 0) + band.radius + 1;
    } else if (band.slope > 0.0 && n > 1) {
        // A path is at most `slope` times steeper or flatter than the straight one.
        const double slope = band.slope, tiny = 1e-9;
        const double straight = static_cast<double>(m - 1) / static_cast<double>(n - 1);
        const double done = straight * static_cast<double>(i);
        const double left = straight * static_cast<double>(n - 1 - i);
        const double top = static_cast<double>(m - 1);
        const double low_a = done / slope, low_b = top - left * slope;
        const double high_a = done * slope, high_b = top - left / slope;
        start = static_cast<std::int64_t>(std::ceil((low_a > low_b ? low_a : low_b) - tiny));
        stop =
            static_cast<std::int64_t>(std::floor((high_a < high_b ? high_a : high_b) + tiny)) + 1;
    }
    return {start < 0 ? 0 : start, stop > m ? m : stop};
}

}  // namespace slts::SLTS_TARGET
