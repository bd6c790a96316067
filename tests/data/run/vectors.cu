// Adds a number that says which variant ran, with vectors of `VEC` elements: an address that does not suit them is a fault.

template <typename T, int VEC>
struct alignas(sizeof(T) * VEC) Vector
{
    T element[VEC];
};

/// `count` is a multiple of `VEC`.
template <typename T, int VEC, int ID>
__global__ void vectors(const T* __restrict__ x, T* __restrict__ y, long long count, int bias)
{
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index * VEC >= count)
        return;
    Vector<T, VEC> vector = reinterpret_cast<const Vector<T, VEC>*>(x)[index];
    for (int i = 0; i < VEC; ++i)
        vector.element[i] = static_cast<T>(static_cast<float>(vector.element[i]) + static_cast<float>(100 * ID + bias));
    reinterpret_cast<Vector<T, VEC>*>(y)[index] = vector;
}
