// Kernels for manifests of several steps.
__global__ void square(const float* x, float* squares, long long count) {}
__global__ void shift(const float* squares, float* y, long long count) {}
__global__ void scale(const float* x, float* y, long long count) {}
