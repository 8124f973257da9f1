// Decoding on Hopper: one new token of every sequence attends to the sequence's cache of keys and values, in one launch.
// bf16, fp32 sums, up to 8 query heads a key head; lengths are read on the device; the cache is contiguous or in pages.
//
// A key and its value, 4 D bytes, are read once and used in 4 D operations of each query head that shares them: 4 or
// 8 operations a byte, where the chip has time for 200. So what counts is the reading: every SM must have the same number
// of bytes to read, and loads under way from the first cycle to the last.
//
// Who reads what. For every key head the tiles of all sequences, one after the other, form a line. The grid is key heads
// by groups, about one CTA an SM, and group i takes the i-th equal part of the line, whatever sequences that touches. Each
// warp finds its part itself, with one load and one scan of the lengths: no other kernel prepares anything. Key heads run
// fastest in the grid, so that all heads of the same keys, which are neighbours in memory, are read at the same time.
//
// In a CTA. 8 warps take the part's tiles in turn. A tile is 4 KB of K and 4 KB of V, and a warp has a ring of three of
// them: 192 KB a CTA, 25 MB under way on the chip. A warp starts its own copies, so a slot is free as soon as its lanes have
// met (__syncwarp): there is no producer, and no barrier on which it waits. Each of the next 32 steps of a warp is looked
// up by a lane of its own, one batch ahead, since a load that depends on another one waits behind those 25 MB.
// The query heads are rows of a 16-row product, of which 4 or 8 are used: what the others would cost is there for nothing.
//
// Where a sequence's tiles end in the part, the warps meet and merge (sum, maximum, row of o) through shared memory. If
// other CTAs have some of its tiles, the result goes to the CTA's scratch slot and the CTA counts itself in. The last to
// arrive adds up all slots, in the order of the groups, so that the bits do not depend on who was last. A part shares at
// most the sequence in which it begins and the one in which it ends: two slots a CTA. Counts are zero again afterwards.
//
// What lies behind a sequence's end, or in unused pages, may be anything: scores there become -infinity, V rows zeros.
#include <stdio.h>
#include <string.h>

#include "ptx.cuh"

typedef __nv_bfloat16 bf16;
enum Score { PLAIN, CAP, ALIBI, WINDOW };

constexpr int WARPS = 8, THREADS = 32 * WARPS;
constexpr int SLOTS = 3;            // tiles of a warp's ring
constexpr int TILE_BYTES = 4096;    // of K, and of V
constexpr int SMALLEST_PAGE = 16;   // keys
constexpr int AT_A_TIME = 8;        // partial results that a thread loads before it adds them

struct Args {
    CUtensorMap k, v;                       // [block, key head, panel of 64 columns, row, column]; a block is a sequence's or a page
    const bf16* q;                          // [batch, key heads, group, D]
    bf16* o;
    float* lse;                             // [batch, key heads, group]: natural logarithms of the sums
    const int *lengths, *pages;             // [batch]; [batch, table width], read below a length only
    const float* slopes;                    // ALiBi's, [key heads, group]
    unsigned* arrivals;                     // [groups, key heads], zeros: for the sequence that goes on behind the group's part
    float* part;                            // [groups, 2, key heads, ROWS, D]: a sequence that began before it, one that goes on
    float2* part_state;                     // maximum and sum of each row of `part`
    int batch, key_heads, group, table_width, page_bits, window;
    float scale_log2, cap_log2, to_cap;     // scale * log2(e), cap * log2(e), scale / cap
};

template <int D_, int ROWS_, bool PAGED_, int SCORE_> struct Config {
    static constexpr int D = D_, ROWS = ROWS_, SCORE = SCORE_;       // ROWS: of the query heads of a key head, 4 or 8
    static constexpr bool PAGED = PAGED_;
    static constexpr int KEYS = TILE_BYTES / (2 * D);                // of a tile
    static constexpr int BOX = PAGED ? SMALLEST_PAGE : KEYS;         // keys of a copy, which lies in one page
    static constexpr int BOXES = KEYS / BOX, BOX_BYTES = BOX * D * 2, PANEL_BYTES = BOX * 128;
    static constexpr int CHAINS = 32 / KEYS;                         // sums of a score: one of 8 products would be a long chain
    static constexpr int QUADS = ROWS * D / 4;                       // of a result: four columns each
    static constexpr int PITCH = D + 8;                              // floats of a row in `merge`: rows begin 8 banks apart
    static_assert(THREADS % QUADS == 0 && KEYS % 16 == 0);
    // Where a row of a panel of 64 columns lies in a tile.
    static __device__ constexpr int place(int row, int panel) { return row / BOX * BOX_BYTES + panel * PANEL_BYTES + row % BOX * 128; }
};

