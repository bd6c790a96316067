__global__ void scale(const float*, float* y, long long count)
{
    y[threadIdx.x] = x[threadIdx.x];
}
