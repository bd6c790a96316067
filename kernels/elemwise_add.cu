// Adds one to every element.

template <typename T>
__global__ void elemwise_add(const T* __restrict__ x, T* __restrict__ y, long long count)
{
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < count)
        y[index] = x[index] + static_cast<T>(1);
}
