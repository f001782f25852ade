// A symmetric matrix A = Q B Q' with banded B: solves with A + s I for many shifts s.
//
// All large steps are products of matrices that threads share. The caller reduces one panel of
// columns after the other (reflect_panel, multiply for all later strips, end_panel), then calls
// form_block and factorise with all their numbers. After that the matrix is only read.
#pragma once

#include <utility>

#include "linear_algebra.hpp"
#include "substitution.hpp"

namespace slts {

class Banded {
   public:
    // Columns that a thread multiplies at once. The number of threads must not change the bits.
    static constexpr std::size_t kStrip = 128;

    // Overwrites the matrix, of which both triangles are read.
    Banded(std::shared_ptr<double> matrix, std::size_t size, Vector shifts)
        : size_(size),
          stride_(static_cast<Integer>(size)),
          matrix_(std::move(matrix)),
          scales_(size > kBand ? size - kBand : 0),
          factors_(n_blocks() * kBlock * kBlock),
          left_(2 * kBand * size),
          right_(2 * kBand * size),
          products_((1 + n_strips()) * kBand * size),
          band_((size + kBand) * kRow),
          shifts_(std::move(shifts)),
          forward_(shifts_.size()),
          backward_(shifts_.size()),
          substitution_(best_substitution()) {}

    std::size_t size() const { return size_; }
    std::size_t n_shifts() const { return shifts_.size(); }
    bool is_factorised() const {
        return std::none_of(forward_.begin(), forward_.end(),
                            [this](const Vector& own) { return own.empty() && size_ > 0; });
    }
    std::size_t n_panels() const { return (size_ + kBand - 1) / kBand; }
    std::size_t n_strips() const { return (size_ + kStrip - 1) / kStrip; }
    std::size_t n_blocks() const { return (scales_.size() + kBlock - 1) / kBlock; }

    // Finds the reflectors that make the columns of a panel banded.
    void reflect_panel(std::size_t number) {
        const std::size_t first = number * kBand, end = std::min(first + kBand, size_);
        if (number > 0) update(first, first, end);
        for (std::size_t c = first; c < end; ++c)
            std::copy_n(entry(c, c), end - c, band_.data() + c * kRow);
        if (end == size_) return;
        Part own = part(first, kBand);
        char forward = 'F', columns = 'C';
        Integer width = kBand, info = 0;
        double scales[kBand], work[kBand];
        scipy.dgeqr2(&own.height, &width, own.reflectors, &stride_, scales, work, &info);
        for (std::size_t c = first; c < end; ++c)
            for (std::size_t r = end; r <= c + kBand && r < size_; ++r)
                band_[c * kRow + r - c] = *entry(r, c);
        std::copy_n(scales, own.width, scales_.data() + first);
        write_ones(own);
        scipy.dlarft(&forward, &columns, &own.height, &own.width, own.reflectors, &stride_, scales,
                     factor_, &width);
    }

    // Updates the columns of a strip that come after a panel, and multiplies them with its
    // reflectors. Entries above a strip's own square are those below the squares of others.
    void multiply(std::size_t number, std::size_t strip) {
        Part own = part(number * kBand, kBand);
        const std::size_t begin = std::max(strip * kStrip, own.row), end = end_of(strip);
        if (number > 0) update(begin, begin, end);
        char plain = 'N', transposed = 'T';
        Integer count = static_cast<Integer>(end - begin);
        Integer height = static_cast<Integer>(size_ - begin);
        Integer below = static_cast<Integer>(size_ - end);
        double one = 1.0, zero = 0.0, *reflectors = own.reflectors + begin - own.row;
        scipy.dgemm(&transposed, &plain, &count, &own.width, &height, &one, entry(begin, begin),
                    &stride_, reflectors, &stride_, &zero, products_.data() + begin, &stride_);
        if (below > 0)
            scipy.dgemm(&plain, &plain, &below, &own.width, &count, &one, entry(end, begin),
                        &stride_, reflectors, &stride_, &zero, products_below(strip) + end,
                        &stride_);
    }

