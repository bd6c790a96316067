__global__ void reverse(const float* x, float* y, long long count)
{
    extern __shared__ float tile[];
    const long long i = blockIdx.x * 256LL + threadIdx.x;
    tile[threadIdx.x] = i < count ? x[i] : 0.0f;
    __syncthreads();
    if (i < count)
        y[i] = tile[255 - threadIdx.x];
}
