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

__global__ void shifted(const float* x, float* __restrict__ y, const float* before, float* sums, long long count)
{
    if (threadIdx.x < count) {
        y[threadIdx.x] = x[threadIdx.x] + before[threadIdx.x + 1];
        sums[threadIdx.x] = before[threadIdx.x];
    }
}

__global__ void summed(const float* x, float* y, float* __restrict__ sums, float* all, long long count)
{
    if (threadIdx.x < count) {
        all[0] = 0;
        sums[threadIdx.x] = x[threadIdx.x];
        y[threadIdx.x] = all[0];
    }
}
