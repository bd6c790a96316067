// What output_type.toml launches.
template <typename U>
__global__ void cast(const float* x, U* y)
{
    const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    y[i] = static_cast<U>(x[i]);
}
