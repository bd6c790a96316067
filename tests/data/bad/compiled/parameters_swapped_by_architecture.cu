#if __CUDA_ARCH__ >= 900
#define COUNTS int rows, int columns
#else
#define COUNTS int columns, int rows
#endif

__global__ void scale(const float* x, float* y, COUNTS)
{
    const int count = rows * columns;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256)
        y[i] = 2 * x[i] + rows;
}
