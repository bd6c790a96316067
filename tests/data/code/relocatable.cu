extern "C" __device__ int helper(int);
extern "C" __global__ void k(int* p, int n) { p[threadIdx.x] = helper(n); }
