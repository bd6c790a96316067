// Scatters the pillars of a point cloud to an image: each pillar's features go to its cell; empty cells are
// zero.
//
// Three passes: the first resets the cells, the second finds each cell's pillar (of several the last, as if
// written in order), the third writes the image from first to last element, in whole memory lines and each
// element once.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "programmatic.cuh"

/// Prefetches `bytes` of a row, evicted last: writing the image must not displace them.
__device__ __forceinline__ void fetch(const char* row, int bytes)
{
#if __CUDA_ARCH__ >= 800
    for (int at = 0; at < bytes; at += 128)
        asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(row + at));
#endif
}

/// Resets the cells of `shown`, four per thread; its memory is padded to fours.
__global__ void forget_pillars(int4* shown, unsigned fours)
{
    let_later_begin_after(blockDim.x * sizeof(int4));
    const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= fours)
        return;
    int4* const to = shown + at;
    wait_for_earlier(to);
    *to = make_int4(-1, -1, -1, -1);
}

/// `shown` is -1 everywhere. Skips pillars outside of the image, with which models pad. Prefetches features,
/// `bytes` per pillar, for the third pass.
__global__ void find_pillars(const int* __restrict__ coordinates, const void* __restrict__ features, int* shown, int pillars, int bytes, int batch,
                             int height, int width)
{
    let_later_begin_after(blockDim.x * bytes);
    const long long pillar = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (pillar >= pillars)
        return;
    const int* const at = coordinates + 4 * pillar;
    const char* const of_pillar = static_cast<const char*>(features) + pillar * bytes;
    wait_for_earlier(at, of_pillar);
    const int image = at[0], row = at[2], column = at[3];
    const bool is_inside = image >= 0 && image < batch && row >= 0 && row < height && column >= 0 && column < width;
    if (is_inside) {
        fetch(of_pillar, bytes);
        atomicMax(&shown[(static_cast<long long>(image) * height + row) * width + column], static_cast<int>(pillar));
    }
}

/// `SIZE` adjacent elements, moved at once.
template <typename T, int SIZE>
struct alignas(sizeof(T) * SIZE) Piece
{
    T element[SIZE];
};

/// The image is not read before it is complete, so it need not stay in the cache.
template <typename Elements>
__device__ __forceinline__ void write(Elements* place, const Elements& elements)
{
    if constexpr (sizeof(Elements) == 16)
        __stcs(reinterpret_cast<float4*>(place), *reinterpret_cast<const float4*>(&elements));
    else
        *place = elements;
}

/// Writes `CHANNELS` channels from `first` on of `SIZE` adjacent cells at `to`, which show `pillars`. With
/// `PIECES`, reads `SIZE` features at once, of which `channels` is a multiple.
template <typename T, int SIZE, int CHANNELS, bool PIECES>
__device__ __forceinline__ void show(const Piece<int, SIZE>& pillars, const T* __restrict__ features, T* to, int first, int cells, int channels)
{
    using Elements = Piece<T, SIZE>;
    constexpr int TOGETHER = PIECES ? SIZE : 1;
    using Features = Piece<T, TOGETHER>;
#pragma unroll
    for (int c = 0; c < CHANNELS; c += TOGETHER) {
        if (first + c >= channels)
            return;
        Features read[SIZE];
#pragma unroll
        for (int e = 0; e < SIZE; ++e) {
            const int pillar = pillars.element[e];
            if (pillar >= 0) {
                read[e] = *reinterpret_cast<const Features*>(features + static_cast<long long>(pillar) * channels + first + c);
            } else {
#pragma unroll
                for (int k = 0; k < TOGETHER; ++k)
                    read[e].element[k] = static_cast<T>(0.0f);
            }
        }
#pragma unroll
        for (int k = 0; k < TOGETHER; ++k) {
            Elements result;
#pragma unroll
            for (int e = 0; e < SIZE; ++e)
                result.element[e] = read[e].element[k];
            write(reinterpret_cast<Elements*>(to + static_cast<long long>(c + k) * cells), result);
        }
    }
}

/// A thread writes `SIZE` adjacent cells of `CHANNELS` channels, and looks up their pillars once. `cells` is
/// per image. Blocks: x for cells, y for channels, z for images.
template <typename T, int SIZE, int CHANNELS, bool PIECES, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    show_pillars(const T* __restrict__ features, const int* __restrict__ shown, T* __restrict__ image, int cells, int channels)
{
    const long long cell = (static_cast<long long>(blockIdx.x) * BLOCK + threadIdx.x) * SIZE;
    if (cell >= cells)
        return;
    const int first = blockIdx.y * CHANNELS;
    const Piece<int, SIZE>* const own = reinterpret_cast<const Piece<int, SIZE>*>(shown + static_cast<long long>(blockIdx.z) * cells + cell);
    T* const to = image + (static_cast<long long>(blockIdx.z) * channels + first) * cells + cell;
    wait_for_earlier(own, to, features);
    const Piece<int, SIZE> pillars = *own;
    show<T, SIZE, CHANNELS, PIECES>(pillars, features, to, first, cells, channels);
}
