// Every element plus the number of elements and `level`.

/// Counts the elements into `total`, which is 0 before.
template <typename T>
__global__ void count(const T* __restrict__ x, unsigned* __restrict__ partial, unsigned long long* total, long long count)
{
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= count)
        return;
    if (index % 4 == 0)
        partial[index / 4] = static_cast<float>(x[index]) == 0.0f;
    atomicAdd(total, 1ull);
}

template <typename T>
__global__ void finish(const T* __restrict__ x, T* __restrict__ y, const unsigned long long* total, long long count, int level)
{
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; index < count; index += stride)
        y[index] = static_cast<T>(static_cast<float>(x[index]) + static_cast<float>(*total) + static_cast<float>(level));
}

/// For at most as many elements as the block has threads.
template <typename T>
__global__ void at_once(const T* __restrict__ x, T* __restrict__ y, long long count, int level)
{
    if (threadIdx.x < count)
        y[threadIdx.x] = static_cast<T>(static_cast<float>(x[threadIdx.x]) + static_cast<float>(count + level));
}
