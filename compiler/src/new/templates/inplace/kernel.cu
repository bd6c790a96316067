// @NAME@: y += delta, in single precision. `y` is the memory of the manifest's input and output. `manifest::BLOCK` is a constant of the
// manifest.

template <typename T>
__global__ void __launch_bounds__(manifest::BLOCK)
@NAME@_kernel(T* y, long long count, float delta)
{
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < count)
        y[index] = static_cast<T>(static_cast<float>(y[index]) + delta);
}
