// Kernels that work in place, for the plugins beside this file.

/// Moves every element of `x` towards `end`.
__global__ void lerp(float* x, const float* end, float weight, long long count)
{
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < count)
        x[index] += weight * (end[index] - x[index]);
}

/// The same for a kernel that gets the memory twice: `from` and `to` are one tensor.
__global__ void lerp_both(const float* from, float* to, const float* end, float weight, long long count)
{
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < count)
        to[index] = from[index] + weight * (end[index] - from[index]);
}

/// `VEC` elements a thread, at addresses that vectors of so many need.
template <int VEC>
__global__ void lerp_vectors(float* x, const float* end, float weight, long long count)
{
    struct alignas(4 * VEC) vector {
        float at[VEC];
    };
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= count / VEC)
        return;
    vector all = reinterpret_cast<vector*>(x)[index];
    for (int i = 0; i < VEC; ++i)
        all.at[i] += weight * (end[VEC * index + i] - all.at[i]);
    reinterpret_cast<vector*>(x)[index] = all;
}

/// Doubles what another step has left in `x`.
__global__ void doubled(const float* x, float* z, long long count)
{
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < count)
        z[index] = 2 * x[index];
}

/// Moves each of two tensors towards the other.
__global__ void approach(float* one, float* other, float weight, long long count)
{
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < count) {
        const float difference = other[index] - one[index];
        one[index] += weight * difference;
        other[index] -= weight * difference;
    }
}
