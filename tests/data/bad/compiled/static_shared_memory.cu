__global__ void scale(const float* x, float* y, long long count)
{
    __shared__ float tile[16384];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = tile[255 - threadIdx.x];
}
