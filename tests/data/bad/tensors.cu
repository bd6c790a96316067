__global__ void copy(const float* x, float* y, long long count)
{
    for (long long i = 0; i < count; ++i)
        y[i] = x[i];
}

__global__ void counted(const float* x, float* y, long long count, long long* total)
{
    *total = 0;
    for (long long i = 0; i < count; ++i)
        if (x[i] != 0)
            y[(*total)++] = x[i];
}

__global__ void sized(const float* x, float* y, int* total)
{
    *total = 1;
    y[0] = x[0];
}

__global__ void moved(const void* x, void* y, long long count)
{
    for (long long i = 0; i < count; ++i)
        static_cast<short*>(y)[i] = static_cast<const short*>(x)[i];
}
