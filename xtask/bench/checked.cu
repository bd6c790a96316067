template <typename T, int VEC>
__global__ void PLUGIN(const T* x, T* y, long long count)
{
    const long long index = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * VEC;
    for (int i = 0; i < VEC; ++i)
        if (index + i < count)
            y[index + i] = x[index + i] + static_cast<T>(1);
}
