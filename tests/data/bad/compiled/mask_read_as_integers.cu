__global__ void scale(const int* x, float* y, long long count)
{
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < count; i += gridDim.x * 256LL)
        y[i] = x[i] ? 1.0f : 0.0f;
}
