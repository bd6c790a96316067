// Multi-scale deformable attention: each query sums up what it samples at a few places of a few feature maps.
//
// A place is a number from 0 to 1 along width and height, where 0 is the left edge of the first pixel and 1 the right edge of the last one. What is
// sampled is interpolated between the four pixels around it; pixels beyond the map are zero. Arithmetic is of single precision.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/// `SIZE` elements side by side, moved at once.
template <typename T, int SIZE>
struct alignas(sizeof(T) * SIZE) Piece
{
    T element[SIZE];
};

/// Adds `factor` times the pixel's channels.
template <typename T, int SIZE>
__device__ __forceinline__ void add_pixel(float (&sum)[SIZE], const T* __restrict__ pixel, float factor)
{
    const Piece<T, SIZE> value = *reinterpret_cast<const Piece<T, SIZE>*>(pixel);
#pragma unroll
    for (int e = 0; e < SIZE; ++e)
        sum[e] += factor * static_cast<float>(value.element[e]);
}

/// One thread computes `SIZE` channels of one head of one query. `extents` are height and width of each level, and `starts` where its pixels begin
/// among the `pixels` of all levels.
template <typename T, typename I, int SIZE>
__global__ void multiscale_deformable_attention(const T* __restrict__ value, const I* __restrict__ extents, const I* __restrict__ starts,
                                                const T* __restrict__ locations, const T* __restrict__ weights, T* __restrict__ y,
                                                long long pieces, int pixels, int queries, int heads, int channels, int levels, int points)
{
    const long long piece = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (piece >= pieces)
        return;
    const int of_head = channels / SIZE;
    const long long row = piece / of_head;
    const int channel = static_cast<int>(piece - row * of_head) * SIZE;
    const int head = static_cast<int>(row % heads);
    const long long image = row / heads / queries;
    const int stride = heads * channels;
    const T* const pixels_of_head = value + (image * pixels * heads + head) * channels + channel;
    const T* location = locations + row * levels * points * 2;
    const T* weight = weights + row * levels * points;

    float sum[SIZE] = {};
    for (int level = 0; level < levels; ++level) {
        const int height = static_cast<int>(extents[2 * level]);
        const int width = static_cast<int>(extents[2 * level + 1]);
        const long long start = starts[level];
        const T* const map = pixels_of_head + start * stride;
        // A level that is not among the pixels samples nothing: no memory of others is read.
        const bool is_there = height > 0 && width > 0 && start >= 0 && start + static_cast<long long>(height) * width <= pixels;
        for (int point = 0; point < points; ++point, location += 2, ++weight) {
            const float x = static_cast<float>(location[0]) * static_cast<float>(width) - 0.5f;
            const float y = static_cast<float>(location[1]) * static_cast<float>(height) - 0.5f;
            // Not a number is nowhere.
            const bool is_near = x > -1.0f && y > -1.0f && x < static_cast<float>(width) && y < static_cast<float>(height);
            if (!is_there || !is_near)
                continue;
            const float factor = static_cast<float>(*weight);
            const float left = floorf(x), top = floorf(y);
            const int column = static_cast<int>(left), line = static_cast<int>(top);
            const float right_part = x - left, lower_part = y - top;
            const float left_part = 1.0f - right_part, upper_part = 1.0f - lower_part;
            const T* const corner = map + (static_cast<long long>(line) * width + column) * stride;
            const long long down = static_cast<long long>(width) * stride;
            const bool has_left = column >= 0, has_right = column + 1 < width;
            if (line >= 0) {
                if (has_left)
                    add_pixel<T, SIZE>(sum, corner, factor * upper_part * left_part);
                if (has_right)
                    add_pixel<T, SIZE>(sum, corner + stride, factor * upper_part * right_part);
            }
            if (line + 1 < height) {
                if (has_left)
                    add_pixel<T, SIZE>(sum, corner + down, factor * lower_part * left_part);
                if (has_right)
                    add_pixel<T, SIZE>(sum, corner + down + stride, factor * lower_part * right_part);
            }
        }
    }
    Piece<T, SIZE> result;
#pragma unroll
    for (int e = 0; e < SIZE; ++e)
        result.element[e] = static_cast<T>(sum[e]);
    *reinterpret_cast<Piece<T, SIZE>*>(y + piece * SIZE) = result;
}
