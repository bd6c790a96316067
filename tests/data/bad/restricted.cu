__global__ void both(const float* __restrict__ x, float* __restrict__ y, long long count)
{
    if (threadIdx.x < count)
        y[threadIdx.x] = x[threadIdx.x + 1];
}

template <typename T>
__global__ void one(const T* __restrict__ x, T* y, long long count)
{
    if (threadIdx.x < count)
        y[threadIdx.x] = x[threadIdx.x + 1];
}