// Four columns of a row of partial results: o is sum times their value, in units of 2^maximum.
struct Partial {
    float maximum, sum;
    float4 o;
};
INLINE Partial nothing() { return {minus_infinity(), 0.f, make_float4(0.f, 0.f, 0.f, 0.f)}; }
template <int N> INLINE void add(Partial& to, const Partial (&from)[N]) {    // at least one of them has a maximum
    float maximum = to.maximum;
#pragma unroll
    for (int i = 0; i < N; ++i) maximum = fmaxf(maximum, from[i].maximum);
    auto weigh = [&](const Partial& x, Partial& y) {
        const float weight = exp2_fast(x.maximum - maximum);
        y.sum += x.sum * weight;
        y.o.x += x.o.x * weight, y.o.y += x.o.y * weight, y.o.z += x.o.z * weight, y.o.w += x.o.w * weight;
    };
    Partial total = nothing();
    weigh(to, total);
#pragma unroll
    for (int i = 0; i < N; ++i) weigh(from[i], total);
    total.maximum = maximum;
    to = total;
}

template <class C> struct Shared {
    alignas(1024) unsigned char tiles[WARPS][SLOTS][2][TILE_BYTES];          // K and V, as the copy engine swizzles them
    union {
        float merge[WARPS][C::ROWS][C::PITCH];
        Partial others[THREADS];
    };
    float2 state[WARPS][C::ROWS];                                            // maximum, sum
    unsigned long long full[WARPS][SLOTS];
    int last;
};

// A sequence, and where its tiles are in the line.
struct Item {
    int sequence, length, begin, end;
    template <class C> static INLINE int first_key(const Args& a, int length) {
        return C::SCORE == WINDOW ? max(0, length - a.window) : 0;
    }
    template <class C> static INLINE int tiles(const Args& a, int length) {
        return length <= 0 ? 0 : (length + C::KEYS - 1) / C::KEYS - first_key<C>(a, length) / C::KEYS;
    }
    template <class C> INLINE int key_of(const Args& a, int tile) const {
        return (first_key<C>(a, length) / C::KEYS + tile - begin) * C::KEYS;
    }
    template <class C> INLINE void next(const Args& a) {                     // the next one that has keys
        begin = end;
        do {
            length = __ldg(a.lengths + ++sequence);
            end = begin + tiles<C>(a, length);
        } while (end == begin);
    }
};

struct Part { int chunk, begin, end; };                                      // of the line; chunk: tiles of every part but the last
// The group's part, and the item in which it begins. Every warp does this for itself.
template <class C> INLINE Part find_part(const Args& a, Item& item) {
    const int lane = threadIdx.x % 32;
    int total = 0, first = 0;
    for (int b0 = 0; b0 < a.batch; b0 += 32) {
        const int length = b0 + lane < a.batch ? __ldg(a.lengths + b0 + lane) : 0;
        if (b0 == 0) first = length;
        total += __reduce_add_sync(ALL_LANES, Item::tiles<C>(a, length));
    }
    const int chunk = (total + gridDim.y - 1) / gridDim.y, begin = min((int)blockIdx.y * chunk, total);
    item = {0, __shfl_sync(ALL_LANES, first, 0), 0, 0};
    item.end = Item::tiles<C>(a, item.length);
    int before = 0;
    for (int b0 = 0; begin < total && item.end <= begin; b0 += 32) {
        const int length = b0 == 0 ? first : b0 + lane < a.batch ? __ldg(a.lengths + b0 + lane) : 0;
        const int tiles = Item::tiles<C>(a, length);
        int end = before + tiles;
#pragma unroll
        for (int o = 1; o < 32; o *= 2) {
            const int x = __shfl_up_sync(ALL_LANES, end - before, o);
            if (lane >= o) end += x;
        }
        if (const unsigned behind = __ballot_sync(ALL_LANES, end > begin)) {
            const int l = __ffs(behind) - 1;
            item = {b0 + l, __shfl_sync(ALL_LANES, length, l), __shfl_sync(ALL_LANES, end - tiles, l), __shfl_sync(ALL_LANES, end, l)};
        }
        before = __shfl_sync(ALL_LANES, end, 31);
    }
    return {chunk, begin, min(begin + chunk, total)};
}

