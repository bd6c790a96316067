__global__ void scale(const float* x, float* y, long long count)
{
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < count; i += gridDim.x * 256LL)
        y[i] = 2 * x[i];
}

__global__ void scale(const float* x, float* y, int count)
{
    y[0] = x[count];
}
