// The problems: first points, values and Newton equations.
//
// SquaredNormSystem   hinge + `strength * ||w||^2`: the metric
// L1BallSystem        hinge where `||a||_1 <= radius`: the separator
// SmallestNormSystem  `min ||a||_1` with every margin at least one: the separator of separable rows
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "interior.hpp"

namespace slts {

// Sets positive `over - short = values` side by side, smooth at zero.
inline void set_positive_parts(const Vector& values, Vector& pairs) {
    const std::size_t size = values.size();
    const double total = sum(size, [&](std::size_t i) { return std::abs(values[i]); }),
                 spread = std::max(total / static_cast<double>(size), 1e-3);
    pairs.resize(2 * size);
    for (std::size_t i = 0; i < size; ++i) {
        const double root = std::sqrt(values[i] * values[i] + spread * spread);
        pairs[i] = 0.5 * (root + values[i]), pairs[size + i] = 0.5 * (root - values[i]);
    }
}

// Makes a pair differ by `difference` exactly. The half with the larger ratio has the larger
// rounding error, so it is the one replaced.
inline void set_difference(double& over, double& under, double ratio_over, double ratio_under,
                           double difference) {
    if (ratio_over > ratio_under)
        over = under + difference;
    else
        under = over - difference;
}

// Pairs (excess, multiplier) of every row, and (shortfall, weight - multiplier) if its margin may
// be less than one.
class RowSystem : public System {
   public:
    // A dual point of the hinge loss: sum of the multipliers, and sum of the rows weighted by them.
    double loss = 0.0, total = 0.0;
    Vector gradient;

   protected:
    using System::System;

    Vector weights_, multipliers_, ratio_, metric_, row_residual_, scaled_, right_, change_;
    Vector part_, gram_;
    Factor factor_;

    std::size_t n_rows() const { return rows_.n_rows; }
    std::size_t n_columns() const { return rows_.n_columns; }
    bool has_shortfall() const { return !weights_.empty(); }

    // Sets margins, loss and dual point.
    void evaluate_hinge() {
        rows_.times(coef, margins);
        multipliers_.resize(n_rows());
        // Rounding can move a multiplier out of its box.
        for (std::size_t i = 0; i < n_rows(); ++i) multipliers_[i] = std::min(dual[i], weights_[i]);
        rows_.combine(multipliers_, gradient);
        loss = sum(n_rows(),
                   [&](std::size_t i) { return weights_[i] * std::max(1.0 - margins[i], 0.0); });
        total = sum(n_rows(), [&](std::size_t i) { return multipliers_[i]; });
    }

    // Sets `gram_ = rows' D rows`, where D eliminates the pairs of the rows.
    void eliminate_rows() {
        const std::size_t m = n_rows();
        ratio_.resize(primal.size()), metric_.resize(m), row_residual_.resize(m);
        for (std::size_t i = 0; i < primal.size(); ++i) ratio_[i] = primal[i] / dual[i];
        for (std::size_t i = 0; i < m; ++i) {
            metric_[i] = 1.0 / (has_shortfall() ? ratio_[i] + ratio_[m + i] : ratio_[i]);
            row_residual_[i] = margins[i] - 1.0 - difference(primal, i);
        }
        weighted_gram(rows_, metric_, part_, gram_);
    }

    // Sets `scaled_ = target / dual`, `right_`, and `out = rows' D right_`.
    void begin_direction(const Vector& target, Vector& out) {
        scaled_.resize(target.size()), right_.resize(n_rows()), multipliers_.resize(n_rows());
        for (std::size_t i = 0; i < target.size(); ++i) scaled_[i] = target[i] / dual[i];
        for (std::size_t i = 0; i < n_rows(); ++i) {
            right_[i] = difference(scaled_, i) - row_residual_[i];
            multipliers_[i] = metric_[i] * right_[i];
        }
        rows_.combine(multipliers_, out);
    }

    // Sets the changes of the pairs of rows, given that of the coefficients.
    void finish_rows(Direction& out) {
        const std::size_t m = n_rows();
        rows_.times(out.coef, change_);
        for (std::size_t i = 0; i < m; ++i) {
            multipliers_[i] = metric_[i] * (right_[i] - change_[i]);
            out.dual[i] = multipliers_[i];
            out.primal[i] = scaled_[i] - ratio_[i] * out.dual[i];
            if (!has_shortfall()) continue;
            out.dual[m + i] = -multipliers_[i];
            out.primal[m + i] = scaled_[m + i] - ratio_[m + i] * out.dual[m + i];
            set_difference(out.primal[i], out.primal[m + i], ratio_[i], ratio_[m + i],
                           change_[i] + row_residual_[i]);
        }
    }

