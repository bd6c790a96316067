// Circular padding: the trailing dimensions of a tensor are extended by wrapping around.

/// One thread writes one element of `y`.
///
/// Dimensions are counted from the last one: extent 0 is that of the innermost dimension. Only the `padded` innermost
/// dimensions differ between `x` and `y`; all dimensions before them are one, and are never taken apart.
/// `shift[d]` is the coordinate in `x` of coordinate 0 of `y`.
template <typename T>
__global__ void circ_pad(const T* __restrict__ x, T* __restrict__ y, unsigned count, int padded,
                         cubinder::array<unsigned, 8> in_extent, cubinder::array<unsigned, 8> out_extent,
                         cubinder::array<unsigned, 8> shift)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count)
        return;
    unsigned outer = index; // what is left of the index once the inner coordinates are taken off
    unsigned from = 0;
    unsigned stride = 1;
#pragma unroll
    for (int d = 0; d < 8; ++d) {
        if (d == padded)
            break;
        const unsigned next = outer / out_extent[d];
        const unsigned coordinate = outer - next * out_extent[d];
        from += (coordinate + shift[d]) % in_extent[d] * stride;
        stride *= in_extent[d];
        outer = next;
    }
    y[index] = x[outer * stride + from];
}
