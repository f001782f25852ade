// The DTW recurrence and its reductions on an NVIDIA GPU, compiled at run time.
//
// The recurrence is that of native/recurrence.hpp: it MAXIMISES the total local value and breaks
// ties in the order diagonal, up (i-1, j), left (i, j-1). One warp aligns one series with a pack of
// 32 landmarks of similar length, one landmark per lane. The grid is swept in tiles of ROWS series
// rows. Only the last row of a tile is kept (`frontier`).
//
// Each lane walks its own path back and stores it as one interval of landmark steps per series
// step. Then the roles change: in a reduction a thread owns elements (series step, channel) and
// loops over the landmarks, so that every sum has one owner and one order of addition.
//
// programs.py defines REAL, CHANNELS, NARROW, SHIFTED, BAND, REDUCTION, ROWS, WARPS, BLOCKS,
// SHARED_FRONTIER, LONG_PATHS, JOB_BYTES and OTHER_BYTES, and backend.py fills `job`. Do not use
// fast-math: -inf means "no path".

typedef REAL T;
typedef long long int64;
// Types of path lengths and of intervals of landmark steps.
#if LONG_PATHS
typedef int Length;
typedef int2 Ends;
#else
typedef unsigned short Length;
typedef ushort2 Ends;
#endif

enum { SCORE, PRODUCTS, GROUPED, PROJECTED };
enum { NO_BAND, SAKOE_CHIBA, ITAKURA };
enum { DIAGONAL = 0, UP = 1, LEFT = 2 };

constexpr int D = CHANNELS;
constexpr int S = (D + 3) / 4 * 4;  // rows are padded with zeros to whole vectors
constexpr int R = ROWS;
constexpr int W = 32;
constexpr int WE = W + 1;  // stride of the intervals of a series step, to avoid bank conflicts
constexpr unsigned ALL = 0xffffffffu;
constexpr bool TRACED = REDUCTION != SCORE;
// With few channels (NARROW) the rows of a tile stay in registers, and a tile has one column. With
// many channels they are read again for every two columns.
constexpr int C = NARROW ? 1 : 2;

struct alignas(16) Four {
    T v[4];
};

__device__ __forceinline__ Four four(const T* p) { return *reinterpret_cast<const Four*>(p); }
__device__ __forceinline__ T minus_infinity() { return T(__int_as_float(0xff800000)); }
__device__ __forceinline__ T larger(T a, T b) { return b > a ? b : a; }
__device__ __forceinline__ int least_of_warp(int value) {
    for (int step = W / 2; step > 0; step /= 2)
        value = min(value, __shfl_xor_sync(ALL, value, step));
    return value;
}

struct Interval {
    int start, stop;
};

// The columns of a row that the band admits, as in native/band.hpp. `parameter` is a radius or a
// slope.
__device__ __forceinline__ Interval band_interval(double parameter, int row, int n, int m) {
    int64 start = 0, stop = m, i = row;
    if (BAND == SAKOE_CHIBA) {
        const int64 radius = static_cast<int64>(parameter), surplus = m - n;
        start = i + (surplus < 0 ? surplus : 0) - radius;
        stop = i + (surplus > 0 ? surplus : 0) + radius + 1;
    } else if (BAND == ITAKURA && n > 1) {
        const double slope = parameter, tiny = 1e-9;
        const double straight = double(m - 1) / double(n - 1);
        const double done = straight * double(row), left = straight * double(n - 1 - row);
        const double top = double(m - 1);
        const double low_a = done / slope, low_b = top - left * slope;
        const double high_a = done * slope, high_b = top - left / slope;
        start = static_cast<int64>(ceil((low_a > low_b ? low_a : low_b) - tiny));
        stop = static_cast<int64>(floor((high_a < high_b ? high_a : high_b) + tiny)) + 1;
    }
    start = start < 0 ? 0 : start;
    return {static_cast<int>(start < m ? start : m), static_cast<int>(stop < m ? stop : m)};
}

