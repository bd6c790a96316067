template <typename T>
__global__ void swiglu(const T* x, T* y, float limit, long long count, long long columns)
{
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    x += i / columns * 2 * columns + i % columns;
    float gate = x[0];
    float up = x[columns];
    // Unlike `fminf`, this keeps NaN.
    gate = gate > limit ? limit : gate;
    up = up > limit ? limit : up < -limit ? -limit : up;
    y[i] = static_cast<T>(gate / (1.0f + expf(-gate)) * up);
}
