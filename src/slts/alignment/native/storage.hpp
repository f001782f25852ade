// Layouts for the kernel: series as padded rows, landmarks side by side in packs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <numeric>
#include <optional>
#include <vector>

#include "job.hpp"

namespace slts {

template <class T>
class AlignedArray {
   public:
    AlignedArray() = default;
    explicit AlignedArray(std::size_t size)
        : data_(static_cast<T*>(::operator new(size * sizeof(T) + kAlign, kAlignment))),
          size_(size) {
        std::fill_n(data_, size, T(0));
    }
    ~AlignedArray() { release(); }
    AlignedArray(const AlignedArray&) = delete;
    AlignedArray& operator=(const AlignedArray&) = delete;
    AlignedArray(AlignedArray&& other) noexcept { swap(other); }
    AlignedArray& operator=(AlignedArray&& other) noexcept {
        swap(other);
        return *this;
    }
    T* data() const { return data_; }
    std::size_t size() const { return size_; }

   private:
    static constexpr std::size_t kAlign = 64;
    static constexpr std::align_val_t kAlignment{kAlign};
    void swap(AlignedArray& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
    }
    void release() {
        if (data_ != nullptr) ::operator delete(data_, kAlignment);
    }
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

template <class T>
class RowStore {
   public:
    // `shift` is null or one number >= 0 per row, which is stored with its sign changed (see Rows).
    RowStore(const double* values, const std::int64_t* offsets, std::int64_t count,
             std::int64_t channels, const double* shift)
        : offsets_(offsets, offsets + count + 1), channels_(channels), stride_(padded(channels)) {
        const std::int64_t steps = offsets_.back();
        // With the spare rows, `kUnrolled` rows from any row on end inside the allocation.
        data_ = AlignedArray<T>(static_cast<std::size_t>((steps + kUnrolled - 1) * stride_));
        for (std::int64_t i = 0; i < steps; ++i)
            for (std::int64_t k = 0; k < channels; ++k)
                data_.data()[i * stride_ + k] = static_cast<T>(values[i * channels + k]);
        if (shift != nullptr) {
            shift_ = AlignedArray<T>(static_cast<std::size_t>(steps));
            for (std::int64_t i = 0; i < steps; ++i) shift_.data()[i] = -static_cast<T>(shift[i]);
        }
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
    // `width` landmarks per pack. A single remaining landmark gets a pack of width 1. `summed` has
    // what `grouped` sums instead of the rows.
    LandmarkStore(RowStore<T>&& rows, std::optional<RowStore<T>>&& summed, std::int64_t width)
        : rows_(std::move(rows)), summed_(std::move(summed)) {
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
    std::int64_t widest_frontier() const {
        std::int64_t most = 0;
        for (const PackInfo& p : packs_) most = std::max(most, p.columns * p.width);
        return most;
    }

   private:
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
        packed_ = AlignedArray<T>(static_cast<std::size_t>(data));
        if (rows.shift != nullptr) shift_ = AlignedArray<T>(static_cast<std::size_t>(shift));
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

}  // namespace slts
