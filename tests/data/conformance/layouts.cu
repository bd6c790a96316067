/// Copies the elements of a tensor whose channels, with those that fill up its vectors, are `channels`.
template <typename T, int VEC, cubinder::format FORMAT>
__global__ void layouts(const T* __restrict__ x, T* __restrict__ y, long long count, long long channels,
                        int level)
{
    const long long first = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * VEC;
    for (long long index = first; index < first + VEC && index < count; ++index)
        y[index] = FORMAT == cubinder::format::linear || index % channels >= 0 ? x[index] : static_cast<T>(level);
}
