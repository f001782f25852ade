// A symmetric matrix A = Q T Q' with tridiagonal T: solves with A + s I for many shifts s.
#pragma once

#include "linear_algebra.hpp"

namespace slts {

class Tridiagonal {
   public:
    // Takes a symmetric matrix, of which the upper triangle of its rows is read, minus the outer
    // product of a vector with itself.
    Tridiagonal(const double* matrix, const Vector& subtracted)
        : size_(subtracted.size()),
          reflectors_(size_ * size_),
          scales_(size_ > 0 ? size_ - 1 : 0),
          diagonal_(size_),
          below_(scales_.size()) {
        if (size_ == 0) return;
        for (std::size_t i = 0; i < size_; ++i)
            for (std::size_t j = i; j < size_; ++j)
                reflectors_[i * size_ + j] = matrix[i * size_ + j] - subtracted[i] * subtracted[j];
        char lower = 'L';
        Integer n = static_cast<Integer>(size_), length = kBlock * n, info = 0;
        Vector work(kBlock * size_);
        scipy.dsytrd(&lower, &n, reflectors_.data(), &n, diagonal_.data(), below_.data(),
                     scales_.data(), work.data(), &length, &info);
        double largest = std::numeric_limits<double>::min();
        for (const double value : diagonal_) largest = std::max(largest, std::abs(value));
        for (const double value : below_) largest = std::max(largest, std::abs(value));
        floor_ = std::numeric_limits<double>::epsilon() * largest;
        form_blocks();
    }

    std::size_t size() const { return size_; }

    // Replaces each of some rows x by x Q, or by x Q'. Only reads what threads share, unlike
    // LAPACK.
    void rotate(double* rows, std::size_t count, bool back) const {
        if (count == 0) return;
        Vector work(kBlock * count);
        const std::size_t n_blocks = factors_.size() / (kBlock * kBlock);
        for (std::size_t b = 0; b < n_blocks; ++b)
            reflect(back ? n_blocks - 1 - b : b, rows, count, back, work.data());
    }

    // Sets x (T + s I)^-1 for each shift and each of some rows x.
    void solve(const double* rows, std::size_t count, const Vector& shifts, double* out) const {
        Vector solved(kLanes * size_);
        for_lanes(shifts, [&](const Pivots& pivots, std::size_t begin, std::size_t used) {
            for (std::size_t i = 0; i < count; ++i) {
                const double* row = rows + i * size_;
                double lanes[kLanes] = {};
                for (std::size_t j = 0; j < size_; ++j)
                    for (std::size_t k = 0; k < kLanes; ++k) {
                        lanes[k] = row[j] - pivots.ratio(j)[k] * lanes[k];
                        solved[j * kLanes + k] = lanes[k];
                    }
                for (std::size_t k = 0; k < kLanes; ++k) lanes[k] = 0.0;
                for (std::size_t j = size_; j-- > 0;) {
                    const double* above = j + 1 < size_ ? pivots.ratio(j + 1) : kNothing;
                    for (std::size_t k = 0; k < kLanes; ++k)
                        lanes[k] =
                            solved[j * kLanes + k] * pivots.inverse(j)[k] - above[k] * lanes[k];
                    for (std::size_t k = 0; k < used; ++k)
                        out[((begin + k) * count + i) * size_ + j] = lanes[k];
                }
            }
        });
    }

    // Sets x (T + s I)^-1 x' for each of some rows x and each shift.
    void quadratic(const double* rows, std::size_t count, const Vector& shifts, double* out) const {
        for_lanes(shifts, [&](const Pivots& pivots, std::size_t begin, std::size_t used) {
            for (std::size_t i = 0; i < count; ++i) {
                const double* row = rows + i * size_;
                double forward[kLanes] = {}, total[kLanes] = {};
                for (std::size_t j = 0; j < size_; ++j) {
                    const double *ratio = pivots.ratio(j), *inverse = pivots.inverse(j);
                    for (std::size_t k = 0; k < kLanes; ++k) {
                        forward[k] = row[j] - ratio[k] * forward[k];
                        total[k] += forward[k] * forward[k] * inverse[k];
                    }
                }
                std::copy_n(total, used, out + i * shifts.size() + begin);
            }
        });
    }

   private:
    // Shifts that are treated at once; reflectors that are applied at once.
    static constexpr std::size_t kLanes = 8, kBlock = 32;
    static constexpr double kNothing[kLanes] = {};

