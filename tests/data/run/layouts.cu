// What pack.toml and unpack.toml launch: between plain numbers and every type in every format.

/// Of two numbers in a byte the one with the even index writes both; `next` is the number behind it.
template <typename T>
__device__ void put(T* y, long long at, float value, float)
{
    y[at] = static_cast<T>(value);
}

__device__ void put(cubinder::i4x2* y, long long at, float value, float next)
{
    if (at % 2 == 0)
        y[at / 2] = cubinder::i4x2::of(static_cast<int>(value), static_cast<int>(next));
}

template <typename T>
__device__ float get(const T* x, long long at)
{
    return static_cast<float>(x[at]);
}

__device__ float get(const cubinder::i4x2* x, long long at)
{
    return static_cast<float>(at % 2 == 0 ? x[at / 2].low() : x[at / 2].high());
}

/// A thread for each of the `count` numbers in memory, those that the format adds among them.
template <typename T, cubinder::format F>
__global__ void pack(const float* x, T* y, int channels, int places, int count)
{
    const int i = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
    if (i >= count)
        return;
    const int place = i % places, padded = cubinder::padded(F, channels);
    const int channel = i / places % padded, batch = i / places / padded;
    const bool there = channel < channels;
    const int from = (batch * channels + channel) * places + place;
    // What has a number behind it in its byte is linear: nothing is added there.
    const float value = there ? x[from] : 0, next = there && i + 1 < count ? x[from + 1] : 0;
    put(y, cubinder::offset(F, batch, channel, place, channels, places), value, next);
}

/// A thread for each of the `count` numbers.
template <typename T, cubinder::format F>
__global__ void unpack(const T* x, float* y, int channels, int places, int count)
{
    const int i = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
    if (i >= count)
        return;
    const int place = i % places, channel = i / places % channels, batch = i / places / channels;
    y[i] = get(x, cubinder::offset(F, batch, channel, place, channels, places));
}