   private:
    // Returns excess, or excess - shortfall, of a row.
    double difference(const Vector& pairs, std::size_t i) const {
        return has_shortfall() ? pairs[i] - pairs[n_rows() + i] : pairs[i];
    }
};

// Invariants up to rounding, restored each iteration: `excess - shortfall = rows @ coef - 1` and
// the multipliers of a row sum to its weight. The dual equation `2 strength coef = rows'
// multiplier` holds in the limit only.
class SquaredNormSystem : public RowSystem {
   public:
    SquaredNormSystem(Matrix rows, Vector weights, double strength, Vector start)
        : RowSystem(std::move(rows), std::move(start)), twice_(2.0 * strength) {
        coupled_ = true;
        weights_ = std::move(weights);
        rows_.times(coef, change_);
        for (double& margin : change_) margin -= 1.0;
        set_positive_parts(change_, primal);
        dual = weights_;
        dual.insert(dual.end(), weights_.begin(), weights_.end());
        for (double& multiplier : dual) multiplier *= 0.5;
    }

    std::pair<double, double> values() override {
        evaluate_hinge();
        return {loss + 0.5 * twice_ * square(coef), total - square(gradient) / (2.0 * twice_)};
    }

    // Factorises `2 strength I + rows' D rows`.
    bool factorise() override {
        eliminate_rows();
        dual_residual_.resize(n_columns());
        for (std::size_t j = 0; j < n_columns(); ++j) {
            gram_[j * n_columns() + j] += twice_;
            dual_residual_[j] = gradient[j] - twice_ * coef[j];
        }
        return factor_.factorise(gram_, n_columns());
    }

    void solve(const Vector& target, Direction& out) override {
        begin_direction(target, out.coef);
        for (std::size_t j = 0; j < n_columns(); ++j) out.coef[j] += dual_residual_[j];
        factor_.solve(out.coef);
        out.primal.resize(target.size()), out.dual.resize(target.size());
        finish_rows(out);
    }

   private:
    double twice_;
    Vector dual_residual_;

    static double square(const Vector& x) {
        return sum(x.size(), [&](std::size_t j) { return x[j] * x[j]; });
    }
};

// Newton equations where `coef = plus - minus`, and `sum(plus + minus)` has a price.
//
// Behind the pairs of the rows there are (plus, price - gradient) and (minus, price + gradient).
// The primal equations hold from the start, the dual ones in the limit.
class L1System : public RowSystem {
   protected:
    using RowSystem::RowSystem;

    Vector halves_total_, rise_, fall_, price_residual_, change_of_gradient_;

    // Index of the first half.
    std::size_t edge() const { return has_shortfall() ? 2 * n_rows() : n_rows(); }
    virtual double price() const { return 1.0; }
    // Returns the change of the price, and changes that of the coefficients: none if it is fixed.
    virtual double adjust_to_price(Vector&) { return 0.0; }

    // Factorises `rows' D rows + diag`.
    bool factorise() override {
        eliminate_rows();
        const std::size_t n = n_columns(), plus = edge(), minus = plus + n;
        halves_total_.resize(n), price_residual_.resize(2 * n);
        for (std::size_t j = 0; j < n; ++j) {
            halves_total_[j] = ratio_[plus + j] + ratio_[minus + j];
            gram_[j * n + j] += 1.0 / halves_total_[j];
            price_residual_[j] = price() - gradient[j] - dual[plus + j];
            price_residual_[n + j] = price() + gradient[j] - dual[minus + j];
        }
        return factor_.factorise(gram_, n);
    }

    void solve(const Vector& target, Direction& out) override {
        begin_direction(target, out.coef);
        const std::size_t n = n_columns(), plus = edge(), minus = plus + n;
        rise_.resize(n), fall_.resize(n);
        for (std::size_t j = 0; j < n; ++j) {
            rise_[j] = scaled_[plus + j] - ratio_[plus + j] * price_residual_[j];
            fall_[j] = scaled_[minus + j] - ratio_[minus + j] * price_residual_[n + j];
            out.coef[j] += (rise_[j] - fall_[j]) / halves_total_[j];
        }
        factor_.solve(out.coef);
        const double price = adjust_to_price(out.coef);
        out.primal.resize(target.size()), out.dual.resize(target.size());
        finish_rows(out);
        rows_.combine(multipliers_, change_of_gradient_);
        for (std::size_t j = 0; j < n; ++j) {
            // The residual is added last: it may be tiny, and price and gradient cancel.
            out.dual[plus + j] = price - change_of_gradient_[j] + price_residual_[j];
            out.dual[minus + j] = price + change_of_gradient_[j] + price_residual_[n + j];
            for (const std::size_t k : {plus + j, minus + j})
                out.primal[k] = scaled_[k] - ratio_[k] * out.dual[k];
            set_difference(out.primal[plus + j], out.primal[minus + j], ratio_[plus + j],
                           ratio_[minus + j], out.coef[j]);
        }
        for (std::size_t k = minus + n; k < target.size(); ++k) {
            out.dual[k] = price;
            out.primal[k] = scaled_[k] - ratio_[k] * price;
        }
    }

