// @NAME@: y = x * factor, VEC elements a thread. The manifest launches it only where VEC divides their number and the addresses
// are aligned. `manifest::BLOCK` is the manifest's constant.

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
