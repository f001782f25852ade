// A symmetric matrix A = Q T Q' with tridiagonal T: solves with A + s I for many shifts s.
#pragma once

#include "linear_algebra.hpp"

namespace slts {

class Tridiagonal {
   public:
    // Reads a full symmetric matrix.
    Tridiagonal(const double* matrix, std::size_t size)
        : size_(size),
          reflectors_(matrix, matrix + size * size),
          scales_(size > 0 ? size - 1 : 0),
          diagonal_(size),
          below_(scales_.size()) {
        if (size == 0) return;
        char lower = 'L';
        with_workspace([&](double* work, Integer* length, Integer* info) {
            Integer n = static_cast<Integer>(size_);
            scipy.dsytrd(&lower, &n, reflectors_.data(), &n, diagonal_.data(), below_.data(),
                         scales_.data(), work, length, info);
        });
        double largest = std::numeric_limits<double>::min();
        for (const double value : diagonal_) largest = std::max(largest, std::abs(value));
        for (const double value : below_) largest = std::max(largest, std::abs(value));
        floor_ = std::numeric_limits<double>::epsilon() * largest;
    }

    std::size_t size() const { return size_; }

    // Replaces each of some rows x by x Q, or by x Q'.
    void rotate(double* rows, std::size_t count, bool back) const {
        if (count == 0 || size_ == 0) return;
        // Rows are the columns of a matrix in Fortran's order, to which Q' or Q is applied.
        char left = 'L', lower = 'L', transposed = back ? 'N' : 'T';
        with_workspace([&](double* work, Integer* length, Integer* info) {
            Integer n = static_cast<Integer>(size_), m = static_cast<Integer>(count);
            scipy.dormtr(&left, &lower, &transposed, &n, &m, constant(reflectors_), &n,
                         constant(scales_), rows, &n, work, length, info);
        });
    }

    // Replaces each of some rows x by x (T + s I)^-1.
    void solve(double* rows, std::size_t count, double shift) const {
        const Pivots pivots(*this, &shift, 1);
        for (std::size_t i = 0; i < count; ++i, rows += size_) {
            for (std::size_t j = 1; j < size_; ++j) rows[j] -= pivots.ratio(j)[0] * rows[j - 1];
            for (std::size_t j = 0; j < size_; ++j) rows[j] *= pivots.inverse(j)[0];
            for (std::size_t j = size_; j-- > 1;) rows[j - 1] -= pivots.ratio(j)[0] * rows[j];
        }
    }

    // Sets x (T + s I)^-1 x' for each of some rows x and each shift.
    void quadratic(const double* rows, std::size_t count, const Vector& shifts, double* out) const {
        for (std::size_t begin = 0; begin < shifts.size(); begin += kLanes) {
            const std::size_t used = std::min(kLanes, shifts.size() - begin);
            const Pivots pivots(*this, shifts.data() + begin, used);
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
        }
    }

   private:
    // Shifts that are treated at once.
    static constexpr std::size_t kLanes = 8;

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

    // LAPACK declares what it only reads as variable.
    static double* constant(const Vector& values) { return const_cast<double*>(values.data()); }

    // Calls a function of LAPACK twice: to learn the best size of its workspace, and with it.
    template <class F>
    static void with_workspace(F call) {
        double best = 0.0;
        Integer length = -1, info = 0;
        call(&best, &length, &info);
        length = static_cast<Integer>(best);
        Vector work(static_cast<std::size_t>(length));
        call(work.data(), &length, &info);
    }

    std::size_t size_;
    // Q as LAPACK stores it.
    Vector reflectors_, scales_;
    Vector diagonal_, below_;
    // Smallest pivot.
    double floor_ = 0.0;
};

}  // namespace slts
