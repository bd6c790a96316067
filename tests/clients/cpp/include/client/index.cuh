#pragma once

__device__ inline long long index_of_thread()
{
    return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}
