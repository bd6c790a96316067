#include <client/index.cuh>

__global__ void scale(const float* x, float* y, long long count, float factor)
{
    const long long i = index_of_thread();
    if (i < count)
        y[i] = x[i] * factor;
}
