__global__ void scale(const float* x, float* y, double* parts, double* total, long long count)
{
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < count; i += gridDim.x * 256LL) {
        parts[i] = 2.0 * x[i];
        y[i] = parts[i];
        total[0] = parts[i];
    }
}
