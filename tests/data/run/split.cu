// What split.toml launches.

/// `b` begins again where it is shorter than `a`.
__global__ void split(const float* a, const float* b, float* sum, float* difference, int count, int count_b)
{
    const int i = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
    if (i < count) {
        sum[i] = a[i] + b[i % count_b];
        difference[i] = a[i] - b[i % count_b];
    }
}