    // Finds what the reflectors V of a panel change: V W' + W V' is subtracted from what follows.
    void end_panel(std::size_t number) {
        Part own = part(number * kBand, kBand);
        char left = 'L', right = 'R', upper = 'U', plain = 'N', transposed = 'T';
        Integer order = kBand;
        double one = 1.0, zero = 0.0, minus_half = -0.5;
        double inner[kBand * kBand], *w = right_.data() + own.row;
        const auto height = static_cast<std::size_t>(own.height);
        const auto width = static_cast<std::size_t>(own.width);
        // W = P F - V F' V' P F / 2, where P are the products.
        for (std::size_t c = 0; c < width; ++c) {
            std::copy_n(products_.data() + c * size_ + own.row, height, w + c * size_);
            // In the same order for any number of threads.
            for (std::size_t strip = own.row / kStrip; strip < n_strips(); ++strip)
                for (std::size_t r = end_of(strip); r < size_; ++r)
                    right_[c * size_ + r] += products_below(strip)[c * size_ + r];
        }
        scipy.dtrmm(&right, &upper, &plain, &plain, &own.height, &own.width, &one, factor_, &order,
                    w, &stride_);
        scipy.dgemm(&transposed, &plain, &own.width, &own.width, &own.height, &one, own.reflectors,
                    &stride_, w, &stride_, &zero, inner, &order);
        scipy.dtrmm(&left, &upper, &transposed, &plain, &own.width, &own.width, &one, factor_,
                    &order, inner, &order);
        scipy.dgemm(&plain, &plain, &own.height, &own.width, &own.width, &minus_half,
                    own.reflectors, &stride_, inner, &order, &one, w, &stride_);
        // The last panel has fewer reflectors.
        for (std::size_t c = 0; c < kBand; ++c) {
            const std::size_t of_w = c * size_ + own.row, of_v = (kBand + c) * size_ + own.row;
            if (c >= width) std::fill_n(right_.data() + of_w, height, 0.0);
            if (c < width)
                std::copy_n(own.reflectors + c * size_, height, right_.data() + of_v);
            else
                std::fill_n(right_.data() + of_v, height, 0.0);
            std::copy_n(right_.data() + of_v, height, left_.data() + of_w);
            std::copy_n(right_.data() + of_w, height, left_.data() + of_v);
        }
    }

    // Finds F for some reflectors V, which multiply to I - V F V'.
    void form_block(std::size_t number) {
        Part own = block(number);
        write_ones(own);
        char forward = 'F', columns = 'C';
        Integer order = kBlock;
        scipy.dlarft(&forward, &columns, &own.height, &own.width, own.reflectors, &stride_,
                     scales_.data() + number * kBlock, factors_.data() + number * kBlock * kBlock,
                     &order);
    }

    // Finds the triangle L with L L' = B + s I for a shift. Rounding may make a semidefinite matrix
    // indefinite: the shift is raised until no pivot is smaller than rounding.
    void factorise(std::size_t number) {
        const double least = std::max(std::numeric_limits<double>::epsilon() * largest_size(band_),
                                      std::numeric_limits<double>::min());
        Vector lower, inverses(size_);
        double raised = 0.0;
        while (!try_shift(shifts_[number] + raised, least, lower, inverses))
            raised = 4.0 * std::max(raised, least);
        Vector &forward = forward_[number], &backward = backward_[number];
        forward.assign(padded() * kRow, 0.0);
        backward.assign(padded() * kRow, 0.0);
        for (std::size_t j = 0; j < size_; ++j) {
            // Substitution from the last unknown to the first has the same form.
            double* back = backward.data() + (size_ - 1 - j) * kRow;
            forward[j * kRow + kBand] = back[kBand] = inverses[j];
            for (std::size_t d = 1; d <= kBand && j + d < size_; ++d)
                forward[(j + d) * kRow + kBand - d] = back[kBand - d] = lower[j * kRow + d];
        }
    }

    // Replaces each of some rows x by x Q, or by x Q'. LAPACK would change what threads share.
    void rotate(double* rows, std::size_t count, bool back) const {
        if (count == 0) return;
        Vector work(kBlock * count);
        for (std::size_t b = 0; b < n_blocks(); ++b)
            reflect(back ? n_blocks() - 1 - b : b, rows, count, back, work.data());
    }

    // Sets x (B + s I)^-1 for some of the shifts and each of some rows x.
    void solve(const double* rows, std::size_t count, std::size_t begin, std::size_t end,
               double* out) const {
        const std::size_t lanes = substitution_.lanes;
        Vector reversed(padded() * lanes);
        for_lanes(rows, count,
                  [&](std::size_t first, std::size_t used, const double* x, double* before,
                      double* squares) {
                      const double* y = before + kBand * lanes;
                      for (std::size_t k = begin; k < end; ++k) {
                          substitution_.run(forward_[k].data(), x, before, padded(), squares);
                          for (std::size_t j = 0; j < size_; ++j)
                              std::copy_n(y + j * lanes, lanes,
                                          reversed.data() + (size_ - 1 - j) * lanes);
                          substitution_.run(backward_[k].data(), reversed.data(), before, padded(),
                                            squares);
                          for (std::size_t i = 0; i < used; ++i)
                              for (std::size_t j = 0; j < size_; ++j)
                                  out[((k - begin) * count + first + i) * size_ + size_ - 1 - j] =
                                      y[j * lanes + i];
                      }
                  });
    }

    // Sets x (B + s I)^-1 x' for each of some rows x and each shift.
    void quadratic(const double* rows, std::size_t count, double* out) const {
        for_lanes(rows, count,
                  [&](std::size_t first, std::size_t used, const double* x, double* before,
                      double* squares) {
                      for (std::size_t k = 0; k < n_shifts(); ++k) {
                          substitution_.run(forward_[k].data(), x, before, padded(), squares);
                          for (std::size_t i = 0; i < used; ++i)
                              out[(first + i) * n_shifts() + k] = squares[i];
                      }
                  });
    }

   private:
    // Reflectors that rows are multiplied with at once; stored entries of a column of B, or of a
    // row of a triangle.
    static constexpr std::size_t kBlock = 32, kRow = kBand + 1;

