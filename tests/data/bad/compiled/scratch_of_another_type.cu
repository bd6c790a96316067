template <typename T>
__global__ void scale(const T* x, T* y, float* parts, long long count)
{
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < count; i += gridDim.x * 256LL) {
        parts[i] = 2.0f * float(x[i]);
        y[i] = T(parts[i]);
    }
}
