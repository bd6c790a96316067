// The kernel of most manifests here: nothing is wrong with it.
template <typename T>
__global__ void scale(const T* x, T* y, float factor, long long count)
{
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < count; i += step)
        y[i] = static_cast<T>(static_cast<float>(x[i]) * factor);
}