// A warp's copies: every WARPS-th tile of the part, looked up 32 steps at a time, a step by a lane.
template <class C> struct Copies {
    struct Place { int key, boxes, block[C::BOXES]; };                       // first key of the tile; sequence or page of each box
    const Args& a;
    Shared<C>& s;
    Item item;                                                               // of tile `look`, this lane's next one
    int look, next, end;                                                     // next: the next tile to be copied
    int step = 0;
    Place now = {}, then = {};

    INLINE Copies(const Args& a, Shared<C>& s, Item first, Part part)
        : a(a), s(s), item(first), look(part.begin + threadIdx.x / 32 + threadIdx.x % 32 * WARPS),
          next(part.begin + threadIdx.x / 32), end(part.end) {
        look_up(now);
#pragma unroll 1
        for (int i = 0; i < SLOTS; ++i) start(i);
        look_up(then);
    }
    INLINE void look_up(Place& place) {
        if (look < end) {
            while (item.end <= look) item.template next<C>(a);
            place.key = item.template key_of<C>(a, look);
            place.boxes = min(C::BOXES, (item.length - place.key + C::BOX - 1) / C::BOX);
#pragma unroll
            for (int i = 0; i < C::BOXES; ++i) {
                const int page = (place.key + i * C::BOX) >> a.page_bits;
                place.block[i] = !C::PAGED ? item.sequence
                                 : i < place.boxes ? __ldg(a.pages + (long)item.sequence * a.table_width + page) : 0;
            }
        }
        look += 32 * WARPS;
    }
    INLINE void start(int slot) {                                            // the next tile, if there is one, into a free slot
        if (next >= end) return;
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        const int key = __shfl_sync(ALL_LANES, now.key, step);
        const int boxes = C::BOXES == 1 ? 1 : __shfl_sync(ALL_LANES, now.boxes, step);
        int block = 0;
#pragma unroll
        for (int i = 0; i < C::BOXES; ++i) {
            const int x = __shfl_sync(ALL_LANES, now.block[i], step);
            if (lane == i) block = x;
        }
        next += WARPS;
        if (++step == 32) {
            step = 0;
            now = then;
            look_up(then);
        }
        const uint32_t barrier = shared_address(&s.full[warp][slot]), to = shared_address(s.tiles[warp][slot]) + lane * C::BOX_BYTES;
        if (lane == 0) barrier_expect(barrier, boxes * 2 * C::BOX_BYTES);
        if (lane < boxes) {
            const int row = C::PAGED ? (key + lane * C::BOX) & ((1 << a.page_bits) - 1) : key;
            copy_box(to, &a.k, barrier, row, blockIdx.x, block);
            copy_box(to + TILE_BYTES, &a.v, barrier, row, blockIdx.x, block);
        }
    }
};

