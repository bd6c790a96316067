__constant__ float weights[4];
__constant__ float known[2] = {0.5f, 2.0f};
struct Scale
{
    float factor = 2.0f;
};
namespace ops {
__constant__ Scale scale;
__constant__ unsigned int shift;
}

__device__ float weighted(float x, int i)
{
    return x * weights[i];
}

__global__ void direct(const float* x, float* y, long long count)
{
    const long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i < count)
        y[i] = x[i] * ops::scale.factor * known[i % 2] + ops::shift;
}

__global__ void through(const float* x, float* y, long long count)
{
    const long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i < count)
        y[i] = weighted(x[i], i % 4);
}

__global__ void right(const float* x, float* y, long long count)
{
    const long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i < count)
        y[i] = x[i] * known[i % 2] * ops::scale.factor;
}
