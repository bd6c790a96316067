// Non-maximum suppression: drops boxes that overlap a better box of their class too much.
//
// Boxes are sorted by class and score, and by score only. In the first order a class is contiguous, and only its earlier
// boxes can drop a box; the second is the result's order. No step needs memory per pair of boxes.
//
// A box is kept if every earlier box that it overlaps too much is dropped, and dropped as soon as one of them is kept.
// Boxes without such predecessors are decided at once, others when their predecessors are.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "programmatic.cuh"

namespace nms {

constexpr unsigned ALL_LANES = 0xffffffffu;

/// The key of boxes that are not considered; all others are less.
constexpr unsigned long long NO_KEY = ~0ull;

/// The state of a box.
constexpr unsigned char OPEN = 0, KEPT = 1, DROPPED = 2;

/// Groups of boxes, each a bit of a word.
constexpr int GROUPS = 64;

/// Waits for the previous step, and lets the next one start, which waits likewise. `read` are the pointers to read from.
template <typename... Read>
__device__ __forceinline__ void begin_step(const Read*... read)
{
    wait_for_earlier(read...);
    let_later_begin();
}

/// Returns two corners of a box: (x, y) and (z, w).
template <typename T>
__device__ __forceinline__ float4 load_box(const T* boxes, int index)
{
    const T* const at = boxes + 4 * static_cast<long long>(index);
    return make_float4(static_cast<float>(at[0]), static_cast<float>(at[1]), static_cast<float>(at[2]), static_cast<float>(at[3]));
}

/// Returns a box that intersects none.
__device__ __forceinline__ float4 no_box()
{
    const float nan = __int_as_float(0x7fffffff);
    return make_float4(nan, nan, nan, nan);
}

/// Returns whether two boxes share more than a corner or an edge; possibly also if one has no area. Otherwise they do
/// not intersect.
__device__ __forceinline__ bool may_meet(const float4& a, const float4& b)
{
    return a.z > b.x && b.z > a.x && a.w > b.y && b.w > a.y;
}

/// Returns whether intersection over union exceeds the threshold. Each operation is rounded separately, as on a CPU. A
/// box with a NaN exceeds no threshold: its area is NaN.
__device__ __forceinline__ bool is_over(const float4& a, const float4& b, float threshold)
{
    const float width = fmaxf(__fsub_rn(fminf(a.z, b.z), fmaxf(a.x, b.x)), 0.0f);
    const float height = fmaxf(__fsub_rn(fminf(a.w, b.w), fmaxf(a.y, b.y)), 0.0f);
    const float both = __fmul_rn(width, height);
    const float area_a = __fmul_rn(__fsub_rn(a.z, a.x), __fsub_rn(a.w, a.y));
    const float area_b = __fmul_rn(__fsub_rn(b.z, b.x), __fsub_rn(b.w, b.y));
    return __fdiv_rn(both, __fsub_rn(__fadd_rn(area_a, area_b), both)) > threshold;
}

/// The threshold is at least 0, so disjoint boxes do not exceed it.
__device__ __forceinline__ bool overlaps(const float4& a, const float4& b, float threshold)
{
    return may_meet(a, b) && is_over(a, b, threshold);
}

/// Returns a number that decreases with the score. NaN is the highest score, as in PyTorch; 0 and -0 are equal.
__device__ __forceinline__ unsigned rank_of_score(float score)
{
    if (score != score)
        return 0;
    const unsigned bits = __float_as_uint(__fadd_rn(score, 0.0f));
    return bits & 0x80000000u ? bits : 0x7fffffffu - bits;
}

/// Returns whether a box is considered; all are if the threshold is the lowest `float`.
__device__ __forceinline__ bool takes_part(float score, float threshold)
{
    return !(threshold > -3.402823466e38f) || score > threshold;
}

/// A key for sorting, with the index for equal keys.
struct Entry
{
    unsigned long long key;
    int index;
};

__device__ __forceinline__ bool is_before(unsigned long long a, unsigned long long b)
{
    return a < b;
}

__device__ __forceinline__ bool is_before(const Entry& a, const Entry& b)
{
    return a.key < b.key || (a.key == b.key && a.index < b.index);
}

__device__ __forceinline__ unsigned long long from_lane(unsigned long long key, int distance)
{
    return __shfl_xor_sync(ALL_LANES, key, distance);
}

__device__ __forceinline__ Entry from_lane(const Entry& entry, int distance)
{
    return {__shfl_xor_sync(ALL_LANES, entry.key, distance), __shfl_xor_sync(ALL_LANES, entry.index, distance)};
}

/// Sorts one element per thread of the block; thread `t` gets element `t`. A bitonic network: `BLOCK` is a power of two.
/// `exchange` has two elements per thread, so that one barrier per step suffices.
template <int BLOCK, typename K>
__device__ __forceinline__ K sort_block(K mine, K* exchange)
{
    const unsigned thread = threadIdx.x;
    unsigned turn = 0;
#pragma unroll
    for (unsigned size = 2; size <= BLOCK; size *= 2) {
#pragma unroll
        for (unsigned distance = size / 2; distance > 0; distance /= 2) {
            K other;
            if (distance >= 32) {
                K* const buffer = exchange + turn * BLOCK;
                turn ^= 1;
                buffer[thread] = mine;
                __syncthreads();
                other = buffer[thread ^ distance];
            } else {
                other = from_lane(mine, distance);
            }
            const bool wants_first = ((thread & distance) == 0) == ((thread & size) == 0);
            if (is_before(other, mine) == wants_first)
                mine = other;
        }
    }
    return mine;
}

/// Returns the sum of `value` over the lanes up to this one.
__device__ __forceinline__ unsigned sum_up_to(unsigned value)
{
    const unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const unsigned other = __shfl_up_sync(ALL_LANES, value, distance);
        value += lane >= distance ? other : 0;
    }
    return value;
}

