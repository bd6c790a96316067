// Each block turns one row around.
__global__ void reverse(const float* x, float* y, int width)
{
    extern __shared__ float row[];
    const long long start = static_cast<long long>(blockIdx.x) * width;
    for (int i = threadIdx.x; i < width; i += manifest::BLOCK)
        row[i] = x[start + i];
    __syncthreads();
    for (int i = threadIdx.x; i < width; i += manifest::BLOCK)
        y[start + i] = row[width - 1 - i];
}