    // Some reflectors V, from their first row on. Each has its one kBand rows below the diagonal.
    struct Part {
        std::size_t row;
        Integer width, height;
        double* reflectors;
    };
    Part part(std::size_t column, std::size_t width) const {
        const std::size_t row = std::min(column + kBand, size_), height = size_ - row;
        return {row, static_cast<Integer>(std::min(width, height)), static_cast<Integer>(height),
                entry(row, column)};
    }
    Part block(std::size_t number) const { return part(number * kBlock, kBlock); }

    std::size_t end_of(std::size_t strip) const { return std::min((strip + 1) * kStrip, size_); }
    // Products of the rows below a strip's square.
    double* products_below(std::size_t strip) {
        return products_.data() + (1 + strip) * kBand * size_;
    }

    // In Fortran's order.
    double* entry(std::size_t row, std::size_t column) const {
        return matrix_.get() + column * size_ + row;
    }

    std::size_t padded() const { return (size_ + kTogether - 1) / kTogether * kTogether; }

    void write_ones(const Part& own) {
        for (std::size_t c = 0; c < static_cast<std::size_t>(own.width); ++c) {
            std::fill_n(own.reflectors + c * size_, c, 0.0);
            own.reflectors[c * size_ + c] = 1.0;
        }
    }

    // Subtracts what the last panel changes, from some columns and the rows from `row` on.
    void update(std::size_t row, std::size_t begin, std::size_t end) {
        char plain = 'N', transposed = 'T';
        Integer height = static_cast<Integer>(size_ - row), depth = 2 * kBand;
        Integer width = static_cast<Integer>(end - begin);
        double one = 1.0, minus = -1.0;
        scipy.dgemm(&plain, &transposed, &height, &width, &depth, &minus, left_.data() + row,
                    &stride_, right_.data() + begin, &stride_, &one, entry(row, begin), &stride_);
    }

    // Sets the triangle and the inverses of its diagonal, unless a pivot is smaller than rounding.
    bool try_shift(double shift, double least, Vector& lower, Vector& inverses) const {
        lower = band_;
        for (std::size_t j = 0; j < size_; ++j) {
            double* column = lower.data() + j * kRow;
            const double pivot = column[0] + shift;
            if (pivot < least) return false;
            inverses[j] = 1.0 / std::sqrt(pivot);
            for (std::size_t d = 1; d <= kBand; ++d) column[d] *= inverses[j];
            for (std::size_t d = 1; d <= kBand; ++d)
                for (std::size_t e = d; e <= kBand; ++e)
                    column[d * kRow + e - d] -= column[d] * column[e];
        }
        return true;
    }

    // Applies the reflectors of a block to some rows, in the order of Q or Q'.
    void reflect(std::size_t number, double* rows, std::size_t count, bool back,
                 double* work) const {
        Part own = block(number);
        char left = 'L', upper = 'U', plain = 'N', transposed = 'T', order = back ? 'N' : 'T';
        Integer m = static_cast<Integer>(count), lead = kBlock, stride = stride_;
        double one = 1.0, zero = 0.0, minus = -1.0;
        // BLAS declares what it only reads as variable.
        double* factor = const_cast<double*>(factors_.data()) + number * kBlock * kBlock;
        scipy.dgemm(&transposed, &plain, &own.width, &m, &own.height, &one, own.reflectors, &stride,
                    rows + own.row, &stride, &zero, work, &lead);
        scipy.dtrmm(&left, &upper, &order, &plain, &own.width, &m, &one, factor, &lead, work,
                    &lead);
        scipy.dgemm(&plain, &plain, &own.height, &m, &own.width, &minus, own.reflectors, &stride,
                    work, &lead, &one, rows + own.row, &stride);
    }

    // Calls a function with as many rows as there are lanes: the first of them, their number, the
    // rows with one lane each, room for solutions, and room for their squared lengths.
    template <class F>
    void for_lanes(const double* rows, std::size_t count, F call) const {
        const std::size_t lanes = substitution_.lanes;
        Vector x(padded() * lanes), before((padded() + kBand) * lanes), squares(lanes);
        for (std::size_t first = 0; first < count; first += lanes) {
            const std::size_t used = std::min(lanes, count - first);
            for (std::size_t i = 0; i < used; ++i)
                for (std::size_t j = 0; j < size_; ++j)
                    x[j * lanes + i] = rows[(first + i) * size_ + j];
            call(first, used, x.data(), before.data(), squares.data());
        }
    }

    std::size_t size_;
    Integer stride_;
    // What is not yet reduced, then the reflectors below the band; and F for each block of them.
    std::shared_ptr<double> matrix_;
    Vector scales_, factors_;
    // Of the last panel: (V W), (W V), products with V, and F.
    Vector left_, right_, products_;
    double factor_[kBand * kBand] = {};
    // Columns of B from the diagonal on, with zeros after the end.
    Vector band_;
    Vector shifts_;
    // Triangles of all shifts, for substitution from either end.
    std::vector<Vector> forward_, backward_;
    Substitution substitution_;
};

}  // namespace slts