/// Returns how many earlier threads of the block have `flag`; `total` counts all. `counts` has one element per warp.
template <int BLOCK>
__device__ __forceinline__ unsigned count_before(bool flag, unsigned* counts, unsigned& total)
{
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned votes = __ballot_sync(ALL_LANES, flag);
    if (lane == 0)
        counts[warp] = __popc(votes);
    __syncthreads();
    const unsigned sums = sum_up_to(lane < BLOCK / 32 ? counts[lane] : 0);
    total = __shfl_sync(ALL_LANES, sums, 31);
    const unsigned before = __shfl_sync(ALL_LANES, sums, warp) - __popc(votes);
    return before + __popc(votes & ((1u << lane) - 1));
}

} // namespace nms

/// All steps for at most `BLOCK` boxes, in one block.
///
/// After sorting by score, boxes are arranged by bucket in this order; some classes share a bucket. A thread visits the
/// earlier boxes of its bucket, 32 at a time, until an overlapping one is kept, or is undecided.
template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    nms_in_one_block(const T* __restrict__ boxes, const T* __restrict__ scores, const int* __restrict__ classes, int* __restrict__ keep,
                     long long* __restrict__ count, int size, float iou_threshold, float score_threshold)
{
    using namespace nms;
    constexpr int WARPS = BLOCK / 32;
    constexpr int BUCKETS = 64;
    __shared__ unsigned long long exchange[2 * BLOCK];
    __shared__ float4 box_at[BLOCK];
    __shared__ int class_at[BLOCK];
    __shared__ unsigned short place_at[BLOCK], start_at[BLOCK];
    __shared__ unsigned short in_bucket[BUCKETS * WARPS], of_bucket[BUCKETS];
    __shared__ unsigned kept_bits[WARPS], open_bits[WARPS], counts[WARPS];
    __shared__ bool is_kept[BLOCK];
    const unsigned thread = threadIdx.x, lane = thread % 32, warp = thread / 32;

    unsigned long long key = NO_KEY;
    if (static_cast<int>(thread) < size) {
        const float score = static_cast<float>(scores[thread]);
        if (takes_part(score, score_threshold))
            key = static_cast<unsigned long long>(rank_of_score(score)) << 32 | thread;
        box_at[thread] = load_box(boxes, thread);
        class_at[thread] = classes[thread];
    }
    for (unsigned i = thread; i < BUCKETS * WARPS; i += BLOCK)
        in_bucket[i] = 0;
    is_kept[thread] = false;
    __syncthreads();
    key = sort_block<BLOCK>(key, exchange);
    const bool is_box = key != NO_KEY;
    const int index = static_cast<int>(key & 0xffffffffu);
    const float4 sorted_box = is_box ? box_at[index] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const int sorted_class = is_box ? class_at[index] : 0;

    // Counts the bucket's boxes before this one, in its warp and in earlier warps, and the boxes of earlier buckets.
    // Boxes that are not considered already come last.
    const unsigned bucket = is_box ? static_cast<unsigned>(sorted_class) % BUCKETS : BUCKETS;
    const unsigned peers = __match_any_sync(ALL_LANES, bucket);
    if (is_box && lane == __ffs(peers) - 1)
        in_bucket[bucket * WARPS + warp] = __popc(peers);
    __syncthreads();
    for (unsigned b = warp; b < BUCKETS; b += WARPS) {
        const unsigned here = lane < WARPS ? in_bucket[b * WARPS + lane] : 0;
        const unsigned sum = sum_up_to(here);
        if (lane < WARPS)
            in_bucket[b * WARPS + lane] = sum - here;
        if (lane == 31)
            of_bucket[b] = sum;
    }
    __syncthreads();
    const unsigned even = of_bucket[2 * lane], odd = of_bucket[2 * lane + 1];
    const unsigned before_pair = sum_up_to(even + odd) - even - odd;
    const unsigned from_pair = __shfl_sync(ALL_LANES, before_pair, bucket / 2 % 32);
    const unsigned from_even = __shfl_sync(ALL_LANES, even, bucket / 2 % 32);
    const unsigned bucket_start = from_pair + (bucket % 2 ? from_even : 0);
    unsigned place = thread;
    if (is_box)
        place = bucket_start + in_bucket[bucket * WARPS + warp] + __popc(peers & ((1u << lane) - 1));
    box_at[place] = sorted_box;
    class_at[place] = sorted_class;
    place_at[place] = thread;
    start_at[place] = bucket_start;
    const int boxes_in_all = __syncthreads_count(is_box);

    const float4 box = box_at[thread];
    const int own_class = class_at[thread];
    const unsigned start = start_at[thread];
    unsigned window = start / 32, hits = 0;
    bool is_open = static_cast<int>(thread) < boxes_in_all, is_new = true, is_good = false;
    kept_bits[warp] = 0;
    open_bits[warp] = ALL_LANES;
    __syncthreads();
    do {
        while (is_open) {
            if (is_new) {
                hits = 0;
                const unsigned end = min(window * 32 + 32, thread);
                unsigned meeting = 0;
                for (unsigned i = max(window * 32, start); i < end; ++i)
                    meeting |= class_at[i] == own_class && may_meet(box_at[i], box) ? 1u << i % 32 : 0;
                for (; meeting != 0; meeting &= meeting - 1) {
                    if (is_over(box_at[window * 32 + __ffs(static_cast<int>(meeting)) - 1], box, iou_threshold))
                        hits |= meeting & -meeting;
                }
                is_new = false;
            }
            if (hits & kept_bits[window]) {
                is_open = false;
            } else if (hits & open_bits[window]) {
                break;
            } else if (window == warp) {
                is_open = false;
                is_good = true;
            } else {
                ++window;
                is_new = true;
            }
        }
        // All threads must have read the old state before it changes.
        __syncthreads();
        const unsigned kept_here = __ballot_sync(ALL_LANES, is_good), open_here = __ballot_sync(ALL_LANES, is_open);
        if (lane == 0) {
            kept_bits[warp] = kept_here;
            open_bits[warp] = open_here;
        }
    } while (__syncthreads_or(is_open));

    if (is_good)
        is_kept[place_at[thread]] = true;
    __syncthreads();
    unsigned total;
    const bool is_result = is_kept[thread];
    const unsigned at = count_before<BLOCK>(is_result, counts, total);
    if (is_result)
        keep[at] = index;
    if (thread == 0)
        *count = total;
}

