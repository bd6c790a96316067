// What constraints.toml launches. Both headers come from the folders that the manifest names.
#include <beside.cuh>
#include <shared.cuh>

template <typename T, int VEC>
__global__ void constraints(const T* x, const float* z, T* y, cubinder::array<long long, 4> integers,
                            cubinder::array<double, 4> floats, bool wraps, cubinder::array<int, 16> bytes,
                            cubinder::array<int, 3> axes, double scales, int modes)
{
    const long long first = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * VEC;
    for (int i = 0; i < VEC; i++)
        if (first + i < integers[3]) {
            const float shift = static_cast<float>(floats[i % 4] * scales) + bytes[i % 16] + axes[0] + modes;
            y[first + i] = wraps ? x[first + i] : static_cast<T>(softened(z[0]) + halved(shift));
        }
}