    // T + s I = L D L' for some shifts: the entries of L below its diagonal, and of D^-1.
    class Pivots {
       public:
        Pivots(const Tridiagonal& own, const double* shifts, std::size_t count)
            : entries_(2 * kLanes * own.size_) {
            for (std::size_t k = 0; k < kLanes; ++k) {
                const double shift = shifts[std::min(k, count - 1)];
                double ratio = 0.0, pivot = 0.0;
                for (std::size_t j = 0; j < own.size_; ++j) {
                    const double below = j > 0 ? own.below_[j - 1] : 0.0;
                    if (j > 0) ratio = below / pivot;
                    // Rounding may make a semidefinite matrix indefinite.
                    pivot = std::max(own.diagonal_[j] + shift - ratio * below, own.floor_);
                    entries_[2 * kLanes * j + k] = ratio;
                    entries_[2 * kLanes * j + kLanes + k] = 1.0 / pivot;
                }
            }
        }
        const double* ratio(std::size_t j) const { return entries_.data() + 2 * kLanes * j; }
        const double* inverse(std::size_t j) const { return ratio(j) + kLanes; }

       private:
        Vector entries_;
    };

    // Calls a function with the pivots of some shifts, the first of them, and their number.
    template <class F>
    void for_lanes(const Vector& shifts, F call) const {
        for (std::size_t begin = 0; begin < shifts.size(); begin += kLanes) {
            const std::size_t used = std::min(kLanes, shifts.size() - begin);
            call(Pivots(*this, shifts.data() + begin, used), begin, used);
        }
    }

    // Some reflectors V: column c has its one in row c, below row `first` of the matrix.
    struct Block {
        std::size_t first;
        Integer width, height, stride;
        double* reflectors;
        double* factor;
    };
    // BLAS and LAPACK declare what they only read as variable.
    Block block(std::size_t number) const {
        const std::size_t first = number * kBlock, height = size_ - 1 - first;
        return {first,
                static_cast<Integer>(std::min(kBlock, height)),
                static_cast<Integer>(height),
                static_cast<Integer>(size_),
                const_cast<double*>(reflectors_.data()) + first * size_ + first + 1,
                const_cast<double*>(factors_.data()) + number * kBlock * kBlock};
    }

    // Writes out the ones and zeros of the reflectors, and finds F for each block: its reflectors
    // multiply to I - V F V'.
    void form_blocks() {
        char forward = 'F', columns = 'C';
        factors_.resize((scales_.size() + kBlock - 1) / kBlock * kBlock * kBlock);
        for (std::size_t number = 0; number * kBlock < scales_.size(); ++number) {
            Block own = block(number);
            for (Integer c = 0; c < own.width; ++c) {
                std::fill_n(own.reflectors + c * own.stride, c, 0.0);
                own.reflectors[c * own.stride + c] = 1.0;
            }
            Integer order = kBlock;
            scipy.dlarft(&forward, &columns, &own.height, &own.width, own.reflectors, &own.stride,
                         scales_.data() + own.first, own.factor, &order);
        }
    }

    // Applies the reflectors of a block to some rows, in the order of Q or Q'.
    void reflect(std::size_t number, double* rows, std::size_t count, bool back,
                 double* work) const {
        Block own = block(number);
        char left = 'L', upper = 'U', plain = 'N', transposed = 'T', order = back ? 'N' : 'T';
        Integer m = static_cast<Integer>(count), lead = kBlock;
        double one = 1.0, zero = 0.0, minus = -1.0;
        double* part = rows + own.first + 1;
        scipy.dgemm(&transposed, &plain, &own.width, &m, &own.height, &one, own.reflectors,
                    &own.stride, part, &own.stride, &zero, work, &lead);
        scipy.dtrmm(&left, &upper, &order, &plain, &own.width, &m, &one, own.factor, &lead, work,
                    &lead);
        scipy.dgemm(&plain, &plain, &own.height, &m, &own.width, &minus, own.reflectors,
                    &own.stride, work, &lead, &one, part, &own.stride);
    }

    std::size_t size_;
    // Q as LAPACK stores it, and a triangle for each block of reflectors.
    Vector reflectors_, scales_, factors_;
    Vector diagonal_, below_;
    // Smallest pivot.
    double floor_ = 0.0;
};

}  // namespace slts