/// Sorts each part of `CHUNK` boxes, padding the last one: in one order by class and score, in the other by score.
/// Blocks: x for parts, y for orders.
template <typename T, int CHUNK>
__global__ void __launch_bounds__(CHUNK)
    sort_parts(const T* __restrict__ scores, const int* __restrict__ classes, unsigned long long* __restrict__ keys, int* __restrict__ indices, int size,
               float score_threshold)
{
    using namespace nms;
    begin_step(scores, classes);
    __shared__ Entry exchange[2 * CHUNK];
    const int index = blockIdx.x * CHUNK + threadIdx.x;
    Entry entry = {NO_KEY, index};
    if (index < size) {
        const float score = static_cast<float>(scores[index]);
        const unsigned by_class = blockIdx.y == 0 ? static_cast<unsigned>(classes[index]) ^ 0x80000000u : 0;
        if (takes_part(score, score_threshold))
            entry.key = static_cast<unsigned long long>(by_class) << 32 | rank_of_score(score);
    }
    entry = sort_block<CHUNK>(entry, exchange);
    const long long at = static_cast<long long>(blockIdx.y * gridDim.x) * CHUNK + index;
    keys[at] = entry.key;
    indices[at] = entry.index;
}

namespace nms {

/// Returns the place of `key` among all `parts` sorted parts; `own` is its place in their concatenation. Equal keys of
/// earlier parts come first. Searches `WIDTH` parts at once, so that their loads overlap.
template <int CHUNK>
__device__ __forceinline__ int place_among(const unsigned long long* keys, int parts, int own, unsigned long long key)
{
    constexpr int WIDTH = 4;
    const int own_part = own / CHUNK;
    int place = own % CHUNK;
    for (int first = 0; first < parts; first += WIDTH) {
        int before[WIDTH] = {};
#pragma unroll
        for (int twice = CHUNK; twice > 0; twice /= 2) {
#pragma unroll
            for (int p = 0; p < WIDTH; ++p) {
                const int part = min(first + p, parts - 1);
                // The last step repeats 1: a part has one element more than its halves add up to.
                const int next = before[p] + max(twice / 2, 1);
                const unsigned long long other = keys[static_cast<long long>(part) * CHUNK + next - 1];
                if (other < key || (other == key && part < own_part))
                    before[p] = next;
            }
        }
#pragma unroll
        for (int p = 0; p < WIDTH; ++p)
            place += first + p < parts && first + p != own_part ? before[p] : 0;
    }
    return place;
}

} // namespace nms

