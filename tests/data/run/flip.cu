// What flip.toml launches.

template <typename T>
__global__ void flip(const T* x, T* y, int count)
{
    const int i = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
    if (i < count)
        y[i] = x[count - 1 - i];
}
