// Kernels with planted faults, for what `cubinder test` must find. `fault` says which; 0 is right.

template <int VEC>
__global__ void planted(const float* x, float* y, long long count, int fault)
{
    const long long first = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * VEC;
    if (first >= count)
        return;
    if (VEC == 4 && fault == 7) {
        // Addresses that are multiples of 8 do not suit it.
        const float4 four = *reinterpret_cast<const float4*>(x + first);
        *reinterpret_cast<float4*>(y + first) = make_float4(2 * four.x, 2 * four.y, 2 * four.z, 2 * four.w);
        return;
    }
    for (long long i = first; i < first + VEC && i < count; ++i) {
        const bool last = i == count - 1;
        if (fault == 2 && last)
            continue;
        const float before = y[i];
        y[i] = 2 * x[i] + (fault == 3 && i == count / 2 ? 1 : 0) + (fault == 5 && last && before > 0 ? 1 : 0)
            + ((fault == 11 || fault == 12) && VEC == 4 && i == 0 ? 1 : 0)
            + (fault == 13 && last ? (before > 0 ? 1.6f : 0.8f) : 0);
        if (fault == 12 && VEC == 4)
            printf("%f ", x[i]);
        if (fault == 14 && VEC == 4)
            __trap();
        if (fault == 1 && last)
            y[count] = 0;
        if (fault == 4 && i == 0)
            const_cast<float*>(x)[0] = 7;
        if (fault == 6 && i == 0)
            *reinterpret_cast<volatile int*>(16) = 1;
        if (fault == 8 && i == 0)
            y[-1] = 0;
    }
}

// In place.
__global__ void doubled(float* x, long long count)
{
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count)
        x[i] *= 2;
}

// What is above 0, in order; one thread, because the order counts.
__global__ void positive(const float* x, float* y, int* size, long long count, int fault)
{
    if (threadIdx.x != 0 || blockIdx.x != 0)
        return;
    for (long long i = 0; i < count; ++i)
        if (x[i] > 0)
            y[(*size)++] = x[i];
    if (fault == 1)
        *size = static_cast<int>(count) + 1;
}