// A warp's results of an item: query head lane / 4 of the group, and of each 8 columns the two at lane % 4 * 2.
template <class C> struct Rows {
    uint32_t q[C::D / 16][2];
    float o[C::D / 8][4], maximum, sum;
    float unit, slope;                      // unit: of scores as `score` returns them, in powers of two

    INLINE Rows(const Args& a) : unit(C::SCORE == CAP || C::SCORE == ALIBI ? 1.f : a.scale_log2), slope(0.f) {
        const int row = threadIdx.x % 32 / 4;
        if (C::SCORE == ALIBI && row < a.group) slope = a.slopes[blockIdx.x * a.group + row] * LOG2E;
    }
    INLINE void load_q(const Args& a, int sequence) {
        const int row = threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
        const bf16* from = a.q + (((long)sequence * a.key_heads + blockIdx.x) * a.group + row) * C::D + column;
#pragma unroll
        for (int k = 0; k < C::D / 16; ++k) {
            q[k][0] = row < a.group ? *(const uint32_t*)(from + k * 16) : 0u;
            q[k][1] = row < a.group ? *(const uint32_t*)(from + k * 16 + 8) : 0u;
        }
    }
    INLINE void clear() {
#pragma unroll
        for (int i = 0; i < C::D / 8; ++i) o[i][0] = o[i][1] = o[i][2] = o[i][3] = 0.f;
        maximum = minus_infinity(), sum = 0.f;
    }
    // What the variants differ in: the score of a product, and (in `attend`) which keys count.
    INLINE float score(const Args& a, float product, int key, int length) const {
        if (C::SCORE == CAP) return a.cap_log2 * tanh_fast(product * a.to_cap);
        if (C::SCORE == ALIBI) return fmaf(product, a.scale_log2, slope * (float)(key - length + 1));
        return product;
    }
    // Adds a tile: keys key ... key + KEYS - 1, of which those in [first, length) count.
    INLINE void attend(const Args& a, unsigned char (&tile)[2][TILE_BYTES], int key, int first, int length) {
        const int lane = threadIdx.x % 32;
        const bool part = key + C::KEYS > length || key < first;
        if (part) {                                                          // 0 times what lies there must be 0
            constexpr int CHUNKS = C::D / 8;                                 // of 16 bytes in a row; the swizzle stays within the row
#pragma unroll 1
            for (int x = lane; x < C::KEYS * CHUNKS; x += 32) {
                const int row = x / CHUNKS, chunk = x % CHUNKS;
                if (key + row >= first && key + row < length) continue;
                *(uint4*)(tile[1] + C::place(row, chunk / 8) + chunk % 8 * 16) = make_uint4(0u, 0u, 0u, 0u);
            }
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");     // before the copy engine writes here again
            __syncwarp();
        }
        float scores[C::CHAINS][C::KEYS / 8][4] = {};
        const uint32_t k_row = shared_address(tile[0]) + lane % 8 * 128, k_chunk = (lane / 8 ^ lane % 8) * 16;
#pragma unroll
        for (int k = 0; k < C::D / 32; ++k)
#pragma unroll
            for (int n = 0; n < C::KEYS / 8; ++n) {
                const int row = n * 8;
                uint32_t b[4];
                load_matrices(b, k_row + C::place(row, k / 2) + (k_chunk ^ k % 2 * 64));
                multiply(scores[0][n], q[2 * k][0], q[2 * k][1], b[0], b[1]);
                multiply(scores[C::CHAINS - 1][n], q[2 * k + 1][0], q[2 * k + 1][1], b[2], b[3]);
            }
        const float slack = 8.f / unit;     // weights up to 2^8 are as good as up to 1: the maximum is raised only beyond
        float x[C::KEYS / 8][2];
        bool beyond = false;
#pragma unroll
        for (int n = 0; n < C::KEYS / 8; ++n)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int j = key + n * 8 + lane % 4 * 2 + e;
                x[n][e] = score(a, C::CHAINS == 2 ? scores[0][n][e] + scores[C::CHAINS - 1][n][e] : scores[0][n][e], j, length);
                if (part && (j >= length || j < first)) x[n][e] = minus_infinity();
                beyond |= x[n][e] > maximum + slack;
            }
        if (__any_sync(ALL_LANES, beyond)) {
            float m = maximum;
#pragma unroll
            for (int n = 0; n < C::KEYS / 8; ++n) m = fmaxf(m, fmaxf(x[n][0], x[n][1]));
            m = fmaxf(m, __shfl_xor_sync(ALL_LANES, m, 1));
            m = fmaxf(m, __shfl_xor_sync(ALL_LANES, m, 2));
            const float weight = exp2_fast((maximum - m) * unit);
            maximum = m, sum *= weight;
#pragma unroll
            for (int i = 0; i < C::D / 8; ++i) o[i][0] *= weight, o[i][1] *= weight;
        }
#pragma unroll
        for (int n = 0; n < C::KEYS / 8; ++n) {
            x[n][0] = exp2_fast(fmaf(x[n][0], unit, -maximum * unit));
            x[n][1] = exp2_fast(fmaf(x[n][1], unit, -maximum * unit));
            sum += x[n][0] + x[n][1];
        }
        const uint32_t v_row = shared_address(tile[1]) + lane % 16 * 128, v_chunk = (lane / 16 ^ lane % 8) * 16;
#pragma unroll
        for (int k = 0; k < C::KEYS / 16; ++k) {                             // a product's scores are the next one's left operand
            const uint32_t p0 = pack(x[2 * k][0], x[2 * k][1]), p1 = pack(x[2 * k + 1][0], x[2 * k + 1][1]);
            const int row = k * 16;
#pragma unroll
            for (int n = 0; n < C::D / 16; ++n) {
                uint32_t b[4];
                load_matrices_transposed(b, v_row + C::place(row, n / 4) + (v_chunk ^ n % 4 * 32));
                multiply(o[2 * n], p0, p1, b[0], b[1]);
                multiply(o[2 * n + 1], p0, p1, b[2], b[3]);
            }
        }
    }
    INLINE void give(Shared<C>& s) {                                         // to the merge
        const int warp = threadIdx.x / 32, row = threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
        sum += __shfl_xor_sync(ALL_LANES, sum, 1);
        sum += __shfl_xor_sync(ALL_LANES, sum, 2);
        if (row >= C::ROWS) return;
#pragma unroll
        for (int i = 0; i < C::D / 8; ++i) *(float2*)&s.merge[warp][row][i * 8 + column] = make_float2(o[i][0], o[i][1]);
        if (column == 0) s.state[warp][row] = make_float2(maximum * unit, sum);
    }
};