// The pair of one thread. Pointers into packs are offset by the lane; columns are W values apart.
struct Pair {
    const T* series;  // first row; rows are S apart
    const T* series_shift;
    const T* columns;  // landmark: columns x D x W
    const T* column_shift;
    int n, m, n_columns, pad;
    double band;
    T* frontier;
    Length* lengths;
    unsigned short* moves;  // tiles x columns x W
};

// One column of a tile. `left` holds the previous column and is replaced by this one.
__device__ __forceinline__ void sweep_column(const Pair& g, int tile, int j, const T (&local)[R],
                                             const Interval (&bounds)[R], T (&left)[R],
                                             int (&left_length)[R], T& corner, int& corner_length) {
    const T none = minus_infinity();
    T up = g.frontier[j * W], diagonal = corner;
    corner = up;
    int up_length = 0, diagonal_length = corner_length;
    if (!TRACED) corner_length = up_length = g.lengths[j * W];
    unsigned packed = 0;
#pragma unroll
    for (int r = 0; r < R; ++r) {
        T value = local[r];
        // Rounding must not make the cost of two equal rows negative.
        if (SHIFTED) value = value < T(0) ? value : T(0);
        if (BAND) value = bounds[r].start <= j && j < bounds[r].stop ? value : none;
        const bool is_up = up > diagonal;
        const T other = larger(diagonal, up);
        const bool is_left = left[r] > other;
        const T now = larger(other, left[r]) + value;
        if (TRACED) {
            packed |= is_left ? unsigned(LEFT) << 2 * r : is_up ? unsigned(UP) << 2 * r : 0u;
        } else {
            const int so_far = is_up ? up_length : diagonal_length;
            diagonal_length = left_length[r];
            up_length = (is_left ? left_length[r] : so_far) + 1;
            left_length[r] = up_length;
        }
        diagonal = left[r];
        left[r] = up = now;
    }
    g.frontier[j * W] = up;
    if (!TRACED) g.lengths[j * W] = static_cast<Length>(up_length);
    if (TRACED) g.moves[(int64(tile) * g.n_columns + j) * W] = static_cast<unsigned short>(packed);
}

