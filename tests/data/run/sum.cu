// The sum of all elements, in one kernel or in two. Blocks have a power of two of threads.

// Adds what the threads of a block have; the first thread gets the sum.
__device__ inline float block_sum(float value)
{
    __shared__ float partial[manifest::BLOCK];
    partial[threadIdx.x] = value;
    for (int width = manifest::BLOCK / 2; width > 0; width /= 2) {
        __syncthreads();
        if (threadIdx.x < width)
            partial[threadIdx.x] += partial[threadIdx.x + width];
    }
    return partial[0];
}

// Each block adds a part of the elements and counts itself.
__global__ void sum_parts(const float* x, long long count, float* partial, unsigned* blocks)
{
    float sum = 0;
    for (long long i = blockIdx.x * static_cast<long long>(manifest::BLOCK) + threadIdx.x; i < count;
         i += gridDim.x * static_cast<long long>(manifest::BLOCK))
        sum += x[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        atomicAdd(blocks, 1u);
    }
}

// One block adds the parts.
__global__ void sum_of_parts(const float* partial, const unsigned* blocks, float* y)
{
    float sum = 0;
    for (unsigned i = threadIdx.x; i < *blocks; i += manifest::BLOCK)
        sum += partial[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        *y = sum;
}

// One block adds all.
__global__ void sum_at_once(const float* x, int count, float* y)
{
    float sum = 0;
    for (int i = threadIdx.x; i < count; i += manifest::BLOCK)
        sum += x[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        *y = sum;
}
