// Scales every element and writes it twice, with more parameters than that takes.

/// The threads of a block form `VEC` rows; together they write 128 elements of `y`. Blocks beyond the first in y do nothing.
template <typename T, int VEC>
__global__ void tiles(const T* __restrict__ x, T* __restrict__ y, long long count, float scale,
                      cubinder::array<unsigned, 4> extent, bool wide)
{
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    const long long index = static_cast<long long>(blockIdx.x) * 128 + thread;
    if (index >= count || blockIdx.y != 0 || (wide && extent[0] == 0))
        return;
    y[index] = static_cast<T>(static_cast<float>(x[index / 2]) * scale);
}
