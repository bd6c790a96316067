// @NAME@: y[row] = sum of x[row, :]. Each block adds one row, in single precision and in a fixed order, so equal inputs give equal outputs.
// `manifest::BLOCK` is a constant of the manifest.

template <typename T>
__global__ void __launch_bounds__(manifest::BLOCK)
@NAME@_kernel(const T* x, T* y, long long columns)
{
    static_assert(manifest::BLOCK % 32 == 0, "BLOCK must be a multiple of 32: a block consists of whole warps");
    __shared__ float warps[manifest::BLOCK / 32];
    const T* const row = x + blockIdx.x * columns;
    float sum = 0.0f;
    for (long long column = threadIdx.x; column < columns; column += manifest::BLOCK)
        sum += static_cast<float>(row[column]);
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.0f;
        for (const float warp : warps)
            total += warp;
        y[blockIdx.x] = static_cast<T>(total);
    }
}
