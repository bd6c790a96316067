__global__ void cross(const float* a, const float* b, float* c, long long vectors)
{
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= vectors)
        return;
    a += 3 * i;
    b += 3 * i;
    c += 3 * i;
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}
