// Kernels that manifests here use in a wrong way.

namespace ops {

// In a namespace, with a template of its own kinds of parameters.
template <typename T, int VEC>
__global__ void add(const T* x, const T* bias, T* y, long long count)
{
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < count * VEC; i += gridDim.x * 256LL)
        y[i] = x[i] + bias[i % VEC];
}

}  // namespace ops

// Writes to its input.
__global__ void normalize(float* x, float* y, long long count)
{
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < count; i += gridDim.x * 256LL)
        y[i] = x[i] *= 0.5f;
}

// The last parameter has no name.
__global__ void unnamed(const float* x, float* y, int)
{
    y[threadIdx.x] = x[threadIdx.x];
}

// Only the last one has a name.
__global__ void nameless(const float*, float*, long long count)
{
}

// Whole numbers, and an array by value.
__global__ void gather(const float* x, float* y, int axis, cubinder::array<int, 4> extent)
{
    y[threadIdx.x] = x[extent[axis]];
}
