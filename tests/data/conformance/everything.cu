// The kernels of `everything_plugin`.

/// Doubles x in place, counts its elements into `total`, which is 0 before, and leaves a trace of every fourth in `partial`.
template <typename T, int VEC, cubinder::format FORMAT>
__global__ void collect(T* x, unsigned* __restrict__ partial, unsigned long long* total, long long count)
{
    const long long first = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * VEC;
    for (long long index = first; index < first + VEC && index < count; ++index)
    {
        x[index] = static_cast<T>(2.0f * static_cast<float>(x[index]));
        if (index % 4 == 0)
            partial[index / 4] = FORMAT == cubinder::format::linear;
        atomicAdd(total, 1ull);
    }
}

/// The size is the number of elements; their indices are left alone.
__global__ void report(const unsigned long long* total, long long* count, int* indices)
{
    if (threadIdx.x == 0)
    {
        *count = static_cast<long long>(*total);
        indices[0] = 0;
    }
}

template <typename T>
__global__ void settle(const T* __restrict__ w, T* __restrict__ z, long long columns, int level)
{
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < columns)
        z[index] = static_cast<T>(static_cast<float>(w[0]) + static_cast<float>(level));
}
