// The arguments of one kernel call: plain data, shared by all targets.
#pragma once

#include <cstdint>

#include "window_job.hpp"

namespace slts {

// The integer type of the same size as the floating-point type of a lane.
template <class T>
struct IntOf;
template <>
struct IntOf<float> {
    using type = std::int32_t;
};
template <>
struct IntOf<double> {
    using type = std::int64_t;
};

// Series rows in a tile of the recurrence. One byte per lane holds their 2-bit moves.
inline constexpr int kTileShift = 2, kTileRows = 1 << kTileShift;
// Landmark columns in a tile. Packs are padded to a multiple of it.
inline constexpr int kTileColumns = 2;

// Paths that are walked back in turns, and the ends of one: first, a spare entry, last.
inline constexpr int kWalks = 4;
static inline std::int64_t walk_size(std::int64_t n) { return 2 * n + 1; }

// Aligned landmark rows that are added without a branch.
inline constexpr int kUnrolled = 3;

// Rows are padded to a multiple of kWideRow channels, or to kNarrowRow if they have no more.
inline constexpr int kNarrowRow = 4, kWideRow = 8;

enum class Reduction : int { score, products, grouped, projected, sums, path };

// Which cells a path may use: a Sakoe-Chiba band, an Itakura parallelogram, or all.
struct Band {
    std::int64_t radius = -1;  // steps, or -1 for no Sakoe-Chiba band
    double slope = 0.0;        // at least 1, or 0 for no parallelogram
};
static inline bool admits_all(const Band& band) { return band.radius < 0 && band.slope == 0.0; }

// `stop` is called every kPollEvery operations (about 30 ms); true stops the run.
struct Poll {
    bool (*stop)(void*) = nullptr;
    void* context = nullptr;
};
inline constexpr std::int64_t kPollEvery = 200'000'000;

// Steps [begin, end) of a series or a landmark.
struct Span {
    std::int64_t begin, end;
};

// Rows of all series, row-major. Each row is padded with zeros to `stride` values, so that
// reductions work on whole chunks. `shift` is null or holds one number <= 0 per row. It makes the
// local value a_i.b_j + shift_i + shift_j, cut off at 0: a cost with its sign changed.
template <class T>
struct Rows {
    const T* data = nullptr;
    const T* shift = nullptr;
    const std::int64_t* offsets = nullptr;
    std::int64_t channels = 0;
    std::int64_t stride = 0;
};

// Landmarks of similar length side by side: columns x channels x width values at `data`.
struct PackInfo {
    std::int64_t first = 0;    // position of the first landmark in the length order
    std::int64_t lanes = 0;    // landmarks in this pack, <= width
    std::int64_t width = 0;    // 1, or the target's native width
    std::int64_t columns = 0;  // longest landmark, rounded up to kTileColumns
    std::int64_t data = 0;     // offset in Landmarks::packed
    std::int64_t shift = 0;    // offset in Landmarks::packed_shift
};

template <class T>
struct Landmarks {
    Rows<T> rows;
    Rows<T> summed;  // what `grouped` and `sums` sum: the rows, or their products with a basis
    const T* packed = nullptr;
    const T* packed_shift = nullptr;
    const PackInfo* packs = nullptr;
    const std::int64_t* order = nullptr;
    std::int64_t count = 0;
};

// Scratch memory of one call, for its longest series and its widest pack.
template <class T>
struct Workspace {
    T* frontier = nullptr;  // columns x width: scores of the last row of a tile
    typename IntOf<T>::type* lengths = nullptr;  // columns x width: their path lengths
    T* bounds = nullptr;            // series steps x 2 x width: band [start, stop) per lane
    std::uint8_t* moves = nullptr;  // tiles x columns x width
    std::int32_t* ends = nullptr;   // per walk, first and last aligned step of each series step
    T* sums = nullptr;        // groups x phases x series steps x stride: summed rows per series row
    Span* touched = nullptr;  // groups x phases: series steps with sums that are not zero
    const T* zeros = nullptr;  // stride
    T* product = nullptr;      // channels x stride
};

template <class T>
struct Job {
    Rows<T> series;
    Landmarks<T> landmarks;
    std::int64_t n_series = 0, pack_begin = 0, pack_end = 0;
    Band band;
    Reduction reduction = Reduction::score;
    Workspace<T> work;
    Poll poll;

    // Outputs. The row is the series, the column is the landmark.
    T* values = nullptr;                 // total local value along the path, or null
    std::int32_t* lengths = nullptr;     // score: path length
    T* out = nullptr;                    // products, grouped, projected, sums
    const T* matrices = nullptr;         // projected: metrics x channels x channels
    const T* weights = nullptr;          // grouped: groups x landmarks
    std::int64_t n_outer = 0;            // groups or metrics
    std::int64_t n_phases = 1;           // grouped, sums: parts of a landmark's steps
    std::int32_t* path_first = nullptr;  // path: series steps (one pair only)
    std::int32_t* path_last = nullptr;
};

enum class Outcome : int { done, stopped, no_path };

struct Result {
    Outcome outcome = Outcome::done;
    std::int64_t series = -1, landmark = -1;  // the pair without a path
};

// Name, test, bytes of a vector and entry points of one instruction set.
struct Target {
    const char* name;
    bool (*usable)();
    int vector_bytes;
    Result (*run_float)(const Job<float>&);
    Result (*run_double)(const Job<double>&);
    void (*count_windows)(const WindowJob<float>&);
    void (*measure_windows)(const WindowJob<double>&);
    void (*add_shifted)(const Shifts&, const double*, std::int64_t, double*);

    Result run(const Job<float>& job) const { return run_float(job); }
    Result run(const Job<double>& job) const { return run_double(job); }
    void run(const WindowJob<float>& job) const { count_windows(job); }
    void run(const WindowJob<double>& job) const { measure_windows(job); }
    template <class T>
    std::int64_t width() const {
        return vector_bytes / static_cast<std::int64_t>(sizeof(T));
    }
};

}  // namespace slts
