// A loop over the grid: any number of blocks does.
__global__ void copy(const float* x, float* y, long long count)
{
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
        y[i] = x[i];
}
