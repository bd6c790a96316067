// What every_key.toml launches: a parameter of each kind that a manifest can pass.

namespace ops {

template <typename T>
__host__ __device__ constexpr T smaller(T a, T b)
{
    return a < b ? a : b;
}

template <typename T, typename B, int VEC, bool BIG, bool CHECKED, int STEP>
__global__ void scale(const T* x, const B* bias, const bool* mask, T* y, int* count, long long n,
                      cubinder::array<int, 4> in_shape, double epsilon, cubinder::array<float, 4> weights,
                      cubinder::array<int, 4> axes, bool wraps, bool fast, signed char rank, unsigned char one, float half,
                      bool yes)
{
    const long long index = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (index == 0)
        *count = in_shape[0] + axes[0] + rank + one + STEP + VEC;
    if (index >= n || blockIdx.y + blockIdx.z + threadIdx.y > 0)
        return;
    const float scaled = static_cast<float>(x[index % in_shape[0]]) * weights[index % 4] * half + static_cast<float>(epsilon);
    const bool shifts = mask[0] && (fast || yes) && (wraps || BIG || CHECKED);
    y[index] = static_cast<T>(shifts ? scaled + static_cast<float>(bias[0]) : scaled);
}

} // namespace ops
