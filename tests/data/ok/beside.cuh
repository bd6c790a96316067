// Beside the manifest: `include = ["."]`. Options such as `--use_fast_math` decide what this becomes.
__device__ inline float softened(float value)
{
    return value / (1.0f + expf(-value));
}
