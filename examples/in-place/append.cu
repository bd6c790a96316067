template <typename T>
__global__ void append(const T* rows, const int* position, T* cache, long long count, long long columns,
                       long long capacity)
{
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    const long long row = *position + i / columns;
    if (row >= 0 && row < capacity)
        cache[row * columns + i % columns] = rows[i];
}