/// Writes boxes and classes in the first order, indices in the second, and the mapping from one to the other; resets the
/// state of later steps. Boxes that are not considered intersect none, and have index -1. Blocks: x for boxes, y for
/// orders.
template <typename T, int CHUNK>
__global__ void place_boxes(const T* __restrict__ boxes, const int* __restrict__ classes, const unsigned long long* __restrict__ keys,
                            const int* __restrict__ indices, float4* __restrict__ sorted_boxes, int* __restrict__ sorted_classes,
                            int* __restrict__ sources, unsigned long long* __restrict__ groups, unsigned char* __restrict__ states,
                            int* __restrict__ by_score, int* __restrict__ score_places, unsigned char* __restrict__ kept,
                            unsigned* __restrict__ turns, int parts)
{
    using namespace nms;
    begin_step(boxes, classes, keys, indices);
    const int own = blockIdx.x * blockDim.x + threadIdx.x;
    const long long first = static_cast<long long>(blockIdx.y * parts) * CHUNK;
    const unsigned long long key = keys[first + own];
    const int index = indices[first + own];
    const int place = place_among<CHUNK>(keys + first, parts, own, key);
    if (blockIdx.y == 1) {
        by_score[place] = index;
        score_places[index] = place;
        kept[place] = 0;
        return;
    }
    const bool is_box = key != NO_KEY;
    sorted_boxes[place] = is_box ? load_box(boxes, index) : no_box();
    // Boxes that are not considered come last, so classes ascend to the end.
    sorted_classes[place] = is_box ? classes[index] : 0x7fffffff;
    sources[place] = is_box ? index : -1;
    groups[place] = 0;
    states[place] = OPEN;
    if (own == 0)
        *turns = 0;
}

