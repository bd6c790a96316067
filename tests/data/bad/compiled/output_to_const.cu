__global__ void scale(const float* x, const float* y, long long count)
{
    y[threadIdx.x] = x[threadIdx.x];
}
