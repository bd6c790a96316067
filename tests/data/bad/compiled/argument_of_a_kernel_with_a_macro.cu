#include <cuda_fp16.h>
#define PARAMS const float* x, float* y, long long total
__global__ void scale(PARAMS)
{
    y[threadIdx.x] = x[threadIdx.x];
}
