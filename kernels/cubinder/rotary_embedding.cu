// Rotary position embedding: pairs of elements of each head are turned by an angle that follows from the position.
//
// A row is one head at one place of the sequence. The first `rotated` elements of it are turned and the others copied. Element `i` is paired with
// element `i + rotated / 2`, or with its neighbour where they are interleaved. Arithmetic is of single precision.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "programmatic.cuh"

/// `SIZE` elements side by side, moved as many at once as `TOGETHER`, at most 16 bytes.
template <typename T, int SIZE, int TOGETHER = SIZE>
struct alignas(sizeof(T) * TOGETHER < 16 ? sizeof(T) * TOGETHER : 16) Piece
{
    T element[SIZE];
};

/// The row of the tables that a place of the sequence uses. A position beyond the tables is that of their end: no memory of others is read.
template <typename P>
__device__ __forceinline__ long long position_of(const P* __restrict__ positions, long long place, int known)
{
    const long long position = positions[place];
    return position < 0 ? 0 : position < known ? position : known - 1;
}

/// One thread turns `SIZE` pairs, or copies `SIZE` elements. Threads of a block: x within a row, y rows.
template <typename T, typename P, int SIZE, bool INTERLEAVED>
__global__ void rotary_embedding(const T* __restrict__ x, const T* __restrict__ cos, const T* __restrict__ sin,
                                 const P* __restrict__ positions, T* __restrict__ y, unsigned rows, unsigned heads, unsigned places,
                                 unsigned width, unsigned rotated, int known)
{
    let_later_begin();
    const unsigned row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows)
        return;
    const unsigned pairs = rotated / 2;
    const unsigned item = threadIdx.x * SIZE;
    using Elements = Piece<T, SIZE>;
    const T* const from = x + static_cast<long long>(row) * width;
    T* const to = y + static_cast<long long>(row) * width;
    if (item >= pairs) {
        const unsigned at = item + pairs;
        if (at >= width)
            return;
        wait_for_earlier();
        *reinterpret_cast<Elements*>(to + at) = *reinterpret_cast<const Elements*>(from + at);
        return;
    }

    // The row is that of a batch, a head and a place.
    const unsigned outer = row / places;
    const unsigned place = row - outer * places;
    const long long asked = static_cast<long long>(outer / heads) * places + place;
    wait_for_earlier();
    const long long position = position_of(positions, asked, known);
    const Elements* const cosines = reinterpret_cast<const Elements*>(cos + position * pairs + item);
    const Elements* const sines = reinterpret_cast<const Elements*>(sin + position * pairs + item);

    // The elements are on their way while the position is.
    if constexpr (INTERLEAVED) {
        // Elements that are moved one by one lie anywhere.
        using Pairs = Piece<T, 2 * SIZE, SIZE == 1 ? 1 : 2 * SIZE>;
        Pairs pair = *reinterpret_cast<const Pairs*>(from + 2 * item);
        const Elements c = *cosines, s = *sines;
#pragma unroll
        for (int e = 0; e < SIZE; ++e) {
            const float first = static_cast<float>(pair.element[2 * e]);
            const float second = static_cast<float>(pair.element[2 * e + 1]);
            const float co = static_cast<float>(c.element[e]);
            const float si = static_cast<float>(s.element[e]);
            pair.element[2 * e] = static_cast<T>(first * co - second * si);
            pair.element[2 * e + 1] = static_cast<T>(first * si + second * co);
        }
        *reinterpret_cast<Pairs*>(to + 2 * item) = pair;
    } else {
        Elements first = *reinterpret_cast<const Elements*>(from + item);
        Elements second = *reinterpret_cast<const Elements*>(from + item + pairs);
        const Elements c = *cosines, s = *sines;
#pragma unroll
        for (int e = 0; e < SIZE; ++e) {
            const float a = static_cast<float>(first.element[e]);
            const float b = static_cast<float>(second.element[e]);
            const float co = static_cast<float>(c.element[e]);
            const float si = static_cast<float>(s.element[e]);
            first.element[e] = static_cast<T>(a * co - b * si);
            second.element[e] = static_cast<T>(a * si + b * co);
        }
        *reinterpret_cast<Elements*>(to + item) = first;
        *reinterpret_cast<Elements*>(to + item + pairs) = second;
    }
}