    double norm() const {
        return sum(n_columns(), [&](std::size_t j) { return std::abs(coef[j]); });
    }
};

// The price is one.
class SmallestNormSystem : public L1System {
   public:
    SmallestNormSystem(Matrix rows, Vector start) : L1System(std::move(rows), std::move(start)) {
        const double mean = norm() / static_cast<double>(n_columns()),
                     unit = mean > 0.0 ? mean : 1.0;
        rows_.times(coef, primal);
        for (double& excess : primal) {
            excess = std::max(excess - 1.0, 0.1);
            dual.push_back(unit / excess);
        }
        for (const double sign : {1.0, -1.0})
            for (const double value : coef) primal.push_back(std::max(sign * value, 0.0) + unit);
        dual.resize(primal.size(), 1.0);
    }

    // Returns the norm at the smallest scale that separates, and a lower bound.
    std::pair<double, double> values() override {
        rows_.times(coef, margins);
        multipliers_.assign(dual.begin(), dual.begin() + static_cast<std::ptrdiff_t>(n_rows()));
        rows_.combine(multipliers_, gradient);
        total = sum(n_rows(), [&](std::size_t i) { return multipliers_[i]; });
        const double shortest = *std::min_element(margins.begin(), margins.end());
        return {shortest > 0.0 ? norm() / shortest : std::numeric_limits<double>::max(),
                total / std::max(1.0, largest_size(gradient))};
    }
};

// `sum(plus + minus) + slack = radius`; the last pair is (slack, price). There is no warm start:
// interior points do not profit from a vertex.
class L1BallSystem : public L1System {
   public:
    L1BallSystem(const Matrix& rows, Vector weights, double radius)
        : L1System(rows, Vector(rows.n_columns, 0.0)), radius_(radius) {
        constexpr double kPriceFraction = 3e-3;
        weights_ = std::move(weights);
        set_positive_parts(Vector(n_rows(), -1.0), primal);
        dual = weights_;
        for (double& multiplier : dual) multiplier *= 0.5;
        rows_.combine(dual, gradient);
        dual.insert(dual.end(), dual.begin(), dual.end());
        // Both halves and the slack share the radius evenly. The dual halves are centred on the
        // rows' products but not far below the gradient, which they have to exceed in the end.
        const std::size_t n_shares = 2 * n_columns() + 1;
        const double share = radius / static_cast<double>(n_shares),
                     products = sum(edge(), [&](std::size_t i) { return primal[i] * dual[i]; }),
                     price = std::max(products / static_cast<double>(edge()) / share,
                                      kPriceFraction * largest_size(gradient));
        primal.insert(primal.end(), n_shares, share);
        dual.insert(dual.end(), n_shares, price);
    }

    std::pair<double, double> values() override {
        const double size = norm();
        if (size > radius_)
            for (double& value : coef) value *= radius_ / size;
        evaluate_hinge();
        return {loss, total - radius_ * largest_size(gradient)};
    }

   private:
    double radius_, pivot_ = 0.0, radius_residual_ = 0.0;
    Vector tilt_, response_;

    double price() const override { return dual.back(); }

    // Also eliminates the price of the radius.
    bool factorise() override {
        if (!L1System::factorise()) return false;
        const std::size_t n = n_columns(), plus = edge(), minus = plus + n;
        tilt_.resize(n);
        for (std::size_t j = 0; j < n; ++j)
            tilt_[j] = (ratio_[plus + j] - ratio_[minus + j]) / halves_total_[j];
        response_ = tilt_;
        factor_.solve(response_);
        pivot_ = ratio_.back() + sum(n, [&](std::size_t j) {
                     return 4.0 * (ratio_[plus + j] * ratio_[minus + j] / halves_total_[j]) +
                            tilt_[j] * response_[j];
                 });
        radius_residual_ =
            radius_ - sum(primal.size() - plus, [&](std::size_t k) { return primal[plus + k]; });
        return true;
    }

    // Returns the change of the price that keeps the radius.
    double adjust_to_price(Vector& change) override {
        const double shift = sum(n_columns(), [&](std::size_t j) {
            return rise_[j] + fall_[j] - tilt_[j] * (rise_[j] - fall_[j] - change[j]);
        });
        const double price = (shift + scaled_.back() - radius_residual_) / pivot_;
        for (std::size_t j = 0; j < n_columns(); ++j) change[j] -= price * response_[j];
        return price;
    }
};

}  // namespace slts
