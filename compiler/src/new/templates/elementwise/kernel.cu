// @NAME@: y = x * factor, VEC elements per thread. The manifest launches it only if VEC divides the number of elements and the addresses
// are aligned. `manifest::BLOCK` is a constant of the manifest.

template <typename T, int VEC>
struct alignas(sizeof(T) * VEC) Vector {
    T lanes[VEC];
};

template <typename T, int VEC>
__global__ void __launch_bounds__(manifest::BLOCK)
@NAME@_kernel(const T* x, T* y, long long vectors, float factor)
{
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= vectors)
        return;
    Vector<T, VEC> vector = reinterpret_cast<const Vector<T, VEC>*>(x)[index];
    for (T& lane : vector.lanes)
        lane = static_cast<T>(static_cast<float>(lane) * factor);
    reinterpret_cast<Vector<T, VEC>*>(y)[index] = vector;
}
