template <typename T>
__global__ void tables(const T* x, T* y, long long count)
{
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < count; i += step) {
        float sum = static_cast<float>(x[i]) * manifest::window[i % manifest::window.size()];
        const double* wide = manifest::wide;
        sum += static_cast<float>(wide[i % 4]);
        sum += static_cast<float>(manifest::half[i % 3]) + static_cast<float>(manifest::brain[i % 2]);
        sum += manifest::bytes[i % 2] + manifest::shorts[i % manifest::shorts.size()];
        sum += manifest::order[i % 4] + manifest::large[i % 2] + manifest::mask[i % 2];
        sum += manifest::noise[i % manifest::noise.size()] + manifest::masked[i % 4];
        sum += static_cast<float>(manifest::unmasked[i % 2]);
        y[i] = static_cast<T>(manifest::odd[i % 8] ? -sum : sum);
    }
}
