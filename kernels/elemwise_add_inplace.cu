// Adds a number to every element, in place.

/// `x` and `y` are one tensor: each thread reads the element that it writes. Adds in single precision. May
/// change a format's padding channels, which are never read.
template <typename T>
__global__ void elemwise_add_inplace(const T* x, T* y, float delta, long long count)
{
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < count)
        y[index] = static_cast<T>(static_cast<float>(x[index]) + delta);
}
