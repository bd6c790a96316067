__global__ void commented(const float* x, float* y, long long count)
{
    // No griddepcontrol.wait here yet.
    for (long long i = blockIdx.x * 256 + threadIdx.x; i < count; i += 128 * 256)
        y[i] = 2 * x[i];
}