// Rows [row, row + R). The first tile begins `pad` rows above the grid, which have no path.
template <bool First>
__device__ __forceinline__ void sweep_tile(const Pair& g, int row, int tile, int begin, int end,
                                           const Interval (&bounds)[R], T corner) {
    const T none = minus_infinity();
    T left[R], base[R];
    int left_length[R];
    const T* a[R];
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const int i = First && row + r < 0 ? 0 : row + r;
        // The start of every path is left of the first column, one row above the grid.
        left[r] = First && r == g.pad - 1 ? T(0) : none;
        left_length[r] = 0;
        base[r] = First && row + r < 0 ? none : SHIFTED ? g.series_shift[i] : T(0);
        a[r] = g.series + int64(i) * S;
    }
    int corner_length = 0;
    if (!TRACED && !First && begin > 0) corner_length = g.lengths[(begin - 1) * W];
    const T* b = g.columns + int64(begin) * D * W;

    if constexpr (NARROW) {
        T x[R][S];
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
            for (int k = 0; k < S; k += 4) {
                const Four v = four(a[r] + k);
#pragma unroll
                for (int e = 0; e < 4; ++e) x[r][k + e] = v.v[e];
            }
        T next[D];
#pragma unroll
        for (int k = 0; k < D; ++k) next[k] = b[k * W];
        for (int j = begin; j < end; ++j) {
            T now[D], local[R];
            // The packs end with a spare column, so reading one column ahead is safe.
            b += D * W;
#pragma unroll
            for (int k = 0; k < D; ++k) now[k] = next[k], next[k] = b[k * W];
            const T shift = SHIFTED ? g.column_shift[j * W] : T(0);
#pragma unroll
            for (int r = 0; r < R; ++r) local[r] = SHIFTED ? shift + base[r] : base[r];
#pragma unroll
            for (int k = 0; k < D; ++k)
#pragma unroll
                for (int r = 0; r < R; ++r) local[r] = fma(now[k], x[r][k], local[r]);
            sweep_column(g, tile, j, local, bounds, left, left_length, corner, corner_length);
        }
    } else {
        for (int j = begin; j < end; j += C, b += C * D * W) {
            T local[C][R];
#pragma unroll
            for (int c = 0; c < C; ++c)
#pragma unroll
                for (int r = 0; r < R; ++r)
                    local[c][r] = SHIFTED ? g.column_shift[(j + c) * W] + base[r] : base[r];
#pragma unroll 4
            for (int k = 0; k < D / 4 * 4; k += 4) {
                T y[C][4];
#pragma unroll
                for (int c = 0; c < C; ++c)
#pragma unroll
                    for (int e = 0; e < 4; ++e) y[c][e] = b[(c * D + k + e) * W];
#pragma unroll
                for (int r = 0; r < R; ++r) {
                    const Four x = four(a[r] + k);
#pragma unroll
                    for (int e = 0; e < 4; ++e)
#pragma unroll
                        for (int c = 0; c < C; ++c) local[c][r] = fma(y[c][e], x.v[e], local[c][r]);
                }
            }
#pragma unroll
            for (int k = D / 4 * 4; k < D; ++k)
#pragma unroll
                for (int c = 0; c < C; ++c)
#pragma unroll
                    for (int r = 0; r < R; ++r)
                        local[c][r] = fma(b[(c * D + k) * W], a[r][k], local[c][r]);
#pragma unroll
            for (int c = 0; c < C; ++c)
                sweep_column(g, tile, j + c, local[c], bounds, left, left_length, corner,
                             corner_length);
        }
    }
}

// Sweeps the whole grid. Afterwards the frontier holds the last series row.
__device__ __forceinline__ void sweep(const Pair& g) {
    const T none = minus_infinity();
    for (int j = 0; j < g.n_columns; ++j) {
        g.frontier[j * W] = none;
        if (!TRACED) g.lengths[j * W] = 0;
    }
    int previous_begin = 0;
    for (int row = -g.pad, tile = 0; row < g.n; row += R, ++tile) {
        int begin = 0, end = g.n_columns;
        Interval bounds[R] = {};
        if (BAND) {
            // Bounds never decrease with the row.
#pragma unroll
            for (int r = 0; r < R; ++r)
                bounds[r] = band_interval(g.band, row + r < 0 ? 0 : row + r, g.n, g.m);
            begin = least_of_warp(bounds[0].start) / C * C;
            end = -least_of_warp(-bounds[R - 1].stop);
        }
        if (tile == 0) {
            sweep_tile<true>(g, row, tile, begin, end, bounds, g.pad == 0 ? T(0) : none);
        } else {
            // Left of the previous tile's range the frontier is stale and outside every band.
            const T corner = begin > previous_begin ? g.frontier[(begin - 1) * W] : none;
            sweep_tile<false>(g, row, tile, begin, end, bounds, corner);
        }
        previous_begin = begin;
    }
}

__device__ __forceinline__ Ends ends(int first, int last) {
    Ends both;
    both.x = static_cast<Length>(first), both.y = static_cast<Length>(last);
    return both;
}

// Writes the aligned columns [x, y] of every series row. Returns the length of the path.
__device__ __forceinline__ int walk_back(const Pair& g, Ends* intervals) {
    int i = g.n - 1, j = g.m - 1, last = j, length = 1;
    while ((i | j) != 0) {
        const int row = i + g.pad;
        const unsigned word = g.moves[(int64(row / R) * g.n_columns + j) * W];
        unsigned move = word >> 2 * (row % R) & 3;
        // Stay on the grid, whatever the moves are.
        move = i == 0 ? LEFT : j == 0 ? UP : move;
        const int row_before = i, first = j;
        j -= move != UP;
        i -= move != LEFT;
        if (move != LEFT) {
            intervals[row_before * WE] = ends(first, last);
            last = j;
        }
        ++length;
    }
    intervals[0] = ends(0, last);
    return length;
}

