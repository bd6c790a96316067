__global__ void scale(const float* x, float* y, unsigned axis)
{
    y[threadIdx.x] = axis * x[threadIdx.x];
}
