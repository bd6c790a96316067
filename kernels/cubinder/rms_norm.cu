// Root mean square normalization: each row is divided by the root of the mean of its squares, and multiplied
// by a weight per column.
//
// Sums have single precision. With `RESIDUAL` a second tensor is added first; the sum is rounded to the
// elements' type, written and normalized, as two operators would do.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "programmatic.cuh"

/// The unit of reads and writes: 16 bytes.
template <typename T>
struct alignas(16) Piece
{
    static constexpr int SIZE = 16 / sizeof(T);
    unsigned word[4];
};

/// Converts four bytes of elements to and from `float`.
template <typename T>
struct Word;

template <>
struct Word<float>
{
    static constexpr int SIZE = 1;

    static __device__ __forceinline__ void unpack(float (&values)[1], unsigned word) { values[0] = __uint_as_float(word); }

    static __device__ __forceinline__ unsigned packed(const float (&values)[1]) { return __float_as_uint(values[0]); }
};

template <>
struct Word<__half>
{
    static constexpr int SIZE = 2;

    static __device__ __forceinline__ void unpack(float (&values)[2], unsigned word)
    {
        const float2 pair = __half22float2(*reinterpret_cast<const __half2*>(&word));
        values[0] = pair.x;
        values[1] = pair.y;
    }

    static __device__ __forceinline__ unsigned packed(const float (&values)[2])
    {
        const __half2 pair = __floats2half2_rn(values[0], values[1]);
        return *reinterpret_cast<const unsigned*>(&pair);
    }
};

template <>
struct Word<__nv_bfloat16>
{
    static constexpr int SIZE = 2;

    /// An element is the upper half of a `float`.
    static __device__ __forceinline__ void unpack(float (&values)[2], unsigned word)
    {
        values[0] = __uint_as_float(word << 16);
        values[1] = __uint_as_float(word & 0xffff0000u);
    }

    static __device__ __forceinline__ unsigned packed(const float (&values)[2])
    {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(values[0], values[1]);
        return *reinterpret_cast<const unsigned*>(&pair);
    }
};

/// Reads a piece, or returns zeros, without a branch. Threads wait for the data only when they use them.
template <typename T>
__device__ __forceinline__ Piece<T> read_where(bool is_there, const Piece<T>* place)
{
    Piece<T> piece;
    asm volatile("{\n"
                 "    .reg .pred there;\n"
                 "    setp.ne.u32 there, %5, 0;\n"
                 "    mov.b32 %0, 0;\n"
                 "    mov.b32 %1, 0;\n"
                 "    mov.b32 %2, 0;\n"
                 "    mov.b32 %3, 0;\n"
                 "    @there ld.global.v4.b32 {%0, %1, %2, %3}, [%4];\n"
                 "}"
                 : "=&r"(piece.word[0]), "=&r"(piece.word[1]), "=&r"(piece.word[2]), "=&r"(piece.word[3])
                 : "l"(place), "r"(static_cast<unsigned>(is_there)));
    return piece;
}

template <typename T>
__device__ __forceinline__ void write(Piece<T>* place, const Piece<T>& piece)
{
    *reinterpret_cast<uint4*>(place) = *reinterpret_cast<const uint4*>(piece.word);
}

/// Returns the sum over the `LANES` threads of a row, to each of them. `LANES` is a power of two; a block has
/// `ROWS` rows.
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
        constexpr int WARPS = LANES / 32;
        const float* const parts = sums + threadIdx.x / LANES * WARPS;
        if constexpr (WARPS > 8) {
            // Reading all parts would use too many registers.
            value = parts[threadIdx.x % WARPS];
#pragma unroll
            for (int step = WARPS / 2; step > 0; step /= 2)
                value += __shfl_xor_sync(0xffffffffu, value, step);
        } else {
            float part[WARPS];
#pragma unroll
            for (int i = 0; i < WARPS; ++i)
                part[i] = parts[i];
            // In pairs, to shorten dependencies.
#pragma unroll
            for (int step = WARPS / 2; step > 0; step /= 2)
#pragma unroll
                for (int i = 0; i < step; ++i)
                    part[i] += part[i + step];
            value = part[0];
        }
    }
    return value;
}

/// Returns the element to normalize.
template <typename T, bool RESIDUAL>
__device__ __forceinline__ T added(T x, T residual)
{
    if constexpr (RESIDUAL)
        return static_cast<T>(static_cast<float>(x) + static_cast<float>(residual));
    else
        return x;
}

/// Reads the weights of a thread's pieces, of which `left` are in the row.
template <typename T, int LANES, int PIECES>
__device__ __forceinline__ void read_weights(Piece<T> (&scale)[PIECES], const Piece<T>* __restrict__ weights, unsigned left)
{
#pragma unroll
    for (int i = 0; i < PIECES; ++i)
        scale[i] = read_where(i * LANES < left, weights + i * LANES);
}

