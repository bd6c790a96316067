#if __CUDA_ARCH__ >= 890
#define COUNT long long count
#else
#define COUNT int count
#endif

__global__ void scale(const float* x, float* y, COUNT)
{
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < count; i += gridDim.x * 256LL)
        y[i] = 2 * x[i];
}
