// The coordinates of the elements that are not zero, in row-major order, in two passes over the input.
//
// The input is cut into as many parts as there are blocks, of whole tiles each. The first pass counts the elements that are not zero in each
// part. In the second every block adds up the counts of the parts before its own, so it knows where its coordinates go; the order is that
// of the elements, whatever the order in which blocks run.

#include <cuda_fp16.h>

/// Whether a number is not zero, by its bits: NaN is not zero, -0.0 is, and the least numbers are not flushed.
__device__ __forceinline__ bool is_set(float value)
{
    return (__float_as_uint(value) & 0x7fffffffu) != 0;
}

__device__ __forceinline__ bool is_set(__half value)
{
    return (__half_as_ushort(value) & 0x7fffu) != 0;
}

/// The sum of one number of each thread of the block, for every thread. `BLOCK` is a multiple of 32.
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
    // Nobody may write the sums of the next call before everybody has read these.
    __syncthreads();
    return sum;
}

/// Counts what is not zero in each part of `x`. Part number `b` has the elements from `b * part` on, `part` of them or as many as there are.
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

/// Writes the coordinates, `rank` numbers an element, and how many elements there are. `part` is a multiple of `BLOCK * ITEMS`, or no less
/// than `size`.
///
/// A tile is `BLOCK * ITEMS` elements, a warp has `32 * ITEMS` neighbours among them. Coordinates are found by multiplication: see
/// `circ_pad.cu` for `reciprocal = (2^63 - 1) / extent`. Extents are counted from the last one.
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
        // Nobody may write the counts of the next tile before everybody has read these.
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
