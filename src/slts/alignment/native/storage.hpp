// What the kernel works on: series as padded rows, landmarks side by side in packs, scratch memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "job.hpp"

namespace slts {

// Zeros, aligned for vectors.
template <class T>
class AlignedArray {
   public:
    AlignedArray() = default;
    explicit AlignedArray(std::int64_t size)
        : data_(static_cast<T*>(::operator new(bytes(size), kAlignment))) {
        std::fill_n(data_, size, T(0));
    }
    ~AlignedArray() {
        if (data_ != nullptr) ::operator delete(data_, kAlignment);
    }
    AlignedArray(AlignedArray&& other) noexcept { std::swap(data_, other.data_); }
    AlignedArray& operator=(AlignedArray&& other) noexcept {
        std::swap(data_, other.data_);
        return *this;
    }
    T* data() const { return data_; }

   private:
    static constexpr std::align_val_t kAlignment{64};
    static std::size_t bytes(std::int64_t size) {
        return static_cast<std::size_t>(size) * sizeof(T) + static_cast<std::size_t>(kAlignment);
    }
    T* data_ = nullptr;
};

// Series of the caller: steps x channels without padding. `shift` is null or holds one number >= 0
// per step.
struct Series {
    const double* values;
    const std::int64_t* offsets;
    std::int64_t count, channels;
    const double* shift = nullptr;
};

template <class T>
class RowStore {
   public:
    // The shifts are stored with their sign changed (see Rows).
    explicit RowStore(const Series& series)
        : offsets_(series.offsets, series.offsets + series.count + 1),
          channels_(series.channels),
          stride_(padded(series.channels)) {
        const std::int64_t steps = offsets_.back();
        // With the spare rows, `kUnrolled` rows from any row on end inside the allocation.
        data_ = AlignedArray<T>((steps + kUnrolled - 1) * stride_);
        for (std::int64_t i = 0; i < steps; ++i)
            for (std::int64_t k = 0; k < channels_; ++k)
                data_.data()[i * stride_ + k] = static_cast<T>(series.values[i * channels_ + k]);
        if (series.shift == nullptr) return;
        shift_ = AlignedArray<T>(steps);
        for (std::int64_t i = 0; i < steps; ++i)
            shift_.data()[i] = -static_cast<T>(series.shift[i]);
    }

    Rows<T> view() const {
        return {data_.data(), shift_.data(), offsets_.data(), channels_, stride_};
    }
    std::int64_t count() const { return static_cast<std::int64_t>(offsets_.size()) - 1; }
    std::int64_t length(std::int64_t p) const { return offsets_[p + 1] - offsets_[p]; }

   private:
    static std::int64_t padded(std::int64_t channels) {
        return channels <= kNarrowRow ? kNarrowRow
                                      : (channels + kWideRow - 1) / kWideRow * kWideRow;
    }
    std::vector<std::int64_t> offsets_;
    std::int64_t channels_, stride_;
    AlignedArray<T> data_, shift_;
};

template <class T>
class LandmarkStore {
   public:
    // `width` landmarks per pack. A single remaining landmark gets a pack of width 1. With a basis
    // (channels x directions), `grouped` and `sums` sum the rows times the basis.
    LandmarkStore(const Series& landmarks, std::int64_t width, const double* basis,
                  std::int64_t directions)
        : rows_(landmarks) {
        if (basis != nullptr) summed_ = times_basis(landmarks, basis, directions);
        const std::int64_t count = rows_.count();
        order_.resize(static_cast<std::size_t>(count));
        std::iota(order_.begin(), order_.end(), std::int64_t{0});
        std::stable_sort(order_.begin(), order_.end(), [this](std::int64_t a, std::int64_t b) {
            return rows_.length(a) < rows_.length(b);
        });
        plan(count, width);
        fill();
    }

    Landmarks<T> view() const {
        return {rows_.view(),   (summed_ ? *summed_ : rows_).view(),
                packed_.data(), shift_.data(),
                packs_.data(),  order_.data(),
                rows_.count()};
    }
    const std::vector<PackInfo>& packs() const { return packs_; }

