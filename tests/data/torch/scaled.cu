extern "C" __global__ void scale_f32(float const* x, float* y, float factor, int count)
{
    int const i = static_cast<int>(blockIdx.x) * 256 + static_cast<int>(threadIdx.x);
    if (i < count)
        y[i] = x[i] * factor;
}
