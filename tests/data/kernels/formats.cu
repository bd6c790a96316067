// What formats.toml launches.

template <typename T, typename Sum, cubinder::format F, int Vec>
__global__ void layouts(const T* x, const __half* volume, const void* weights, T* y, long long channels,
                        int padded, long long bytes)
{
    static_assert(F == manifest::F, "");
    static_assert(cubinder::vector(F) % Vec == 0 && cubinder::padded(cubinder::format::cdhw32, 33) == 64, "");
    static_assert(cubinder::offset(cubinder::format::chw4, 1, 5, 2, 6, 10) == 8 * 10 + 4 * 10 + 2 * 4 + 1, "");
    static_assert(cubinder::offset(cubinder::format::hwc8, 1, 5, 2, 6, 10) == 12 * 8 + 5, "");
    static_assert(cubinder::offset(cubinder::format::linear, 1, 5, 2, 6, 10) == 11 * 10 + 2, "");
    extern __shared__ int staged[];
    if (threadIdx.x == 0)
        staged[0] = static_cast<int>(channels);
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < bytes / static_cast<long long>(sizeof(T))) {
        const long long at = cubinder::offset(manifest::G, 0LL, i % channels, i / channels, channels, 64LL);
        const Sum sum = static_cast<Sum>(static_cast<float>(x[i])) + static_cast<Sum>(static_cast<float>(volume[padded]));
        y[at] = static_cast<T>(static_cast<float>(sum + static_cast<const Sum*>(weights)[0]));
    }
}
