void scale(const float* x, float* y, long long count)
{
    y[threadIdx.x] = x[threadIdx.x];
}
