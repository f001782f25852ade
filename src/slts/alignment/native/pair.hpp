// The path of one pair of series. It avoids the layouts of storage.hpp, because their set-up takes
// as long as the alignment of a short pair.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "job.hpp"

namespace slts {

enum class Objective { affinity, cost, distance };

// See AlignmentSettings. Mean rows `far_spreads` standard deviations from the origin are subtracted
// for the objective `distance`.
struct PairSettings {
    Objective objective;
    bool normalize;
    Band band;
    double largest_norm, far_spreads;
};

// A series of the caller, (channels, time) with any strides in bytes.
struct StridedSeries {
    const char* data = nullptr;
    std::int64_t channels = 1, steps = 0, to_channel = 0, to_step = 0;

    double operator()(std::int64_t channel, std::int64_t step) const {
        return *reinterpret_cast<const double*>(data + channel * to_channel + step * to_step);
    }
};

// One side of the pair: rows, padded with zeros to whole tiles of columns.
class PairSide {
   public:
    // Numbers of memory that `read` needs.
    static std::int64_t size(const StridedSeries& series) {
        return (series.steps + kTileColumns - 1) * (series.channels + 1);
    }

    // Returns false if a value is not finite or the norm of a row is too large.
    bool read(const StridedSeries& series, const PairSettings& settings, double* memory) {
        steps_ = series.steps, channels_ = series.channels;
        offsets_[1] = steps_;
        const std::int64_t padded = steps_ + kTileColumns - 1;
        rows_ = memory;
        std::fill(rows_ + steps_ * channels_, rows_ + padded * channels_, 0.0);
        if (settings.objective != Objective::affinity) {
            shift_ = memory + padded * channels_;
            std::fill(shift_, shift_ + padded, -0.5);
        }
        const double most = settings.largest_norm * settings.largest_norm;
        for (std::int64_t i = 0; i < steps_; ++i) {
            double* row = rows_ + i * channels_;
            double largest = 0.0, squares = 0.0;
            for (std::int64_t k = 0; k < channels_; ++k) {
                row[k] = series(k, i);
                squares += row[k] * row[k];
                largest = std::max(largest, std::abs(row[k]));
            }
            // AlignmentSettings.check_rows does the same check and raises the error.
            if (!settings.normalize && !(squares <= most)) return false;
            if (settings.normalize && !scale_to_unit(row, largest, squares)) return false;
        }
        return true;
    }

    // The mean row if it is far from the origin, else zero; see LandmarkLayouts.centred.
    std::vector<double> far_centre(double far_spreads) const {
        const auto d = static_cast<std::size_t>(channels_);
        const auto count = static_cast<std::size_t>(steps_) * d;
        std::vector<double> mean(d, 0.0);
        for (std::size_t k = 0; k < count; ++k)
            mean[k % d] += rows_[k] / static_cast<double>(steps_);
        double squares = 0.0, farthest = 0.0;
        for (std::size_t k = 0; k < count; ++k)
            squares += (rows_[k] - mean[k % d]) * (rows_[k] - mean[k % d]);
        for (const double m : mean) farthest = std::max(farthest, std::abs(m));
        const double spread = std::sqrt(squares / static_cast<double>(count));
        return farthest > far_spreads * spread ? mean : std::vector<double>(d, 0.0);
    }

    // Subtracts one row from every row and sets the shifts of the squared distance.
    void move(const std::vector<double>& centre) {
        for (std::int64_t i = 0; i < steps_; ++i) {
            double squares = 0.0;
            double* row = rows_ + i * channels_;
            for (std::int64_t k = 0; k < channels_; ++k) {
                row[k] -= centre[static_cast<std::size_t>(k)];
                squares += row[k] * row[k];
            }
            shift_[i] = -0.5 * squares;
        }
    }

    const double* row(std::int64_t i) const { return rows_ + i * channels_; }
    Rows<double> view() const { return {rows_, shift_, offsets_, channels_, channels_}; }

   private:
    // Returns false if a value is not finite.
    bool scale_to_unit(double* row, double largest, double squares) const {
        if (!std::isfinite(squares) || (squares < 1e-280 && largest > 0.0)) {
            for (std::int64_t k = 0; k < channels_; ++k)
                if (!std::isfinite(row[k])) return false;
            // The squares are out of range: scale by a power of two, which is exact.
            int exponent = 0;
            std::frexp(largest, &exponent);
            squares = 0.0;
            for (std::int64_t k = 0; k < channels_; ++k) {
                row[k] = std::ldexp(row[k], -exponent);
                squares += row[k] * row[k];
            }
        }
        if (largest == 0.0) return true;
        const double norm = std::sqrt(squares);
        for (std::int64_t k = 0; k < channels_; ++k) row[k] /= norm;
        return true;
    }