// The landmark of another lane.
struct alignas(16) Other {
    int64 begin;  // first row in the row-major store
    T share;      // 1 / length of the path
    T weight;     // share times the first weight, if there is one
    int group;    // its group, or -1
    int n_weights, steps;
};
static_assert(sizeof(Other) == OTHER_BYTES, "programs.py has another size");

// Sums one channel over the rows [in.x, in.y] of landmarks, for U sums at a time and up to three
// rows without a branch, so that many loads are in flight.
constexpr int U = 4;

__device__ __forceinline__ void sum_rows(const T* const (&channel)[U], const Ends (&in)[U],
                                         T (&total)[U]) {
#pragma unroll
    for (int u = 0; u < U; ++u) {
        const T* row = channel[u] + int64(in[u].x) * S;
        const int more = in[u].y - in[u].x;
        total[u] = row[0];
        total[u] += more > 0 ? row[S] : T(0);
        total[u] += more > 1 ? row[2 * S] : T(0);
    }
#pragma unroll
    for (int u = 0; u < U; ++u)
        for (int j = in[u].x + 3; j <= in[u].y; ++j) total[u] += channel[u][int64(j) * S];
}

// The same for elements e, e + W, ... of (series steps x channels) of one landmark. Elements from
// `size` on repeat the last.
__device__ __forceinline__ void sum_elements(const T* landmark, const Ends* intervals, int e,
                                             int size, T (&total)[U]) {
    const T* channel[U];
    Ends in[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
        const int at = min(e + u * W, size - 1);
        channel[u] = landmark + at % D;
        in[u] = intervals[at / D * WE];
    }
    sum_rows(channel, in, total);
}

// out (D x D) = series' sums, for n rows. Sums are n x D.
__device__ __forceinline__ void series_times_sums(const T* series, const T* sums, int n, int lane,
                                                  T* out) {
    for (int e = lane; e < S / 4 * D; e += W) {
        const int q = e / D * 4, k = e % D;
        T total[4] = {};
        for (int i = 0; i < n; ++i) {
            const Four x = four(series + int64(i) * S + q);
            const T y = sums[i * D + k];
#pragma unroll
            for (int c = 0; c < 4; ++c) total[c] = fma(x.v[c], y, total[c]);
        }
#pragma unroll
        for (int c = 0; c < 4; ++c)
            if (q + c < D) out[(q + c) * D + k] = total[c];
    }
}

struct Job {
    const T* series;  // rows x S
    const T* series_shift;
    const int64* series_offsets;
    const int* series_order;  // longest first
    const T* packed;          // columns x D x W
    const T* packed_shift;
    const T* landmarks;         // rows x S
    const int64* pack_columns;  // first column of every pack, and the number of columns
    const int64* begins;        // by position in the packs, like the next three
    const int* steps;
    const int* order;          // landmark at this position
    const int* weights_begin;  // grouped: entries of this position
    const int* weights_group;
    const T* weights;
    const T* projected;  // projected: outer x rows x D
    unsigned char* scratch;
    int64 scratch_size, intervals_at, sums_at;  // bytes per warp, and offsets in them
    int64 warp_space;                           // bytes of shared memory per warp
    unsigned int* counter;
    unsigned long long* no_path;  // the first pair without a path
    T* out;
    double band;
    double plus;
    int64 n_items, n_rows;
    int n_series, n_landmarks, n_packs, packs_per_item, n_outer, n_phases, mean, columns;
};
static_assert(sizeof(Job) == JOB_BYTES, "programs.py has another layout");

extern "C" {
__constant__ Job job;
}

