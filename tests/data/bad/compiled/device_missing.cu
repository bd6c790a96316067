float twice(float value) { return 2 * value; }

__global__ void scale(const float* x, float* y, long long count)
{
    y[threadIdx.x] = twice(x[threadIdx.x]);
}
