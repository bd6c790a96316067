// What specialized.toml launches.

template <int Size>
__global__ void window_sum(const float* x, float* y, int columns, float scale)
{
    static_assert(Size == manifest::kernel_size, "one value");
    extern __shared__ float staged[];
    staged[threadIdx.x % Size] = 0.0f;
    for (int i = static_cast<int>(threadIdx.x) * manifest::VEC; i < columns; i += 64 * Size) {
        float sum = staged[0];
        for (int k = 0; k < Size; ++k)
            sum += x[blockIdx.x * (columns + Size - 1) + (manifest::reversed ? columns - 1 - i : i) + k];
        y[blockIdx.x * columns + i] = sum * scale;
    }
}
