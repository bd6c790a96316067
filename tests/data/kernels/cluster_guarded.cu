// Sums of pairs of elements, with clusters where the GPU has them.
#include <cooperative_groups.h>

// Each cluster of two blocks adds what both have read. Without clusters each block reads what two would.
template <bool WIDE>
__global__ void exchange_anywhere(const float* x, float* y, int count)
{
    if constexpr (!WIDE) {
        const int i = 2 * blockIdx.x * manifest::BLOCK + threadIdx.x;
        const int j = i + manifest::BLOCK;
        const float sum = (i < count ? x[i] : 0.0f) + (j < count ? x[j] : 0.0f);
        if (i < count)
            y[i] = sum;
        if (j < count)
            y[j] = sum;
    } else {
#if __CUDA_ARCH__ >= 900
        __shared__ float own[manifest::BLOCK];
        const auto cluster = cooperative_groups::this_cluster();
        const int i = blockIdx.x * manifest::BLOCK + threadIdx.x;
        own[threadIdx.x] = i < count ? x[i] : 0.0f;
        cluster.sync();
        const float* other = cluster.map_shared_rank(own, cluster.block_rank() ^ 1);
        if (i < count)
            y[i] = own[threadIdx.x] + other[threadIdx.x];
        cluster.sync();
#endif
    }
}