// GROUPED: adds the landmarks of one pack. Each thread owns elements of `sums`.
__device__ __forceinline__ void add_groups(const Other* others, int lanes, const Ends* intervals,
                                           int n, int lane, int first, T* sums) {
    const int size = n * D;
    for (int e = lane; e < size; e += W) {
        const int i = e / D, k = e % D;
        if (job.n_phases == 1) {
            // Neighbours usually share a group, so their sum stays in a register.
            int group = -1;
            T total = 0;
            // Lanes without a landmark have no weights.
            for (int l = 0; l < lanes; l += U) {
                const T* channel[U];
                Ends in[U];
                T rows[U];
#pragma unroll
                for (int u = 0; u < U; ++u) {
                    channel[u] = job.landmarks + others[l + u].begin * S + k;
                    in[u] = intervals[i * WE + l + u];
                }
                sum_rows(channel, in, rows);
#pragma unroll
                for (int u = 0; u < U; ++u) {
                    const Other& other = others[l + u];
                    if (other.n_weights == 0) continue;
                    if (other.group != group) {
                        if (group >= 0) sums[int64(group) * size + e] += total;
                        group = other.group, total = 0;
                    }
                    total = fma(other.weight, rows[u], total);
                    if (other.n_weights == 1) continue;
                    const int entry = job.weights_begin[first + l + u];
                    for (int w = entry + 1; w < entry + other.n_weights; ++w) {
                        T& sum = sums[int64(job.weights_group[w]) * size + e];
                        sum = fma(job.weights[w] * other.share, rows[u], sum);
                    }
                }
            }
            if (group >= 0) sums[int64(group) * size + e] += total;
        } else {
            for (int l = 0; l < lanes; ++l) {
                const Other other = others[l];
                const Ends in = intervals[i * WE + l];
                const int entry = job.weights_begin[first + l];
                for (int j = in.x; j <= in.y; ++j) {
                    const T value = job.landmarks[(other.begin + j) * S + k];
                    const int64 phase = int64(j) * job.n_phases / other.steps;
                    for (int w = entry; w < entry + other.n_weights; ++w) {
                        const int64 part = int64(job.weights_group[w]) * job.n_phases + phase;
                        T& sum = sums[part * size + e];
                        sum = fma(job.weights[w] * other.share, value, sum);
                    }
                }
            }
        }
    }
}

// PRODUCTS: T of every landmark of the pack.
__device__ __forceinline__ void write_products(const Other* others, int lanes,
                                               const Ends* intervals, const T* series, int n,
                                               int lane, int first, int p, T* sums) {
    for (int l = 0; l < lanes; ++l) {
        const Other other = others[l];
        for (int e = lane; e < n * D; e += U * W) {
            T rows[U];
            sum_elements(job.landmarks + other.begin * S, intervals + l, e, n * D, rows);
#pragma unroll
            for (int u = 0; u < U; ++u)
                if (e + u * W < n * D) sums[e + u * W] = other.share * rows[u];
        }
        __syncwarp();
        T* out = job.out + (int64(p) * job.n_landmarks + job.order[first + l]) * D * D;
        series_times_sums(series, sums, n, lane, out);
        __syncwarp();
    }
}

// PROJECTED: <M, T> is the sum over series steps of (M'a) times the landmark rows aligned with a.
__device__ __forceinline__ void write_projected(const Other* others, int lanes,
                                                const Ends* intervals, int64 begin, int n, int lane,
                                                int first, int p) {
    constexpr int AT_ONCE = 4;
    for (int c = 0; c < job.n_outer; c += AT_ONCE)
        for (int l = 0; l < lanes; ++l) {
            const Other other = others[l];
            T total[AT_ONCE] = {};
            for (int e = lane; e < n * D; e += U * W) {
                T rows[U];
                sum_elements(job.landmarks + other.begin * S, intervals + l, e, n * D, rows);
#pragma unroll
                for (int o = 0; o < AT_ONCE; ++o)
                    if (c + o < job.n_outer) {
                        const T* side = job.projected + (int64(c + o) * job.n_rows + begin) * D + e;
#pragma unroll
                        for (int u = 0; u < U; ++u)
                            if (e + u * W < n * D) total[o] = fma(side[u * W], rows[u], total[o]);
                    }
            }
#pragma unroll
            for (int o = 0; o < AT_ONCE; ++o) {
                for (int step = W / 2; step > 0; step /= 2)
                    total[o] += __shfl_xor_sync(ALL, total[o], step);
                if (lane == 0 && c + o < job.n_outer)
                    job.out[(int64(p) * job.n_landmarks + job.order[first + l]) * job.n_outer + c +
                            o] = total[o] * other.share;
            }
        }
}

