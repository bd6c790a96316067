template <typename... T>
__global__ void scale(const float* x, float* y, T... more)
{
    y[threadIdx.x] = x[threadIdx.x];
}
