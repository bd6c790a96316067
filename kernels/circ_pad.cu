// Circular padding: extends the trailing dimensions of a tensor by wrapping around.
//
// Dimensions are counted from the innermost, 0. Instead of dividing by an extent `d`, kernels multiply by
// `reciprocal = (2^63 - 1) / d` (rounded down), which the host computes when shapes change: for 0 <= n and 1
// <= d with (n + 1) * d < 2^63, the quotient is ((n + 1) * reciprocal) >> 63.

#include "cubinder/programmatic.cuh"

/// Divides by multiplication; the caller chooses the range.
template <bool NARROW>
struct Divisor;

/// For (n + 1) * d below 2^63.
template <>
struct Divisor<false>
{
    static __device__ __forceinline__ unsigned quotient(unsigned n, unsigned long long reciprocal)
    {
        const unsigned high = static_cast<unsigned>(reciprocal >> 32);
        const unsigned low = static_cast<unsigned>(reciprocal);
        return static_cast<unsigned>((static_cast<unsigned long long>(n + 1) * high + __umulhi(n + 1, low)) >> 31);
    }
};

/// For (n + 1) * d below 2^32: the upper 32 bits of the reciprocal suffice.
template <>
struct Divisor<true>
{
    static __device__ __forceinline__ unsigned quotient(unsigned n, unsigned long long reciprocal)
    {
        return __umulhi(n + 1, static_cast<unsigned>(reciprocal >> 31));
    }
};

/// `VEC` adjacent units, written at once.
template <typename Unit, int VEC>
struct alignas(sizeof(Unit) * VEC) Vector
{
    Unit unit[VEC];
};

/// The unit of moves: an element, or 16 bytes.
template <typename T, int ELEMENTS>
struct Unit
{
    using type = uint4;
    static_assert(sizeof(T) * ELEMENTS == sizeof(uint4), "several elements are moved as 16 bytes");
};

template <typename T>
struct Unit<T, 1>
{
    using type = T;
};

/// A thread writes `VEC` adjacent units of a row of `y`, at `PER` places a block apart; a unit is `ELEMENTS`
/// elements. `count` is the number of units of `y`; innermost extents are in units, too.
///
/// Only the `padded` innermost dimensions, at most `DIMS`, differ between `x` and `y`; outer dimensions are
/// merged. `shift[d]` is the coordinate in `x` of coordinate 0 of `y`. With `NARROW`, products of an index
/// and an extent fit 32 bits.
template <typename T, int DIMS, int VEC, int ELEMENTS, bool NARROW, int PER>
__global__ void circ_pad(const T* __restrict__ x, T* __restrict__ y, unsigned count, int padded,
                         cubinder::array<unsigned, DIMS> in_extent, cubinder::array<unsigned, DIMS> out_extent,
                         cubinder::array<unsigned long long, DIMS> in_reciprocal,
                         cubinder::array<unsigned long long, DIMS> out_reciprocal, cubinder::array<unsigned, DIMS> shift)
{
    let_later_begin_after(blockDim.x * PER * VEC * ELEMENTS * 2 * sizeof(T));
    using Piece = typename Unit<T, ELEMENTS>::type;
    using Divide = Divisor<NARROW>;
    const Piece* const from = reinterpret_cast<const Piece*>(x);
    Vector<Piece, VEC>* const to = reinterpret_cast<Vector<Piece, VEC>*>(y);
    const unsigned first = (blockIdx.x * blockDim.x * PER + threadIdx.x) * VEC;
    if (first >= count)
        return;

    // The position of each unit in `x`.
    unsigned source[PER][VEC];
#pragma unroll
    for (int place = 0; place < PER; ++place) {
        // The row of `y`, and the thread's first column.
        const unsigned index = first + place * blockDim.x * VEC;
        unsigned outer = Divide::quotient(index, out_reciprocal[0]);
        const unsigned column = index - outer * out_extent[0] + shift[0];

        // The row of `x`, from the coordinates of padded dimensions and the rest of `outer`.
        unsigned row = 0;
        unsigned stride = 1;
#pragma unroll
        for (int d = 1; d < DIMS; ++d) {
            // Always handles two dimensions: an unpadded one does no harm.
            if (DIMS > 2 && d >= padded)
                break;
            const unsigned next = Divide::quotient(outer, out_reciprocal[d]);
            const unsigned shifted = outer - next * out_extent[d] + shift[d];
            row += (shifted - Divide::quotient(shifted, in_reciprocal[d]) * in_extent[d]) * stride;
            stride *= in_extent[d];
            outer = next;
        }
        row += outer * stride;
#pragma unroll
        for (int i = 0; i < VEC; ++i) {
            const unsigned shifted = column + i;
            source[place][i] = row * in_extent[0] + shifted - Divide::quotient(shifted, in_reciprocal[0]) * in_extent[0];
        }
    }

    wait_for_earlier(from + source[0][0], to + first / VEC);
    Vector<Piece, VEC> vector[PER];
#pragma unroll
    for (int place = 0; place < PER; ++place)
#pragma unroll
        for (int i = 0; i < VEC; ++i)
            if (first + place * blockDim.x * VEC < count)
                vector[place].unit[i] = from[source[place][i]];
#pragma unroll
    for (int place = 0; place < PER; ++place)
        if (first + place * blockDim.x * VEC < count)
            to[first / VEC + place * blockDim.x] = vector[place];
}