/// `LANES` threads keep a row in registers, `PIECES` pieces each; a block has `ROWS` rows. `width` counts
/// elements and is a multiple of a piece's. `EARLY` weights are read before the sum is known: this waits for
/// memory once, but needs registers.
template <typename T, int LANES, int ROWS, int PIECES, bool EARLY, bool RESIDUAL>
__device__ __forceinline__ void normalize_pieces(const T* __restrict__ x, const T* __restrict__ residual, const T* __restrict__ weight,
                                                 T* __restrict__ y, T* __restrict__ sum, float epsilon, unsigned rows, unsigned width)
{
    constexpr int SIZE = Piece<T>::SIZE;
    const unsigned lane = threadIdx.x % LANES;
    const unsigned row = blockIdx.x * ROWS + threadIdx.x / LANES;
    const unsigned pieces = width / SIZE;
    const unsigned long long first = static_cast<unsigned long long>(row) * pieces + lane;
    // The row's pieces from this thread's first one on.
    const unsigned left = row < rows && lane < pieces ? pieces - lane : 0;
    const float share = __fdividef(1.0f, static_cast<float>(width));
    const Piece<T>* const from = reinterpret_cast<const Piece<T>*>(x) + first;
    const Piece<T>* const more = RESIDUAL ? reinterpret_cast<const Piece<T>*>(residual) + first : nullptr;
    const Piece<T>* const weights = reinterpret_cast<const Piece<T>*>(weight) + lane;
    Piece<T>* const to = reinterpret_cast<Piece<T>*>(y) + first;
    Piece<T>* const kept = RESIDUAL ? reinterpret_cast<Piece<T>*>(sum) + first : nullptr;
    // In large grids, blocks of the next kernel would unbalance the multiprocessors, more so if weights are
    // read late.
    const bool is_small = gridDim.x <= (EARLY ? 512 : 256);
    if constexpr (RESIDUAL)
        wait_for_earlier(left, share, from, more, weights, to, kept, is_small);
    else
        wait_for_earlier(left, share, from, weights, to, is_small);

    using Words = Word<T>;
    Piece<T> held[PIECES];
    Piece<T> scale[PIECES];
#pragma unroll
    for (int i = 0; i < PIECES; ++i)
        held[i] = read_where(i * LANES < left, from + i * LANES);
    if constexpr (RESIDUAL) {
        Piece<T> others_of[PIECES];
#pragma unroll
        for (int i = 0; i < PIECES; ++i)
            others_of[i] = read_where(i * LANES < left, more + i * LANES);
        if constexpr (EARLY)
            read_weights<T, LANES, PIECES>(scale, weights, left);
#pragma unroll
        for (int i = 0; i < PIECES; ++i) {
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                float values[Words::SIZE], others[Words::SIZE];
                Words::unpack(values, held[i].word[w]);
                Words::unpack(others, others_of[i].word[w]);
#pragma unroll
                for (int e = 0; e < Words::SIZE; ++e)
                    values[e] += others[e];
                held[i].word[w] = Words::packed(values);
            }
            if (i * LANES < left)
                write(kept + i * LANES, held[i]);
        }
    } else if constexpr (EARLY) {
        read_weights<T, LANES, PIECES>(scale, weights, left);
    }

    if (is_small)
        let_later_begin();
    // Pieces past the row are zero. Four independent sums.
    float squares[4] = {};
#pragma unroll
    for (int i = 0; i < PIECES; ++i) {
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            float values[Words::SIZE];
            Words::unpack(values, held[i].word[w]);
#pragma unroll
            for (int e = 0; e < Words::SIZE; ++e)
                squares[w] += values[e] * values[e];
        }
    }
    const float total = sum_of_row<LANES, ROWS>((squares[0] + squares[1]) + (squares[2] + squares[3]));
    const float factor = rsqrtf(total * share + epsilon);
    if constexpr (!EARLY)
        read_weights<T, LANES, PIECES>(scale, weights, left);
#pragma unroll
    for (int i = 0; i < PIECES; ++i) {
        Piece<T> result;
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            float values[Words::SIZE], weights_of[Words::SIZE];
            Words::unpack(values, held[i].word[w]);
            Words::unpack(weights_of, scale[i].word[w]);
#pragma unroll
            for (int e = 0; e < Words::SIZE; ++e)
                values[e] = values[e] * factor * weights_of[e];
            result.word[w] = Words::packed(values);
        }
        if (i * LANES < left)
            write(to + i * LANES, result);
    }
}

/// A block of `LANES` threads reads a row twice, of any width at any address.
template <typename T, int LANES, bool RESIDUAL>
__device__ __forceinline__ void normalize_elements(const T* __restrict__ x, const T* __restrict__ residual, const T* __restrict__ weight,
                                                   T* __restrict__ y, T* __restrict__ sum, float epsilon, int width)
{
    const long long first = static_cast<long long>(blockIdx.x) * width;
    float squares = 0.0f;
    if constexpr (RESIDUAL)
        wait_for_earlier(x, residual, weight);
    else
        wait_for_earlier(x, weight);
    for (unsigned at = threadIdx.x; at < static_cast<unsigned>(width); at += LANES) {
        const T value = added<T, RESIDUAL>(x[first + at], RESIDUAL ? residual[first + at] : x[first + at]);
        if constexpr (RESIDUAL)
            sum[first + at] = value;
        squares += static_cast<float>(value) * static_cast<float>(value);
    }
    const float factor = rsqrtf(sum_of_row<LANES, 1>(squares) / static_cast<float>(width) + epsilon);
    for (unsigned at = threadIdx.x; at < static_cast<unsigned>(width); at += LANES) {
        // Each thread reads its own writes.
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