/// Marks for each box the groups of `width` neighbors with an earlier box of its class that it overlaps too much. Two
/// boxes per thread. Blocks: x for groups, y for boxes.
template <int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    mark_groups(const float4* __restrict__ sorted_boxes, const int* __restrict__ sorted_classes, unsigned long long* __restrict__ groups, int padded,
                int width, float iou_threshold)
{
    using namespace nms;
    begin_step(sorted_boxes, sorted_classes, groups);
    constexpr int ROWS = 2;
    __shared__ float4 tile_boxes[BLOCK];
    __shared__ int tile_classes[BLOCK];
    const int first_row = blockIdx.y * BLOCK * ROWS, last_row = min(first_row + BLOCK * ROWS, padded) - 1;
    const int begin = blockIdx.x * width, end = min(begin + width, last_row);
    if (begin >= end || sorted_classes[end - 1] < sorted_classes[first_row] || sorted_classes[begin] > sorted_classes[last_row])
        return;
    float4 box[ROWS];
    int row[ROWS], own_class[ROWS];
    bool is_found[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        row[r] = first_row + r * BLOCK + threadIdx.x;
        const int at = min(row[r], padded - 1);
        box[r] = sorted_boxes[at];
        own_class[r] = sorted_classes[at];
        is_found[r] = row[r] >= padded;
    }
    for (int tile = begin; tile < end; tile += BLOCK) {
        __syncthreads();
        const int mine = tile + threadIdx.x;
        // Boxes past the end intersect none.
        tile_boxes[threadIdx.x] = mine < end ? sorted_boxes[mine] : no_box();
        tile_classes[threadIdx.x] = mine < end ? sorted_classes[mine] : 0;
        __syncthreads();
        const int in_tile = min(end - tile, BLOCK);
        for (int window = 0; window < in_tile && !__all_sync(ALL_LANES, is_found[0] && is_found[1]); window += 32) {
            unsigned meeting[ROWS] = {};
#pragma unroll
            for (int i = 0; i < 32; ++i) {
                const float4 other = tile_boxes[window + i];
#pragma unroll
                for (int r = 0; r < ROWS; ++r)
                    meeting[r] |= may_meet(other, box[r]) ? 1u << i : 0;
            }
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                // Only earlier boxes.
                const int before = row[r] - tile - window;
                if (before < 32)
                    meeting[r] &= before > 0 ? (1u << before) - 1 : 0;
                while (meeting[r] != 0 && !is_found[r]) {
                    const int i = window + __ffs(static_cast<int>(meeting[r])) - 1;
                    meeting[r] &= meeting[r] - 1;
                    is_found[r] = tile_classes[i] == own_class[r] && is_over(tile_boxes[i], box[r], iou_threshold);
                }
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (is_found[r] && row[r] < padded)
            atomicOr(&groups[row[r]], 1ull << blockIdx.x);
    }
}

namespace nms {

/// Returns whether a box is dropped. All lanes check the marked groups, 32 boxes at a time, and wait for undecided ones.
__device__ __forceinline__ bool is_dropped(const float4* boxes, const int* classes, const volatile unsigned char* states, unsigned long long marked,
                                           int row, int width, float threshold)
{
    const int lane = threadIdx.x % 32;
    const float4 box = boxes[row];
    const int own_class = classes[row];
    for (; marked != 0; marked &= marked - 1) {
        const int begin = (__ffsll(static_cast<long long>(marked)) - 1) * width;
        const int end = min(begin + width, row);
        for (int first = begin; first < end; first += 32) {
            const int other = first + lane;
            bool is_hit = other < end && classes[other] == own_class && overlaps(boxes[other], box, threshold);
            while (__any_sync(ALL_LANES, is_hit)) {
                const unsigned char state = is_hit ? states[other] : DROPPED;
                if (__any_sync(ALL_LANES, state == KEPT))
                    return true;
                is_hit = state == OPEN;
            }
        }
    }
    return false;
}

} // namespace nms

/// Decides which boxes are kept: 32 neighbors per block, sequentially in a warp. Blocks take neighbors in the order in
/// which they start, so the blocks that a block waits for have started, whatever else the device runs.
template <int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    decide_boxes(const float4* __restrict__ sorted_boxes, const int* __restrict__ sorted_classes, const int* __restrict__ sources,
                 const unsigned long long* __restrict__ groups, const int* __restrict__ score_places, unsigned char* states,
                 unsigned char* __restrict__ kept, unsigned* turns, int width, float iou_threshold)
{
    using namespace nms;
    begin_step(sorted_boxes, sorted_classes, sources, groups, score_places, states, kept, turns);
    __shared__ unsigned turn;
    if (threadIdx.x == 0)
        turn = atomicAdd(turns, 1u);
    __syncthreads();
    volatile unsigned char* const decided = states;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first = static_cast<int>(turn) * 32;
    // Boxes without earlier overlaps are decided at once.
    const unsigned long long marked_of_lane = groups[first + lane];
    const int source_of_lane = sources[first + lane];
    if (warp == 0 && marked_of_lane == 0) {
        decided[first + lane] = source_of_lane < 0 ? DROPPED : KEPT;
        if (source_of_lane >= 0)
            kept[score_places[source_of_lane]] = 1;
    }
    for (int r = warp; r < 32; r += BLOCK / 32) {
        const unsigned long long marked = __shfl_sync(ALL_LANES, marked_of_lane, r);
        if (marked == 0)
            continue;
        const bool is_good = !is_dropped(sorted_boxes, sorted_classes, decided, marked, first + r, width, iou_threshold);
        if (lane == r) {
            decided[first + r] = is_good ? KEPT : DROPPED;
            if (is_good)
                kept[score_places[source_of_lane]] = 1;
        }
    }
}

/// Writes the indices of kept boxes, by score. A block counts the kept boxes before its own, one per thread.
template <int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    write_kept(const unsigned char* __restrict__ kept, const int* __restrict__ by_score, int* __restrict__ keep, long long* __restrict__ count)
{
    using namespace nms;
    begin_step(kept, by_score);
    __shared__ unsigned counts[2][BLOCK / 32];
    const unsigned first = blockIdx.x * BLOCK;
    const uint4* const pieces = reinterpret_cast<const uint4*>(kept);
    unsigned before = 0;
    for (unsigned piece = threadIdx.x; piece < first / 16; piece += BLOCK) {
        const uint4 four = pieces[piece];
        before += __popc(four.x) + __popc(four.y) + __popc(four.z) + __popc(four.w);
    }
    before = sum_up_to(before);
    if (threadIdx.x % 32 == 31)
        counts[0][threadIdx.x / 32] = before;
    unsigned here;
    const bool is_kept = kept[first + threadIdx.x] != 0;
    unsigned at = count_before<BLOCK>(is_kept, counts[1], here);
#pragma unroll
    for (int warp = 0; warp < BLOCK / 32; ++warp) {
        at += counts[0][warp];
        here += counts[0][warp];
    }
    if (is_kept)
        keep[at] = by_score[first + threadIdx.x];
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0)
        *count = here;
}
