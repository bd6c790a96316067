#include <cuda_fp16.h>

template <typename T>
__global__ void in_place(T* y, float* state, int count, float delta)
{
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count)
        y[i] = static_cast<T>(static_cast<float>(y[i]) + delta);
    if (i == 0)
        state[0] += 1;
}
