// Copyright of the Cubinder authors; Apache-2.0.
//
// Circular padding of up to 8 dimensions, float32, one thread per output element. `Geometry` must match `driver.hpp`.

struct Geometry
{
    unsigned count;   // elements of the output
    unsigned rank;    // dimensions after merging leading unpadded ones
    unsigned in[8];   // extents, innermost first
    unsigned out[8];
    unsigned shift[8]; // added to an output coordinate before the modulo by `in`
};

extern "C" __global__ void __launch_bounds__(256) circ_pad(const float* __restrict__ x, float* __restrict__ y, const Geometry g)
{
    unsigned const i = blockIdx.x * 256u + threadIdx.x;
    if (i >= g.count)
    {
        return;
    }
    unsigned rest = i;
    unsigned source = 0;
    unsigned stride = 1;
#pragma unroll
    for (unsigned d = 0; d < 8; ++d)
    {
        if (d < g.rank)
        {
            unsigned const quotient = rest / g.out[d];
            unsigned const coordinate = rest - quotient * g.out[d];
            rest = quotient;
            source += (coordinate + g.shift[d]) % g.in[d] * stride;
            stride *= g.in[d];
        }
    }
    y[i] = x[source];
}
