// Writes the coordinates of nonzero elements, in row-major order, in two passes.
//
// Each block has a part of the input, of whole tiles. The first pass counts the nonzero elements of each part.
// In the second, each block sums the counts of earlier parts to find its output position, so the result does
// not depend on the order of blocks.

#include <cuda_fp16.h>

/// Tests bits: NaN is nonzero, -0.0 is zero, subnormal numbers are not flushed.
__device__ __forceinline__ bool is_set(float value)
{
    return (__float_as_uint(value) & 0x7fffffffu) != 0;
}

__device__ __forceinline__ bool is_set(__half value)
{
    return (__half_as_ushort(value) & 0x7fffu) != 0;
}

/// Returns the sum over the block's threads, to each of them. `BLOCK` is a multiple of 32.
template <int BLOCK>
__device__ __forceinline__ unsigned sum_of_block(unsigned value)
{
    __shared__ unsigned sums[BLOCK / 32];
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, step);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = value;
    __syncthreads();
    unsigned sum = 0;
#pragma unroll
    for (int warp = 0; warp < BLOCK / 32; ++warp)
        sum += sums[warp];
    // All threads must have read the sums before the next call writes them.
    __syncthreads();
    return sum;
}

/// Counts the nonzero elements of each part of `x`. Part `b` has `part` elements from `b * part` on, or the
/// remaining ones.
template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    count_non_zero(const T* __restrict__ x, unsigned* __restrict__ counts, unsigned size, unsigned part)
{
    const unsigned begin = blockIdx.x * part;
    const unsigned end = min(begin + part, size);
    unsigned count = 0;
    for (unsigned i = begin + threadIdx.x; i < end; i += BLOCK)
        count += is_set(x[i]);
    count = sum_of_block<BLOCK>(count);
    if (threadIdx.x == 0)
        counts[blockIdx.x] = count;
}

/// Writes `rank` coordinates per nonzero element, and the number of these elements. `part` is a multiple of
/// `BLOCK * ITEMS`, or at least `size`.
///
/// A tile has `BLOCK * ITEMS` elements, a warp `32 * ITEMS` adjacent ones. Coordinates are computed with
/// `reciprocal = (2^63 - 1) / extent`, as in `circ_pad.cu`. Extents are counted from the innermost.
template <typename T, int BLOCK, int ITEMS>
__global__ void __launch_bounds__(BLOCK)
    write_non_zero(const T* __restrict__ x, const unsigned* __restrict__ counts, int* __restrict__ indices,
                   long long* __restrict__ total, unsigned size, unsigned part, int rank,
                   cubinder::array<unsigned, 8> extent, cubinder::array<unsigned long long, 8> reciprocal)
{
    __shared__ unsigned in_warp[BLOCK / 32];
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;

    unsigned before = 0;
    for (unsigned b = threadIdx.x; b < blockIdx.x; b += BLOCK)
        before += counts[b];
    unsigned next = sum_of_block<BLOCK>(before);
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0)
        *total = static_cast<long long>(next) + counts[blockIdx.x];

    const unsigned begin = blockIdx.x * part;
    const unsigned end = min(begin + part, size);
    for (unsigned tile = begin; tile < end; tile += BLOCK * ITEMS) {
        const unsigned first = tile + warp * 32 * ITEMS + lane;
        unsigned votes[ITEMS];
        unsigned found = 0;
#pragma unroll
        for (int item = 0; item < ITEMS; ++item) {
            const unsigned index = first + item * 32;
            votes[item] = __ballot_sync(0xffffffffu, index < end && is_set(x[index]));
            found += __popc(votes[item]);
        }
        if (lane == 0)
            in_warp[warp] = found;
        __syncthreads();
        unsigned place = next;
#pragma unroll
        for (int other = 0; other < BLOCK / 32; ++other) {
            place += other < warp ? in_warp[other] : 0;
            next += in_warp[other];
        }
        // All threads must have read the counts before the next tile writes them.
        __syncthreads();

#pragma unroll
        for (int item = 0; item < ITEMS; ++item) {
            if (votes[item] >> lane & 1) {
                unsigned outer = first + item * 32;
                int* const row = indices + static_cast<size_t>(place + __popc(votes[item] & ((1u << lane) - 1))) * rank;
#pragma unroll
                for (int d = 0; d < 8; ++d) {
                    if (d == rank)
                        break;
                    const unsigned high = static_cast<unsigned>(reciprocal[d] >> 32);
                    const unsigned low = static_cast<unsigned>(reciprocal[d]);
                    const unsigned quotient = static_cast<unsigned>(
                        (static_cast<unsigned long long>(outer + 1) * high + __umulhi(outer + 1, low)) >> 31);
                    row[rank - 1 - d] = static_cast<int>(outer - quotient * extent[d]);
                    outer = quotient;
                }
            }
            place += __popc(votes[item]);
        }
    }
}
