// Mehrotra predictor-corrector steps for problems with paired non-negative variables.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <utility>

#include "linear_algebra.hpp"

namespace slts {

// Change of the paired variables and of the coefficients.
struct Direction {
    Vector primal, dual, coef;
};

// Longest steps of the primal and of the dual variables.
struct Lengths {
    double primal, dual;

    // NaN if either is.
    double shorter() const { return primal < dual || std::isnan(primal) ? primal : dual; }
};

// A problem whose pairs satisfy `primal * dual = 0` at the optimum. Its rows are signed features,
// no larger than about one.
class System {
   public:
    Vector primal, dual, coef, margins;

    System(Matrix rows, Vector start) : coef(std::move(start)), rows_(std::move(rows)) {}
    virtual ~System() = default;

    // Returns a primal and a dual value that bracket the optimum; sets the margins.
    virtual std::pair<double, double> values() = 0;
    // Factorises the normal equations at the point of the last values; false if that fails.
    virtual bool factorise() = 0;
    // Solves the Newton equations for a change `target` of the products.
    virtual void solve(const Vector& target, Direction& out) = 0;

    // Moves until `primal - dual <= tol * max(primal, floor)`, or progress ends. Returns the number
    // of steps, or -1 if `stop()` is true after a step. The values are those of the last point.
    template <class Stop>
    int minimise(double tol, int max_iter, double floor, Stop stop) {
        double best = std::numeric_limits<double>::infinity();
        for (int n_iter = 0, stalled = 0; n_iter < max_iter; ++n_iter) {
            const auto [upper, lower] = values();
            const double gap = upper - lower;
            if (gap <= tol * std::max(upper, floor) || !std::isfinite(gap)) return n_iter;
            stalled = gap < 0.9 * best ? 0 : stalled + 1;
            best = std::min(best, gap);
            // Pairs of numbers that underflow give no direction; the point before them is kept.
            if (stalled >= kMaxStalled || !factorise() || !step()) return n_iter;
            if (stop()) return -1;
        }
        values();
        return max_iter;
    }

   protected:
    Matrix rows_;
    // Whether primal and dual move by the same step, because the objective is quadratic.
    bool coupled_ = false;

   private:
    static constexpr int kMaxStalled = 15, kMaxCorrectors = 2;
    static constexpr double kStepFraction = 0.995;

    Vector products_, correction_, target_;
    Direction affine_, direction_, candidate_;

    // Returns the longest step, at most one, that keeps values non-negative; NaN if a change is
    // NaN.
    static double length(const Vector& values, const Vector& change) {
        double steepest = std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double slope = change[i] / values[i];
            if (std::isnan(slope)) return slope;
            steepest = std::min(steepest, slope);
        }
        return steepest >= -1.0 ? 1.0 : -1.0 / steepest;
    }

    Lengths lengths(const Direction& along) const {
        const Lengths own{length(primal, along.primal), length(dual, along.dual)};
        return coupled_ ? Lengths{own.shorter(), own.shorter()} : own;
    }

    // Solves for products that move to `centre`, less the correction.
    void solve_towards(double centre, Direction& out) {
        for (std::size_t i = 0; i < products_.size(); ++i)
            target_[i] = centre - products_[i] - correction_[i];
        solve(target_, out);
    }

    // Returns false, at the same point, if no direction is finite.
    bool step() {
        const std::size_t size = primal.size();
        const auto count = static_cast<double>(size);
        products_.resize(size), correction_.assign(size, 0.0), target_.resize(size);
        for (std::size_t i = 0; i < size; ++i) products_[i] = primal[i] * dual[i];
        const double mean = sum(size, [&](std::size_t i) { return products_[i]; }) / count;
        solve_towards(0.0, affine_);
        const Lengths along = lengths(affine_);
        const double reached = sum(size, [&](std::size_t i) {
            return (primal[i] + along.primal * affine_.primal[i]) *
                   (dual[i] + along.dual * affine_.dual[i]);
        });
        const double share = reached / count / mean, centre = mean * share * share * share;
        for (std::size_t i = 0; i < size; ++i) correction_[i] = affine_.primal[i] * affine_.dual[i];
        solve_towards(centre, direction_);
        Lengths longest = lengths(direction_);
        for (int k = 0; k < kMaxCorrectors; ++k) {
            // Gondzio: move the outlying products of a longer step back towards the centre.
            const double reach_primal = std::min(1.0, 1.5 * longest.primal + 0.1),
                         reach_dual = std::min(1.0, 1.5 * longest.dual + 0.1), low = 0.1 * centre,
                         high = 10.0 * centre;
            for (std::size_t i = 0; i < size; ++i) {
                const double trial = (primal[i] + reach_primal * direction_.primal[i]) *
                                     (dual[i] + reach_dual * direction_.dual[i]);
                correction_[i] -=
                    trial < low ? low - trial : std::max(std::min(high - trial, 0.0), -high);
            }
            solve_towards(centre, candidate_);
            const Lengths other = lengths(candidate_);
            if (!(other.shorter() >= longest.shorter() + 0.01)) break;
            std::swap(direction_, candidate_);
            longest = other;
        }
        if (!is_finite(longest)) return false;
        move(primal, direction_.primal, longest.primal);
        move(dual, direction_.dual, longest.dual);
        move(coef, direction_.coef, longest.primal);
        return true;
    }

    bool is_finite(const Lengths& longest) const {
        if (!std::isfinite(longest.primal) || !std::isfinite(longest.dual)) return false;
        for (const Vector* part : {&direction_.primal, &direction_.dual, &direction_.coef})
            for (const double value : *part)
                if (!std::isfinite(value)) return false;
        return true;
    }

    static void move(Vector& values, const Vector& change, double longest) {
        const double step = std::min(1.0, kStepFraction * longest);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] += step * change[i];
    }
};

}  // namespace slts
