// One array by value is larger than all parameters may be.
__global__ void scale(const float* x, float* y, long long count,
                      cubinder::array<long long, 4096> table)
{
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < count; i += gridDim.x * 256LL)
        y[i] = 2 * x[i];
}
