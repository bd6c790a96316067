// Adds a number to every element, in place.

/// `x` and `y` are one tensor: each thread reads what it is about to write. The sum is computed in single precision. Channels that a format
/// adds for the sake of its vectors may be changed, too: nobody reads them.
template <typename T>
__global__ void elemwise_add_inplace(const T* x, T* y, float delta, long long count)
{
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < count)
        y[index] = static_cast<T>(static_cast<float>(x[index]) + delta);
}
