// Pillars of a point cloud are laid out as an image: the features of each pillar go to its cell, and cells without one are zero.
//
// Two passes. The first finds out which pillar each cell shows: of several the last one, as if they were written in their order. The second
// writes the image from its first element to its last, so that memory is written in whole lines and each element once.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/// `shown` holds -1 everywhere. A pillar whose cell lies beyond the image is left out: models pad their pillars that way.
__global__ void find_pillars(const int* __restrict__ coordinates, int* shown, int pillars, int batch, int height, int width)
{
    const long long pillar = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (pillar >= pillars)
        return;
    const int* const at = coordinates + 4 * pillar;
    const int image = at[0], row = at[2], column = at[3];
    const bool is_inside = image >= 0 && image < batch && row >= 0 && row < height && column >= 0 && column < width;
    if (is_inside)
        atomicMax(&shown[(static_cast<long long>(image) * height + row) * width + column], static_cast<int>(pillar));
}

/// `SIZE` elements side by side, moved at once.
template <typename T, int SIZE>
struct alignas(sizeof(T) * SIZE) Piece
{
    T element[SIZE];
};

/// A thread writes `SIZE` neighbours of `CHANNELS` channels: it looks up once which pillars they show. `cells` are those of one image. Blocks: x for
/// cells, y for channels, z for images.
template <typename T, int SIZE, int CHANNELS>
__global__ void show_pillars(const T* __restrict__ features, const int* __restrict__ shown, T* __restrict__ image, int cells, int channels)
{
    using Elements = Piece<T, SIZE>;
    const long long cell = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * SIZE;
    if (cell >= cells)
        return;
    const Piece<int, SIZE> pillars = *reinterpret_cast<const Piece<int, SIZE>*>(shown + static_cast<long long>(blockIdx.z) * cells + cell);
    bool is_any = false;
#pragma unroll
    for (int e = 0; e < SIZE; ++e)
        is_any |= pillars.element[e] >= 0;
    const int first = blockIdx.y * CHANNELS;
    T* const to = image + (static_cast<long long>(blockIdx.z) * channels + first) * cells + cell;
#pragma unroll
    for (int c = 0; c < CHANNELS; ++c) {
        if (first + c >= channels)
            return;
        Elements result;
#pragma unroll
        for (int e = 0; e < SIZE; ++e)
            result.element[e] = static_cast<T>(0.0f);
        if (is_any) {
#pragma unroll
            for (int e = 0; e < SIZE; ++e) {
                const int pillar = pillars.element[e];
                if (pillar >= 0)
                    result.element[e] = features[static_cast<long long>(pillar) * channels + first + c];
            }
        }
        Elements* const place = reinterpret_cast<Elements*>(to + static_cast<long long>(c) * cells);
        // Nobody reads the image before all of it is written: it need not stay in the cache.
        if constexpr (sizeof(Elements) == 16)
            __stcs(reinterpret_cast<float4*>(place), *reinterpret_cast<const float4*>(&result));
        else
            *place = result;
    }
}
