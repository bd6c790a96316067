// What weigh.toml launches.

/// A thread for each column, a block in y for each row. Columns beyond the `count` weights begin with the first again.
template <typename T>
__global__ void weigh(const T* x, const cubinder::i4x2* weights, T* y, int columns, int count)
{
    const int column = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
    if (column >= columns)
        return;
    const int which = column % count;
    const cubinder::i4x2 pair = weights[which / 2];
    const long long i = static_cast<long long>(blockIdx.y) * columns + column;
    y[i] = static_cast<T>(static_cast<float>(x[i]) * static_cast<float>(which % 2 == 0 ? pair.low() : pair.high()));
}
