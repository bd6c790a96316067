__global__ void twice(const float* x, float* y, int rows, int columns)
{
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && column < columns)
        y[static_cast<long long>(row) * columns + column] = 2.0f * x[static_cast<long long>(row) * columns + column];
}

__global__ void images(const float* x, float* y, int rows, int columns)
{
    const long long image = blockIdx.z;
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < columns)
        y[(image * rows + blockIdx.y) * columns + column] = 2.0f * x[(image * rows + blockIdx.y) * columns + column];
}