   private:
    // Each row is multiplied alone, so that its bits do not depend on the others.
    static RowStore<T> times_basis(const Series& rows, const double* basis, std::int64_t r) {
        const std::int64_t steps = rows.offsets[rows.count], d = rows.channels;
        std::vector<double> products(static_cast<std::size_t>(steps * r), 0.0);
        for (std::int64_t i = 0; i < steps; ++i)
            for (std::int64_t k = 0; k < d; ++k)
                for (std::int64_t c = 0; c < r; ++c)
                    products[i * r + c] += rows.values[i * d + k] * basis[k * r + c];
        return RowStore<T>({products.data(), rows.offsets, rows.count, r});
    }

    void plan(std::int64_t count, std::int64_t width) {
        const Rows<T> rows = rows_.view();
        std::int64_t data = 0, shift = 0;
        for (std::int64_t first = 0; first < count;) {
            PackInfo p;
            p.first = first;
            p.lanes = std::min(width, count - first);
            p.width = p.lanes == 1 ? 1 : width;
            p.columns = rows_.length(order_[first + p.lanes - 1]);
            p.columns = (p.columns + kTileColumns - 1) / kTileColumns * kTileColumns;
            p.data = data, p.shift = shift;
            // Aligned loads need packs that start on a cache line.
            const std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
            data += (p.columns * rows.channels * p.width + line - 1) / line * line;
            shift += (p.columns * p.width + line - 1) / line * line;
            packs_.push_back(p);
            first += p.lanes;
        }
        packed_ = AlignedArray<T>(data);
        if (rows.shift != nullptr) shift_ = AlignedArray<T>(shift);
    }

    void fill() {
        const Rows<T> rows = rows_.view();
        for (const PackInfo& p : packs_) {
            for (std::int64_t w = 0; w < p.lanes; ++w) {
                const std::int64_t q = order_[p.first + w], begin = rows.offsets[q];
                for (std::int64_t j = 0; j < rows_.length(q); ++j) {
                    const T* row = rows.data + (begin + j) * rows.stride;
                    T* column = packed_.data() + p.data + j * rows.channels * p.width + w;
                    for (std::int64_t k = 0; k < rows.channels; ++k) column[k * p.width] = row[k];
                    if (rows.shift != nullptr)
                        shift_.data()[p.shift + j * p.width + w] = rows.shift[begin + j];
                }
            }
        }
    }

    RowStore<T> rows_;
    std::optional<RowStore<T>> summed_;
    std::vector<std::int64_t> order_;
    std::vector<PackInfo> packs_;
    AlignedArray<T> packed_, shift_;
};

// Owns the workspace of one job on a target of this width.
template <class T>
class Scratch {
   public:
    Scratch(const Job<T>& job, std::int64_t width) {
        std::int64_t n = 1, wide = 0;
        for (std::int64_t p = 0; p < job.n_series; ++p)
            n = std::max(n, job.series.offsets[p + 1] - job.series.offsets[p]);
        for (std::int64_t k = job.pack_begin; k < job.pack_end; ++k)
            wide = std::max(wide, job.landmarks.packs[k].columns * job.landmarks.packs[k].width);
        frontier_ = AlignedArray<T>(wide);
        if (!admits_all(job.band)) bounds_ = AlignedArray<T>(n * 2 * width);
        if (job.reduction == Reduction::score) {
            lengths_ = AlignedArray<typename IntOf<T>::type>(wide);
            return;
        }
        const bool grouped = job.reduction == Reduction::grouped;
        const std::int64_t stride = grouped || job.reduction == Reduction::sums
                                        ? job.landmarks.summed.stride
                                        : job.series.stride;
        const std::int64_t parts = grouped ? job.n_outer * job.n_phases : 1;
        moves_ = AlignedArray<std::uint8_t>((n + kTileRows - 1) / kTileRows * wide);
        ends_ = AlignedArray<std::int32_t>(kWalks * walk_size(n));
        sums_ = AlignedArray<T>(parts * n * stride);
        touched_.resize(static_cast<std::size_t>(parts));
        zeros_ = AlignedArray<T>(stride);
        product_ = AlignedArray<T>(job.series.channels * stride);
    }

    Workspace<T> view() {
        return {frontier_.data(), lengths_.data(), bounds_.data(), moves_.data(),  ends_.data(),
                sums_.data(),     touched_.data(), zeros_.data(),  product_.data()};
    }

   private:
    AlignedArray<T> frontier_, bounds_, sums_, zeros_, product_;
    AlignedArray<typename IntOf<T>::type> lengths_;
    AlignedArray<std::uint8_t> moves_;
    AlignedArray<std::int32_t> ends_;
    std::vector<Span> touched_;
};

}  // namespace slts
