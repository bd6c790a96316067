// Adds a number to every element, in two kernels.

template <typename T, int CLUSTER>
__global__ void copied(const T* __restrict__ x, T* __restrict__ copy, int* ready, long long count)
{
    const long long index = static_cast<long long>(blockIdx.x) * 64 + threadIdx.x;
    if (index < count)
        copy[index] = x[index];
    if (index == 0)
        *ready = CLUSTER;
}

template <typename T>
__global__ void biased(const T* __restrict__ x, const T* __restrict__ copy, const int* __restrict__ ready,
                       T* __restrict__ y, long long count, int bias)
{
    const bool is_copied = count > 64 && *ready != 0;
    const long long step = static_cast<long long>(gridDim.x) * 64;
    for (long long index = static_cast<long long>(blockIdx.x) * 64 + threadIdx.x; index < count; index += step)
        y[index] = static_cast<T>(static_cast<float>(is_copied ? copy[index] : x[index]) + static_cast<float>(bias));
}

template <typename T>
__global__ void finished(T* __restrict__ y)
{
    y[0] = y[0] + T(0);
}
