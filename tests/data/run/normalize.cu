// Divides every element by the largest: all blocks look for it, wait for each other, and divide.
#include <cooperative_groups.h>

__global__ void normalize(const float* x, float* y, long long count, unsigned* most)
{
    const long long first = blockIdx.x * static_cast<long long>(manifest::BLOCK) + threadIdx.x;
    const long long step = gridDim.x * static_cast<long long>(manifest::BLOCK);
    // The bits of floats that are not negative are in the order of the floats.
    for (long long i = first; i < count; i += step)
        atomicMax(most, __float_as_uint(fabsf(x[i])));
    cooperative_groups::this_grid().sync();
    const float largest = __uint_as_float(*most);
    for (long long i = first; i < count; i += step)
        y[i] = largest > 0 ? x[i] / largest : 0.0f;
}
