__global__ void add_one(const float* x, float* y, long long count)
{
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count)
        y[i] = x[i] + 1.0f;
}