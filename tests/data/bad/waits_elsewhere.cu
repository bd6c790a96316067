__device__ void wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

__global__ void patient(const float* x, float* y, long long count)
{
    wait();
    for (long long i = blockIdx.x * 256 + threadIdx.x; i < count; i += 128 * 256)
        y[i] = 2 * x[i];
}

__global__ void hasty(const float* x, float* y, long long count)
{
    for (long long i = blockIdx.x * 256 + threadIdx.x; i < count; i += 128 * 256)
        y[i] = 2 * x[i];
}