extern "C" __global__ void __launch_bounds__(WARPS* W, BLOCKS) run_pairs() {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    const int lane = threadIdx.x % W, warp = threadIdx.x / W;
    unsigned char* scratch = job.scratch + (int64(blockIdx.x) * WARPS + warp) * job.scratch_size;
    Other* others = reinterpret_cast<Other*>(shared_memory) + warp * W;
    const int64 width = int64(job.columns) * W;
    Pair g;
    g.band = job.band;
#if SHARED_FRONTIER
    unsigned char* space = shared_memory + (TRACED ? WARPS * W * sizeof(Other) : 0);
    g.frontier = reinterpret_cast<T*>(space + warp * job.warp_space) + lane;
    g.lengths = reinterpret_cast<Length*>(space + warp * job.warp_space + width * sizeof(T)) + lane;
#else
    g.frontier = reinterpret_cast<T*>(scratch) + lane;
    g.lengths = reinterpret_cast<Length*>(scratch + width * sizeof(T)) + lane;
    scratch += width * (sizeof(T) + sizeof(int));
#endif
    g.moves = reinterpret_cast<unsigned short*>(scratch) + lane;
#if SHARED_FRONTIER
    // The intervals replace the frontier, which is not needed after the sweep.
    unsigned char* room = space + warp * job.warp_space;
#else
    unsigned char* room = scratch + job.intervals_at;
#endif
    Ends* intervals = reinterpret_cast<Ends*>(room);
    T* sums = reinterpret_cast<T*>(scratch + job.sums_at);

    for (;;) {
        unsigned int item = 0;
        if (lane == 0) item = atomicAdd(job.counter, 1u);
        item = __shfl_sync(ALL, item, 0);
        if (item >= job.n_items) return;
        // Warps that run at the same time use the same pack. The longest packs come first.
        const int p = job.series_order[item % job.n_series];
        const int chunks = (job.n_packs + job.packs_per_item - 1) / job.packs_per_item;
        const int chunk = chunks - 1 - int(item / job.n_series);
        const int pack_begin = chunk * job.packs_per_item;
        const int pack_end = min(pack_begin + job.packs_per_item, job.n_packs);
        const int64 begin = job.series_offsets[p];
        g.n = int(job.series_offsets[p + 1] - begin);
        g.pad = (R - g.n % R) % R;
        g.series = job.series + begin * S;
        g.series_shift = job.series_shift + begin;
        const int64 parts = int64(job.n_outer) * job.n_phases, size = int64(g.n) * D;
        if (REDUCTION == GROUPED)
            for (int64 e = 0; e < parts; ++e)
                for (int64 k = lane; k < size; k += W) sums[e * size + k] = 0;

        for (int pack = pack_begin; pack < pack_end; ++pack) {
            const int first = pack * W, lanes = min(W, job.n_landmarks - first);
            // Unused lanes repeat the length of the first one, so that they do not widen a range.
            const int at = first + (lane < lanes ? lane : 0);
            const int64 column = job.pack_columns[pack];
            g.n_columns = int(job.pack_columns[pack + 1] - column);
            g.m = job.steps[at];
            g.columns = job.packed + column * D * W + lane;
            g.column_shift = job.packed_shift + column * W + lane;
            sweep(g);
            const T total = g.frontier[(g.m - 1) * W];
            const int64 pair = int64(p) * job.n_landmarks + job.order[at];
            if (BAND && !(total > minus_infinity()))
                atomicMin(job.no_path, static_cast<unsigned long long>(pair));
            if (!TRACED) {
                const T length = T(int(g.lengths[(g.m - 1) * W]));
                if (lane < lanes) job.out[pair] = job.mean ? total / length + T(job.plus) : total;
                continue;
            }
            __syncwarp();
            const T share = T(1) / T(walk_back(g, intervals + lane));
            Other mine = {job.begins[at], share, T(0), -1, 0, g.m};
            if (REDUCTION == GROUPED && lane < lanes) {
                const int entry = job.weights_begin[at];
                mine.n_weights = job.weights_begin[at + 1] - entry;
                if (mine.n_weights > 0) {
                    mine.group = job.weights_group[entry];
                    mine.weight = job.weights[entry] * share;
                }
            }
            others[lane] = mine;
            __syncwarp();
            if (REDUCTION == GROUPED) add_groups(others, lanes, intervals, g.n, lane, first, sums);
            if (REDUCTION == PRODUCTS)
                write_products(others, lanes, intervals, g.series, g.n, lane, first, p, sums);
            if (REDUCTION == PROJECTED)
                write_projected(others, lanes, intervals, begin, g.n, lane, first, p);
            __syncwarp();
        }
        if (REDUCTION == GROUPED)
            for (int64 e = 0; e < parts; ++e)
                series_times_sums(
                    g.series, sums + e * size, g.n, lane,
                    job.out + ((int64(chunk) * job.n_series + p) * parts + e) * D * D);
        __syncwarp();
    }
}

