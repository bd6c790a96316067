template <typename I>
__global__ void literals(const unsigned char* x, signed char* y, long long count, I big)
{
    const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const long long threads = static_cast<long long>(blockDim.x) * blockDim.y * blockDim.z;
    for (long long i = blockIdx.x * threads + thread; i < count; i += gridDim.x * threads)
        y[i] = static_cast<signed char>(x[i] + big);
}
