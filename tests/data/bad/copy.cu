// The kernel of manifests that are about attributes: nothing is wrong with it.
__global__ void copy(const float* x, float* y)
{
    const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    y[i] = x[i];
}
