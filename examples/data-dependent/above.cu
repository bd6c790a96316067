// One block handles 1024 elements at a time, so that they stay in order.
__global__ void __launch_bounds__(1024)
above(const float* x, float* y, int* count, float threshold, long long size)
{
    __shared__ int found[32];
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    int next = 0;
    for (long long first = 0; first < size; first += 1024) {
        const long long i = first + threadIdx.x;
        const bool is_above = i < size && x[i] > threshold;
        const unsigned lanes = __ballot_sync(0xffffffff, is_above);
        if (lane == 0)
            found[warp] = __popc(lanes);
        __syncthreads();
        int place = next + __popc(lanes & ((1u << lane) - 1));
        for (int w = 0; w < 32; ++w) {
            place += w < warp ? found[w] : 0;
            next += found[w];
        }
        if (is_above)
            y[place] = x[i];
        __syncthreads();    // `found` is written again
    }
    if (threadIdx.x == 0)
        *count = next;
}