// Copies landmark rows side by side, with zeros after the end of a landmark.
extern "C" __global__ void pack_landmarks(const T* landmarks, const T* shift,
                                          const int64* pack_columns, const int64* begins,
                                          const int* steps, int n_landmarks, T* packed,
                                          T* packed_shift) {
    const int lane = threadIdx.x % W, at = blockIdx.x * W + lane;
    const int64 column = pack_columns[blockIdx.x];
    const int n_columns = int(pack_columns[blockIdx.x + 1] - column);
    const int m = at < n_landmarks ? steps[at] : 0;
    for (int j = threadIdx.x / W; j < n_columns; j += blockDim.x / W) {
        const int64 row = j < m ? begins[at] + j : 0;
        for (int k = 0; k < D; ++k)
            packed[((column + j) * D + k) * W + lane] = j < m ? landmarks[row * S + k] : T(0);
        if (SHIFTED) packed_shift[(column + j) * W + lane] = j < m ? shift[row] : T(0);
    }
}

// out[c][row] = M_c' a for every series row a.
extern "C" __global__ void project_rows(const T* series, const T* matrices, int64 n_rows,
                                        int64 n_outer, T* out) {
    const int64 size = n_outer * n_rows * D;
    for (int64 e = int64(blockIdx.x) * blockDim.x + threadIdx.x; e < size;
         e += int64(gridDim.x) * blockDim.x) {
        const int k = int(e % D);
        const int64 row = e / D % n_rows;
        const T* matrix = matrices + e / D / n_rows * D * D + k;
        T total = 0;
        for (int q = 0; q < D; ++q) total = fma(series[row * S + q], matrix[q * D], total);
        out[e] = total;
    }
}

// out[e] = sum over the chunks of landmarks, in order.
extern "C" __global__ void add_chunks(const T* parts, int64 n_chunks, int64 size, T* out) {
    for (int64 e = int64(blockIdx.x) * blockDim.x + threadIdx.x; e < size;
         e += int64(gridDim.x) * blockDim.x) {
        T total = 0;
        for (int64 c = 0; c < n_chunks; ++c) total += parts[c * size + e];
        out[e] = total;
    }
}
