extern "C" __global__ void __launch_bounds__(128) turn(const int* x, int* y)
{
    extern __shared__ int tile[];
    tile[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    y[blockIdx.x * blockDim.x + threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
