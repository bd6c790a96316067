// Keeps the last of the elements of whole blocks.
__global__ void last(const float* x, float* y, long long count)
{
    const long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i < count)
        y[0] = x[i];
}
