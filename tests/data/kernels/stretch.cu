// The nearest element of x for each of y.
template <bool COPIES>
__global__ void stretch(
    const float* x, float* y, long long rows, long long columns, cubinder::array<long long, 2> extents)
{
    const long long width = extents[1];
    const long long height = extents[0];
    const long long column = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long row = blockIdx.y;
    if (column < width && row < height)
        y[row * width + column] = COPIES ? x[row * width + column] : x[row * rows / height * columns + column * columns / width];
}