// Writes four columns of a query head's row.
template <class C> INLINE void finish(const Args& a, int sequence, int row, int column, const Partial& x) {
    if (row >= a.group) return;
    const float scale = inverse_fast(x.sum);
    const long at = ((long)sequence * a.key_heads + blockIdx.x) * a.group + row;
    *(uint2*)(a.o + at * C::D + column) = make_uint2(pack(x.o.x * scale, x.o.y * scale), pack(x.o.z * scale, x.o.w * scale));
    if (column == 0) a.lse[at] = (x.maximum + __log2f(x.sum)) * LN2;
}

// Adds up what groups first ... first + count - 1 have of a sequence, always in the same order.
template <class C> INLINE void combine(const Args& a, Shared<C>& s, int sequence, int first, int count) {
    constexpr int TEAMS = THREADS / C::QUADS;                                // each has every TEAMS-th group
    const int team = threadIdx.x / C::QUADS, quad = threadIdx.x % C::QUADS, row = quad / (C::D / 4), column = quad % (C::D / 4) * 4;
    Partial total = nothing();
#pragma unroll 1
    for (int i = team; i < count; i += AT_A_TIME * TEAMS) {
        Partial x[AT_A_TIME];
#pragma unroll
        for (int u = 0; u < AT_A_TIME; ++u) {
            x[u] = nothing();
            const int k = i + u * TEAMS, slot = k == 0 ? 2 * first + 1 : 2 * (first + k);
            const long at = ((long)slot * a.key_heads + blockIdx.x) * C::ROWS + row;
            if (k >= count) continue;
            const float2 state = a.part_state[at];
            x[u] = {state.x, state.y, *(const float4*)(a.part + at * C::D + column)};
        }
        add(total, x);
    }
    if (TEAMS > 1) {
        if (team > 0) s.others[threadIdx.x] = total;
        __syncthreads();
        for (int i = 1; team == 0 && i < TEAMS; ++i) {
            const Partial other[1] = {s.others[threadIdx.x + i * C::QUADS]};
            add(total, other);
        }
    }
    if (team == 0) finish<C>(a, sequence, row, column, total);
}

