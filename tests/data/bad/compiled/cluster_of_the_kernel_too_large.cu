__global__ void __cluster_dims__(4, 4, 1) scale(const float* x, float* y, long long count)
{
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < count; i += gridDim.x * 256LL)
        y[i] = 2 * x[i];
}
