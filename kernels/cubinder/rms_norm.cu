// Root mean square normalization: each row is divided by the root of the mean of its squares, and multiplied by a weight for each column.
//
// Sums are of single precision, whatever the elements are. With `RESIDUAL` a second tensor is added first; the sum is rounded to the
// elements' type, written, and that is what is normalized, as where two operators do it.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "programmatic.cuh"

/// What a thread reads and writes at once: 16 bytes.
template <typename T>
struct alignas(16) Piece
{
    static constexpr int SIZE = 16 / sizeof(T);
    T element[SIZE];
};

/// The sum of one number of each of the `LANES` threads that share a row, for each of them. `LANES` is a power of two, and a block has `ROWS`
/// rows.
template <int LANES, int ROWS>
__device__ __forceinline__ float sum_of_row(float value)
{
#pragma unroll
    for (int step = (LANES < 32 ? LANES : 32) / 2; step > 0; step /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, step);
    if constexpr (LANES > 32) {
        __shared__ float sums[ROWS * LANES / 32];
        if (threadIdx.x % 32 == 0)
            sums[threadIdx.x / 32] = value;
        __syncthreads();
        value = 0.0f;
#pragma unroll
        for (int i = 0; i < LANES / 32; ++i)
            value += sums[threadIdx.x / LANES * (LANES / 32) + i];
    }
    return value;
}

/// What an element comes to before it is normalized.
template <typename T, bool RESIDUAL>
__device__ __forceinline__ T added(T x, T residual)
{
    if constexpr (RESIDUAL)
        return static_cast<T>(static_cast<float>(x) + static_cast<float>(residual));
    else
        return x;
}

/// `LANES` threads keep a row in registers, `PIECES` pieces of 16 bytes each; a block has `ROWS` rows. `width` counts elements and is a
/// multiple of those of a piece. `EARLY` weights
/// are read before the sum is known: nobody waits for the memory twice, and each thread needs registers for them.
template <typename T, int LANES, int ROWS, int PIECES, bool EARLY, bool RESIDUAL>
__device__ __forceinline__ void normalize_pieces(const T* __restrict__ x, const T* __restrict__ residual, const T* __restrict__ weight,
                                                 T* __restrict__ y, T* __restrict__ sum, float epsilon, long long rows, int width)
{
    constexpr int SIZE = Piece<T>::SIZE;
    const int lane = threadIdx.x % LANES;
    const long long row = static_cast<long long>(blockIdx.x) * ROWS + threadIdx.x / LANES;
    const int pieces = row < rows ? width / SIZE : 0;
    const long long first = row * (width / SIZE);

    Piece<T> held[PIECES];
    Piece<T> scale[PIECES];
    float squares = 0.0f;
    wait_for_earlier();
#pragma unroll
    for (int i = 0; i < PIECES; ++i) {
        const int at = lane + i * LANES;
        if (at < pieces) {
            if constexpr (EARLY)
                scale[i] = reinterpret_cast<const Piece<T>*>(weight)[at];
            held[i] = reinterpret_cast<const Piece<T>*>(x)[first + at];
            if constexpr (RESIDUAL) {
                const Piece<T> more = reinterpret_cast<const Piece<T>*>(residual)[first + at];
#pragma unroll
                for (int e = 0; e < SIZE; ++e)
                    held[i].element[e] = added<T, RESIDUAL>(held[i].element[e], more.element[e]);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < PIECES; ++i) {
        if (lane + i * LANES < pieces) {
#pragma unroll
            for (int e = 0; e < SIZE; ++e) {
                const float value = static_cast<float>(held[i].element[e]);
                squares += value * value;
            }
        }
    }
    const float factor = rsqrtf(sum_of_row<LANES, ROWS>(squares) / static_cast<float>(width) + epsilon);
#pragma unroll
    for (int i = 0; i < PIECES; ++i) {
        const int at = lane + i * LANES;
        if (at < pieces) {
            if constexpr (!EARLY)
                scale[i] = reinterpret_cast<const Piece<T>*>(weight)[at];
            Piece<T> result;
#pragma unroll
            for (int e = 0; e < SIZE; ++e) {
                const float value = static_cast<float>(held[i].element[e]) * factor;
                result.element[e] = static_cast<T>(value * static_cast<float>(scale[i].element[e]));
            }
            reinterpret_cast<Piece<T>*>(y)[first + at] = result;
            if constexpr (RESIDUAL)
                reinterpret_cast<Piece<T>*>(sum)[first + at] = held[i];
        }
    }
}

/// A block of `LANES` threads reads a row of any width at any address twice.
template <typename T, int LANES, bool RESIDUAL>
__device__ __forceinline__ void normalize_elements(const T* __restrict__ x, const T* __restrict__ residual, const T* __restrict__ weight,
                                                   T* __restrict__ y, T* __restrict__ sum, float epsilon, int width)
{
    const long long first = static_cast<long long>(blockIdx.x) * width;
    float squares = 0.0f;
    wait_for_earlier();
    for (unsigned at = threadIdx.x; at < static_cast<unsigned>(width); at += LANES) {
        const T value = added<T, RESIDUAL>(x[first + at], RESIDUAL ? residual[first + at] : x[first + at]);
        if constexpr (RESIDUAL)
            sum[first + at] = value;
        squares += static_cast<float>(value) * static_cast<float>(value);
    }
    const float factor = rsqrtf(sum_of_row<LANES, 1>(squares) / static_cast<float>(width) + epsilon);
    for (unsigned at = threadIdx.x; at < static_cast<unsigned>(width); at += LANES) {
        // Each thread reads what it has written itself.
        const T value = RESIDUAL ? sum[first + at] : x[first + at];
        y[first + at] = static_cast<T>(static_cast<float>(value) * factor * static_cast<float>(weight[at]));
    }
}

template <typename T, int LANES, int ROWS, int PIECES, bool EARLY>
__global__ void __launch_bounds__(LANES * ROWS)
    rms_norm(const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ y, float epsilon, long long rows, int width)
{
    if constexpr (PIECES > 0)
        normalize_pieces<T, LANES, ROWS, PIECES, EARLY, false>(x, nullptr, weight, y, nullptr, epsilon, rows, width);
    else
        normalize_elements<T, LANES, false>(x, nullptr, weight, y, nullptr, epsilon, width);
}

template <typename T, int LANES, int ROWS, int PIECES, bool EARLY>
__global__ void __launch_bounds__(LANES * ROWS)
    add_rms_norm(const T* __restrict__ x, const T* __restrict__ residual, const T* __restrict__ weight, T* __restrict__ y,
                 T* __restrict__ sum, float epsilon, long long rows, int width)
{
    if constexpr (PIECES > 0)
        normalize_pieces<T, LANES, ROWS, PIECES, EARLY, true>(x, residual, weight, y, sum, epsilon, rows, width);
    else
        normalize_elements<T, LANES, true>(x, residual, weight, y, sum, epsilon, width);
}
