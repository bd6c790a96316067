__global__ void __maxnreg__(64) copy(const float* x, float* y, long long count)
{
    const long long i = blockIdx.x * 128LL + threadIdx.x;
    if (i < count)
        y[i] = x[i];
}
