// Multi-scale deformable attention: each query sums samples at a few locations of a few feature maps.
//
// Locations are from 0, the left edge of the first pixel, to 1, the right edge of the last, along width and height.
// Samples are interpolated between four pixels; pixels outside of the map are zero. Computes in single precision.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/// `SIZE` adjacent elements, moved at once.
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

/// Divides; several times faster for numbers of 32 bits, as nearly all are.
__device__ __forceinline__ long long quotient(long long number, int divisor)
{
    if (number >> 32 == 0)
        return static_cast<unsigned>(number) / static_cast<unsigned>(divisor);
    return number / divisor;
}

/// The pixels of one level for a thread's channels, `stride` elements apart.
template <typename T>
struct Map
{
    const T* pixels;
    int height, width, stride;
};

/// Adds `factor` times the map's value at a location. NaN is outside.
template <typename T, int SIZE>
__device__ __forceinline__ void add_sample(float (&sum)[SIZE], const Map<T>& map, float along_width, float along_height, float factor)
{
    const float x = along_width * static_cast<float>(map.width) - 0.5f;
    const float y = along_height * static_cast<float>(map.height) - 0.5f;
    const bool is_near = x > -1.0f && y > -1.0f && x < static_cast<float>(map.width) && y < static_cast<float>(map.height);
    if (!is_near)
        return;
    const float left = floorf(x), top = floorf(y);
    const int column = static_cast<int>(left), line = static_cast<int>(top);
    const float right_part = x - left, lower_part = y - top;
    const float left_part = 1.0f - right_part, upper_part = 1.0f - lower_part;
    const T* const corner = map.pixels + (static_cast<long long>(line) * map.width + column) * map.stride;
    const long long down = static_cast<long long>(map.width) * map.stride;
    const bool has_left = column >= 0, has_right = column + 1 < map.width, has_upper = line >= 0, has_lower = line + 1 < map.height;
    if (has_upper && has_left)
        add_pixel<T, SIZE>(sum, corner, factor * upper_part * left_part);
    if (has_upper && has_right)
        add_pixel<T, SIZE>(sum, corner + map.stride, factor * upper_part * right_part);
    if (has_lower && has_left)
        add_pixel<T, SIZE>(sum, corner + down, factor * lower_part * left_part);
    if (has_lower && has_right)
        add_pixel<T, SIZE>(sum, corner + down + map.stride, factor * lower_part * right_part);
}

/// `SIZE` elements, moved in units of up to 16 bytes.
template <typename T, int SIZE>
struct alignas(sizeof(T) * SIZE < 16 ? sizeof(T) * SIZE : 16) Row
{
    T element[SIZE];
};

/// `SPLIT` threads, in one warp if several, compute `SIZE` channels of one head of one query, each from some of the
/// points. With `POINTS` (points per level, or 0), a level's locations and weights are read at once. `rows` counts
/// heads of queries. `extents` are height and width of each level, `starts` its first pixel among the `pixels` of all
/// levels.
template <typename T, typename I, int SIZE, int SPLIT, int POINTS>
__global__ void multiscale_deformable_attention(const T* __restrict__ value, const I* __restrict__ extents, const I* __restrict__ starts,
                                                const T* __restrict__ locations, const T* __restrict__ weights, T* __restrict__ y,
                                                long long rows, int pixels, int queries, int heads, int channels, int levels, int points)
{
    static_assert(POINTS == 0 || SPLIT == 1, "points that are read together are not shared out");
    const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int of_head = channels / SIZE;
    const long long asked = quotient(thread, of_head * SPLIT);
    // The warp needs threads past the rows; they repeat the last row.
    if (SPLIT == 1 && asked >= rows)
        return;
    const long long row = asked < rows ? asked : rows - 1;
    const int within = static_cast<int>(thread - asked * (of_head * SPLIT));
    const int part = SPLIT > 1 ? within / of_head : 0;
    const int channel = (within - part * of_head) * SIZE;
    const long long query = quotient(row, heads);
    const int head = static_cast<int>(row - query * heads);
    const int stride = heads * channels;
    const T* const pixels_of_head = value + (quotient(query, queries) * pixels * heads + head) * channels + channel;
    const T* location = locations + row * levels * points * 2;
    const T* weight = weights + row * levels * points;

    float sum[SIZE] = {};
    for (int level = 0; level < levels; ++level, location += 2 * points, weight += points) {
        const long long height = extents[2 * level], width = extents[2 * level + 1], start = starts[level];
        // Skips levels outside of the pixels, so that no other memory is read. Nothing overflows before this check.
        const bool has_extents = height > 0 && width > 0 && height <= pixels && width <= pixels;
        const bool is_there = has_extents && start >= 0 && start <= pixels - height * width;
        if (!is_there)
            continue;
        const Map<T> map = {pixels_of_head + start * stride, static_cast<int>(height), static_cast<int>(width), stride};
        if constexpr (POINTS > 0) {
            const Row<T, 2 * POINTS> places = *reinterpret_cast<const Row<T, 2 * POINTS>*>(location);
            const Row<T, POINTS> factors = *reinterpret_cast<const Row<T, POINTS>*>(weight);
#pragma unroll
            for (int point = 0; point < POINTS; ++point)
                add_sample<T, SIZE>(sum, map, static_cast<float>(places.element[2 * point]), static_cast<float>(places.element[2 * point + 1]),
                                    static_cast<float>(factors.element[point]));
        } else {
            for (int point = part; point < points; point += SPLIT)
                add_sample<T, SIZE>(sum, map, static_cast<float>(location[2 * point]), static_cast<float>(location[2 * point + 1]),
                                    static_cast<float>(weight[point]));
        }
    }
    if constexpr (SPLIT > 1) {
        for (int step = of_head; step < of_head * SPLIT; step *= 2) {
#pragma unroll
            for (int e = 0; e < SIZE; ++e)
                sum[e] += __shfl_xor_sync(0xffffffffu, sum[e], step);
        }
        if (part != 0 || asked >= rows)
            return;
    }
    Piece<T, SIZE> result;
#pragma unroll
    for (int e = 0; e < SIZE; ++e)
        result.element[e] = static_cast<T>(sum[e]);
    *reinterpret_cast<Piece<T, SIZE>*>(y + row * channels + channel) = result;
}
