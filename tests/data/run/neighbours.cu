// Two kernels of which the second begins before the first has ended.
__global__ void square(const float* x, float* squares, long long count)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
    const long long i = blockIdx.x * static_cast<long long>(manifest::BLOCK) + threadIdx.x;
    if (i < count)
        squares[i] = x[i] * x[i];
}

__global__ void add_neighbour(const float* squares, float* y, long long count)
{
    const long long i = blockIdx.x * static_cast<long long>(manifest::BLOCK) + threadIdx.x;
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    if (i < count)
        y[i] = squares[i] + squares[i + 1 < count ? i + 1 : 0];
}
