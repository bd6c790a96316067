// The kernels of tests/data/ok/code.toml. README.md beside this says which compiler made the files of code from it.
#include <cuda_fp16.h>

extern "C" __global__ void scale_f32_4(const float4* x, float4* y, float factor, int count)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count / 4) {
        const float4 v = x[i];
        y[i] = make_float4(v.x * factor, v.y * factor, v.z * factor, v.w * factor);
    }
}

extern "C" __global__ void scale_f16_4(const __half2* x, __half2* y, float factor, int count)
{
    const int i = (blockIdx.x * 256 + threadIdx.x) * 2;
    if (i < count / 2) {
        y[i] = __hmul2(x[i], __float2half2_rn(factor));
        y[i + 1] = __hmul2(x[i + 1], __float2half2_rn(factor));
    }
}

extern "C" __global__ void scale_f32_1(const float* x, float* y, float factor, int count)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count)
        y[i] = x[i] * factor;
}

extern "C" __global__ void scale_f16_1(const __half* x, __half* y, float factor, int count)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count)
        y[i] = __float2half(__half2float(x[i]) * factor);
}
