// Rotary position embedding: rotates pairs of elements of each head by an angle that depends on the position.
//
// A row is one head at one sequence index. Its first `rotated` elements are rotated, the others copied. Element
// `i` is paired with element `i + rotated / 2` or, if interleaved, with its neighbor. Computes in single
// precision.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "programmatic.cuh"

/// `SIZE` adjacent elements, moved at once.
template <typename T, int SIZE>
struct alignas(sizeof(T) * SIZE) Piece
{
    T element[SIZE];
};

/// Returns the tables' row for a position, clamped so that no other memory is read.
template <typename P>
__device__ __forceinline__ unsigned position_of(P position, unsigned last)
{
    return position < 0 ? 0 : position < last ? static_cast<unsigned>(position) : last;
}

/// Rotates a pair by an angle with this cosine and sine.
template <typename T>
__device__ __forceinline__ void turn(T& first, T& second, T cosine, T sine)
{
    const float a = static_cast<float>(first), b = static_cast<float>(second);
    const float c = static_cast<float>(cosine), s = static_cast<float>(sine);
    first = static_cast<T>(a * c - b * s);
    second = static_cast<T>(a * s + b * c);
}

/// A thread rotates `SIZE` pairs, or copies `SIZE` elements. The pairs are in two pieces of `SIZE` elements, half
/// of `rotated` apart: first and second elements or, if interleaved, whole pairs; a single pair is contiguous.
/// Threads of a block: x in a row, y for rows.
template <typename T, typename P, int SIZE, bool INTERLEAVED>
__global__ void rotary_embedding(const T* __restrict__ x, const T* __restrict__ cos, const T* __restrict__ sin,
                                 const P* __restrict__ positions, T* __restrict__ y, unsigned rows, unsigned heads, unsigned places,
                                 unsigned width, unsigned rotated, int known)
{
    let_later_begin_after(blockDim.y * width * 2 * sizeof(T));
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
        wait_for_earlier(from, to, at);
        *reinterpret_cast<Elements*>(to + at) = *reinterpret_cast<const Elements*>(from + at);
        return;
    }

    // A row has a batch, a head and a sequence index.
    const unsigned outer = row / places;
    const unsigned place = row - outer * places;
    const P* const asked = positions + static_cast<long long>(outer / heads) * places + place;
    const unsigned row_bytes = pairs * sizeof(T);
    const unsigned last = known - 1;
    constexpr bool IS_ONE = INTERLEAVED && SIZE == 1;
    // Offsets of the two pieces, and of their angles in the tables.
    const unsigned first_at = IS_ONE ? 2 * item : item, second_at = IS_ONE ? 2 * item + 1 : item + pairs;
    using Angles = Piece<T, (INTERLEAVED && SIZE > 1) ? SIZE / 2 : SIZE>;
    const unsigned first_angle = INTERLEAVED ? first_at / 2 : item, second_angle = INTERLEAVED ? second_at / 2 : item;
    const char* const cosines = reinterpret_cast<const char*>(cos + first_angle);
    const char* const sines = reinterpret_cast<const char*>(sin + first_angle);
    wait_for_earlier(from, to, first_at, second_at, asked, row_bytes, cosines, sines, last);

    const P position = *asked;
    // Elements load while the position does.
    Elements first = *reinterpret_cast<const Elements*>(from + first_at);
    Elements second = *reinterpret_cast<const Elements*>(from + second_at);
    const unsigned long long row_of_tables = static_cast<unsigned long long>(position_of(position, last)) * row_bytes;
    const auto angles = [&](const char* table, unsigned at) {
        return *reinterpret_cast<const Angles*>(table + row_of_tables + (at - first_angle) * sizeof(T));
    };
    const Angles c = angles(cosines, first_angle), s = angles(sines, first_angle);
    if constexpr (INTERLEAVED && SIZE > 1) {
        const Angles d = angles(cosines, second_angle), t = angles(sines, second_angle);
#pragma unroll
        for (int e = 0; e < SIZE / 2; ++e) {
            turn(first.element[2 * e], first.element[2 * e + 1], c.element[e], s.element[e]);
            turn(second.element[2 * e], second.element[2 * e + 1], d.element[e], t.element[e]);
        }
    } else {
#pragma unroll
        for (int e = 0; e < SIZE; ++e)
            turn(first.element[e], second.element[e], c.element[e], s.element[e]);
    }
    *reinterpret_cast<Elements*>(to + first_at) = first;
    *reinterpret_cast<Elements*>(to + second_at) = second;
}
