// In a folder of headers: `include = ["../include"]`.
__device__ inline float halved(float value)
{
    return value * 0.5f;
}
