__global__ void scale(const float* x, float* y, long long count)
{
    float a[200];
#pragma unroll
    for (int i = 0; i < 200; i++) a[i] = x[threadIdx.x + i];
    for (int n = 0; n < count; n++) {
#pragma unroll
        for (int i = 0; i < 200; i++) a[i] = a[i] * a[(i * 7 + 3) % 200] + y[n];
    }
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 200; i++) sum += a[i];
    y[threadIdx.x] = sum;
}
