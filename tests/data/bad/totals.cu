#include <cooperative_groups.h>

__global__ void direct(const float* x, float* y, float* total, long long count)
{
    float sum = 0;
    for (long long i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256)
        sum += x[i];
    atomicAdd(total, sum);
    cooperative_groups::this_grid().sync();
    for (long long i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256)
        y[i] = x[i] / *total;
}

namespace cg = cooperative_groups;

__global__ void named(const float* x, float* y, float* total, long long count)
{
    cg::grid_group grid = cg::this_grid();
    for (long long i = grid.thread_rank(); i < count; i += grid.size())
        atomicAdd(total, x[i]);
    grid.sync();
    for (long long i = grid.thread_rank(); i < count; i += grid.size())
        y[i] = x[i] / *total;
}

__global__ void histogram(const int* x, int* bins, long long count)
{
    for (long long i = blockIdx.x * 256 + threadIdx.x; i < count; i += 128 * 256)
        atomicAdd(&bins[x[i] & 255], 1);
}