// The warps have given: the item's result, or this CTA's part of it.
template <class C> INLINE void merge(const Args& a, Shared<C>& s, const Item& item, const Part& part) {
    const bool begins = item.begin >= part.begin, whole = begins && item.end <= part.end;
    if (threadIdx.x < C::QUADS) {
        const int row = threadIdx.x / (C::D / 4), column = threadIdx.x % (C::D / 4) * 4;
        Partial x[WARPS], total = nothing();
#pragma unroll
        for (int w = 0; w < WARPS; ++w) x[w] = {s.state[w][row].x, s.state[w][row].y, *(const float4*)&s.merge[w][row][column]};
        add(total, x);
        if (whole) {
            finish<C>(a, item.sequence, row, column, total);
        } else {
            const long at = ((long)(2 * blockIdx.y + begins) * a.key_heads + blockIdx.x) * C::ROWS + row;
            __stcg((float4*)(a.part + at * C::D + column), total.o);
            if (column == 0) __stcg(a.part_state + at, make_float2(total.maximum, total.sum));
        }
    }
    if (whole) return;
    const int first = item.begin / part.chunk, count = (item.end - 1) / part.chunk - first + 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned* count_of_item = a.arrivals + first * a.key_heads + blockIdx.x;
        s.last = arrive(count_of_item) == count - 1;
        if (s.last) *count_of_item = 0;
    }
    __syncthreads();
    if (s.last) combine<C>(a, s, item.sequence, first, count);
}

template <class C> __global__ void __launch_bounds__(THREADS, 1) decode(const __grid_constant__ Args a) {
    extern __shared__ __align__(1024) unsigned char memory[];                // as the swizzle needs it
    Shared<C>& s = *(Shared<C>*)memory;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");          // the next launch may come, and wait
    if (lane == 0) {
        if (warp == 0) asm volatile("prefetch.tensormap [%0];\nprefetch.tensormap [%1];" ::"l"(&a.k), "l"(&a.v) : "memory");
        for (int i = 0; i < SLOTS; ++i) barrier_init(shared_address(&s.full[warp][i]), 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncwarp();
    asm volatile("griddepcontrol.wait;" ::: "memory");                       // what the launches before wrote is there

    Item item;
    const Part part = find_part<C>(a, item);
    if (part.begin < part.end) {
        Copies<C> copies(a, s, item, part);
        Rows<C> rows(a);
        rows.load_q(a, item.sequence);
        int tile = part.begin + warp, slot = 0, phase = 0;
        for (;;) {
            rows.clear();
            const int end = min(item.end, part.end), first = Item::first_key<C>(a, item.length);
#pragma unroll 1
            for (; tile < end; tile += WARPS) {
                barrier_wait(shared_address(&s.full[warp][slot]), phase);
                rows.attend(a, s.tiles[warp][slot], item.template key_of<C>(a, tile), first, item.length);
                __syncwarp();                                                // the slot is read
                copies.start(slot);
                if (++slot == SLOTS) slot = 0, phase ^= 1;
            }
            Item next = item;
            if (item.end < part.end) {                                       // the next item's queries come under the merge
                next.template next<C>(a);
                rows.load_q(a, next.sequence);
            }
            if (item.begin > part.begin) __syncthreads();                    // the last merge is read
            rows.give(s);
            __syncthreads();
            merge<C>(a, s, item, part);
            if (item.end >= part.end) break;
            item = next;
        }
    }
#pragma unroll 1
    for (int b = blockIdx.y * gridDim.x + blockIdx.x; b < a.batch; b += gridDim.x * gridDim.y) {     // sequences without keys
        if (__ldg(a.lengths + b) > 0) continue;
        const int rows = a.key_heads * a.group;
#pragma unroll 1
        for (int x = threadIdx.x; x < rows * C::D / 2; x += THREADS) ((uint32_t*)a.o)[(long)b * rows * C::D / 2 + x] = 0u;
#pragma unroll 1
        for (int x = threadIdx.x; x < rows; x += THREADS) a.lse[(long)b * rows + x] = minus_infinity();
    }
}
#include "launch.cuh"
