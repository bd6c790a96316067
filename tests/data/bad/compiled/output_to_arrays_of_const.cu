__global__ void scale(const float* x, const float (*y)[1], long long count)
{
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < count; i += gridDim.x * 256LL)
        const_cast<float&>(y[i][0]) = 2 * x[i];
}
