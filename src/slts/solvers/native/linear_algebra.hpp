// Products and factorisations by the BLAS and LAPACK of SciPy.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace slts {

using Vector = std::vector<double>;

// Integers of BLAS have 32 bits, or 64 where SciPy is built so. All integers passed here are
// non-negative and little-endian, so their lower half is the same number in 32 bits, and both kinds
// of BLAS read and write it.
using Integer = std::int64_t;
static_assert(std::endian::native == std::endian::little);

// Functions that SciPy exports to other extensions; module.cpp sets them at import.
struct LinearAlgebra {
    void (*dsyrk)(char* uplo, char* trans, Integer* n, Integer* k, double* alpha, double* a,
                  Integer* lda, double* beta, double* c, Integer* ldc);
    void (*dgemv)(char* trans, Integer* m, Integer* n, double* alpha, double* a, Integer* lda,
                  double* x, Integer* incx, double* beta, double* y, Integer* incy);
    void (*dpotrf)(char* uplo, Integer* n, double* a, Integer* lda, Integer* info);
    void (*dpotrs)(char* uplo, Integer* n, Integer* nrhs, double* a, Integer* lda, double* b,
                   Integer* ldb, Integer* info);
};
inline LinearAlgebra scipy;

// Returns f(0) + ... + f(size - 1). Eight sums are faster and more exact than one.
template <class F>
double sum(std::size_t size, F f) {
    double lanes[8] = {};
    std::size_t i = 0;
    for (; i + 8 <= size; i += 8)
        for (std::size_t k = 0; k < 8; ++k) lanes[k] += f(i + k);
    for (; i < size; ++i) lanes[i % 8] += f(i);
    for (std::size_t half = 4; half > 0; half /= 2)
        for (std::size_t k = 0; k < half; ++k) lanes[k] += lanes[k + half];
    return lanes[0];
}

inline double largest_size(const Vector& values) {
    double largest = 0.0;
    for (const double value : values) largest = std::max(largest, std::abs(value));
    return largest;
}

// A matrix that is stored row by row: for BLAS, the transpose of a matrix in Fortran's order.
struct Matrix {
    std::shared_ptr<const double> data;
    std::size_t n_rows, n_columns;

    // out = matrix times x
    void times(const Vector& x, Vector& out) const {
        out.assign(n_rows, 0.0);
        multiply('T', x, out);
    }
    // out = x times matrix
    void combine(const Vector& x, Vector& out) const {
        out.assign(n_columns, 0.0);
        multiply('N', x, out);
    }

   private:
    // BLAS declares what it only reads as variable. Some versions do not ignore NaN in the output.
    void multiply(char trans, const Vector& x, Vector& out) const {
        Integer m = static_cast<Integer>(n_columns), n = static_cast<Integer>(n_rows), one = 1;
        double alpha = 1.0, beta = 0.0;
        scipy.dgemv(&trans, &m, &n, &alpha, const_cast<double*>(data.get()), &m,
                    const_cast<double*>(x.data()), &one, &beta, out.data(), &one);
    }
};

// Sets the lower triangle (in Fortran's order) of `rows' diag(weights) rows`, without a full-size
// scaled copy.
inline void weighted_gram(const Matrix& rows, const Vector& weights, Vector& part, Vector& gram) {
    constexpr std::size_t kChunk = 512;
    const std::size_t size = rows.n_columns;
    char lower = 'L', plain = 'N';
    Integer n = static_cast<Integer>(size);
    double one = 1.0, beta = 0.0;
    gram.resize(size * size);
    part.resize(std::min(kChunk, rows.n_rows) * size);
    for (std::size_t begin = 0; begin < rows.n_rows; begin += kChunk) {
        const std::size_t count = std::min(kChunk, rows.n_rows - begin);
        for (std::size_t i = 0; i < count; ++i) {
            const double* row = rows.data.get() + (begin + i) * size;
            const double root = std::sqrt(weights[begin + i]);
            for (std::size_t j = 0; j < size; ++j) part[i * size + j] = root * row[j];
        }
        Integer k = static_cast<Integer>(count);
        scipy.dsyrk(&lower, &plain, &n, &k, &one, part.data(), &n, &beta, gram.data(), &n);
        beta = 1.0;
    }
}

// Cholesky factor of a symmetric matrix, whose lower triangle (in Fortran's order) is read.
//
// If rounding makes the matrix indefinite, the diagonal is raised until it is not. The direction is
// then inexact, which costs iterations but does not affect the certificate.
class Factor {
   public:
    // Returns false if the matrix is far from positive definite. Overwrites it.
    bool factorise(Vector& matrix, std::size_t size) {
        // Symmetric scaling by the diagonal: the entries span many orders of magnitude.
        scale_.resize(size);
        for (std::size_t j = 0; j < size; ++j)
            scale_[j] =
                1.0 / std::sqrt(std::max(matrix[j * size + j], std::numeric_limits<double>::min()));
        for (std::size_t j = 0; j < size; ++j)
            for (std::size_t i = j; i < size; ++i) matrix[j * size + i] *= scale_[i] * scale_[j];
        char lower = 'L';
        Integer n = static_cast<Integer>(size), failed = 1;
        for (double ridge = 1e-15; failed != 0; ridge *= 100.0) {
            if (ridge > 1.0) return false;
            for (std::size_t j = 0; j < size; ++j) matrix[j * size + j] = 1.0 + ridge;
            factor_ = matrix;
            failed = 0;
            scipy.dpotrf(&lower, &n, factor_.data(), &n, &failed);
        }
        return true;
    }

    // Replaces a right-hand side by the solution.
    void solve(Vector& right) const {
        char lower = 'L';
        Integer n = static_cast<Integer>(right.size()), one = 1, info = 0;
        for (std::size_t j = 0; j < right.size(); ++j) right[j] *= scale_[j];
        scipy.dpotrs(&lower, &n, &one, const_cast<double*>(factor_.data()), &n, right.data(), &n,
                     &info);
        for (std::size_t j = 0; j < right.size(); ++j) right[j] *= scale_[j];
    }

   private:
    Vector factor_, scale_;
};

// Replaces the right-hand side by the solution of `(matrix + diagonal I) x = right`; false if the
// matrix is far from positive definite. Overwrites it.
inline bool solve_definite(Vector& matrix, double diagonal, Vector& right) {
    for (std::size_t j = 0; j < right.size(); ++j) matrix[j * right.size() + j] += diagonal;
    Factor factor;
    if (!factor.factorise(matrix, right.size())) return false;
    factor.solve(right);
    return true;
}

}  // namespace slts
