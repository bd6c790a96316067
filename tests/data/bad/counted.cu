// The kernel of manifests that are about numbers of nodes: nothing is wrong with it.
__global__ void counted(const float* x, float* y, float n)
{
    const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    y[i] = x[i] * n;
}
