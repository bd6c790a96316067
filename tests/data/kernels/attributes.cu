// What attributes.toml launches: everything that the node says ends in the sum.
__global__ void attributes(const float* x, float* y, long long count, long long integer, long long integers, float single,
                           cubinder::array<float, 3> singles, cubinder::array<bool, 5> flags)
{
    double sum = integer + static_cast<double>(integers) + single;
    for (int i = 0; i < 3; i++)
        sum += singles[i];
    for (int i = 0; i < 5; i++)
        sum += flags[i];
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
        y[i] = x[i] + static_cast<float>(sum);
}
