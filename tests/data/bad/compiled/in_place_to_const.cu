__global__ void scale(const float* x, long long count)
{
    if (threadIdx.x < count)
        __threadfence();
}