    std::int64_t steps_ = 0, channels_ = 0, offsets_[2] = {0, 0};
    double* rows_ = nullptr;
    double* shift_ = nullptr;  // see AlignmentSettings.shift; none for affinity
};

class PairAlignment {
   public:
    // Aligns two series with the same number of channels, at least one, and at least one step each.
    // Returns `no_path` also if a value is not finite or the norm of a row is too large.
    Outcome run(const StridedSeries& a, const StridedSeries& b, const PairSettings& settings,
                const Target& target, Poll poll) {
        const std::int64_t m = b.steps, tiles = (a.steps + kTileRows - 1) / kTileRows, only = 0;
        const std::int64_t columns = (m + kTileColumns - 1) / kTileColumns * kTileColumns;
        n_ = a.steps, channels_ = a.channels, objective_ = settings.objective;
        // One allocation for everything: several would take as long as a short alignment.
        const std::int64_t in_x = PairSide::size(a), in_y = PairSide::size(b),
                           numbers = in_x + in_y + columns + 2 * n_,
                           n_ends = walk_size(n_) + 2 * n_;
        memory_.reset(new double[static_cast<std::size_t>(numbers + (n_ends + 1) / 2 +
                                                          (tiles * columns + 7) / 8)]);
        double* memory = memory_.get();
        if (!x_.read(a, settings, memory) || !y_.read(b, settings, memory + in_x))
            return Outcome::no_path;
        if (objective_ == Objective::distance) {
            centre_ = y_.far_centre(settings.far_spreads);
            x_.move(centre_), y_.move(centre_);
        }
        const PackInfo pack{0, 1, 1, columns, 0, 0};
        const Rows<double> y = y_.view();
        Job<double> job;
        job.series = x_.view();
        job.landmarks = {y, y, y.data, y.shift, &pack, &only, 1};
        job.n_series = job.pack_end = 1;
        job.band = settings.band;
        job.reduction = Reduction::path;
        job.poll = poll;
        job.work.frontier = memory + in_x + in_y;
        job.work.bounds = job.work.frontier + columns;
        job.work.ends = reinterpret_cast<std::int32_t*>(memory + numbers);
        job.work.moves = reinterpret_cast<std::uint8_t*>(memory + numbers + (n_ends + 1) / 2);
        job.values = &total_;
        job.path_first = job.work.ends + walk_size(n_), job.path_last = job.path_first + n_;
        first_ = job.path_first, last_ = job.path_last;
        return target.run(job).outcome;
    }

    std::int64_t length() const {
        std::int64_t length = 0;
        for (std::int64_t i = 0; i < n_; ++i) length += last_[i] - first_[i] + 1;
        return length;
    }

    // Writes the aligned steps (i, j), `length` x 2.
    void write_path(std::int64_t* cell) const {
        for (std::int64_t i = 0; i < n_; ++i)
            for (std::int64_t j = first_[i]; j <= last_[i]; ++j, cell += 2)
                cell[0] = i, cell[1] = j;
    }

    double mean_affinity() const {
        const auto t = static_cast<double>(length());
        if (objective_ == Objective::affinity) return total_ / t;
        if (objective_ == Objective::cost) return (total_ + t) / t;
        double total = 0.0;
        for (std::int64_t i = 0; i < n_; ++i)
            for (std::int64_t j = first_[i]; j <= last_[i]; ++j)
                for (std::int64_t k = 0; k < channels_; ++k) {
                    const double centre = centre_[static_cast<std::size_t>(k)];
                    total += (x_.row(i)[k] + centre) * (y_.row(j)[k] + centre);
                }
        return total / t;
    }

   private:
    Objective objective_ = Objective::affinity;
    std::int64_t n_ = 0, channels_ = 0;
    std::unique_ptr<double[]> memory_;
    PairSide x_, y_;
    std::vector<double> centre_;
    double total_ = 0.0;
    const std::int32_t *first_ = nullptr, *last_ = nullptr;
};

}  // namespace slts
