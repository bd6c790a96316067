// @NAME@: the elements of x above a threshold, in order, and their number.
//
// Each block has a part of x. The first kernel counts the selected elements of each part. The second adds the counts of earlier parts to
// find where its part is written, so the result does not depend on the order in which blocks run. `manifest::BLOCK` is a constant of the
// manifest.

template <typename T>
__device__ bool is_selected(const T* x, long long index, long long end, float threshold)
{
    return index < end && static_cast<float>(x[index]) > threshold;
}

template <typename T>
__global__ void __launch_bounds__(manifest::BLOCK)
@NAME@_count(const T* x, int* counts, long long size, long long part, float threshold)
{
    const long long begin = blockIdx.x * part;
    const long long end = min(begin + part, size);
    int count = 0;
    for (long long tile = begin; tile < end; tile += manifest::BLOCK)
        count += __syncthreads_count(is_selected(x, tile + threadIdx.x, end, threshold));
    if (threadIdx.x == 0)
        counts[blockIdx.x] = count;
}

template <typename T>
__global__ void __launch_bounds__(manifest::BLOCK)
@NAME@_write(const T* x, const int* counts, T* y, long long* count, long long size, long long part, float threshold)
{
    static_assert(manifest::BLOCK % 32 == 0, "BLOCK must be a multiple of 32: a block consists of whole warps");
    __shared__ int warps[manifest::BLOCK / 32];
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    const long long begin = blockIdx.x * part;
    const long long end = min(begin + part, size);

    long long next = 0;
    for (unsigned earlier = 0; earlier < blockIdx.x; ++earlier)
        next += counts[earlier];
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0)
        *count = next + counts[blockIdx.x];

    for (long long tile = begin; tile < end; tile += manifest::BLOCK) {
        const long long index = tile + threadIdx.x;
        const bool selected = is_selected(x, index, end, threshold);
        const unsigned votes = __ballot_sync(0xffffffff, selected);
        if (lane == 0)
            warps[warp] = __popc(votes);
        __syncthreads();
        long long place = next + __popc(votes & ((1u << lane) - 1));
        for (unsigned other = 0; other < manifest::BLOCK / 32; ++other) {
            place += other < warp ? warps[other] : 0;
            next += warps[other];
        }
        if (selected)
            y[place] = x[index];
        // All threads must have read `warps` before the next tile writes it.
        __syncthreads();
    }
}
