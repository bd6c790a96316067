// What small_types.toml launches.

template <typename T>
__global__ void weigh(const T* x, const cubinder::i4x2* weights, T* y, int count, int pairs)
{
    const int i = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
    if (i < count) {
        const cubinder::i4x2 pair = weights[i / 2 % pairs];
        y[i] = static_cast<T>(static_cast<float>(x[i]) * static_cast<float>(i % 2 == 0 ? pair.low() : pair.high()));
    }
}
