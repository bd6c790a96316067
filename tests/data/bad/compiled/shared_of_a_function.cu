// Shared memory that is as large as the launch says, used by a function.
extern __shared__ float sums[];

__device__ float sum(float value)
{
    sums[threadIdx.x] = value;
    __syncthreads();
    float all = 0.0f;
    for (int i = 0; i < 256; ++i)
        all += sums[i];
    return all;
}

__global__ void total(const float* x, float* y, long long count)
{
    const long long i = blockIdx.x * 256LL + threadIdx.x;
    const float all = sum(i < count ? x[i] : 0.0f);
    if (i < count)
        y[i] = all;
}
