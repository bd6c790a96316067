// What kernels do whose launches are programmatic: from compute capability 9.0 on they are made ready while what was queued before still runs. Older
// GPUs run one after the other.

#pragma once

/// Bits of a value, of any that need not be told apart.
template <typename T>
__device__ __forceinline__ unsigned bits_of(T value)
{
    if constexpr (sizeof(T) == 8) {
        const unsigned long long bits = reinterpret_cast<unsigned long long>(value);
        return static_cast<unsigned>(bits) ^ static_cast<unsigned>(bits >> 32);
    } else {
        return static_cast<unsigned>(value);
    }
}

__device__ __forceinline__ unsigned bits_of(float value)
{
    return __float_as_uint(value);
}

/// Waits until all that was queued before has ended and what it wrote is seen; what was queued before the kernel before this one has ended, too, since in
/// each grid a thread waits. Comes before a kernel's first read or write.
///
/// Every `__restrict__` pointer that is read from afterwards is to be among `known`, itself or as a place: the compiler takes what it points to for
/// unchanged otherwise, and may read it before. `known` values are computed before, while others run. The compiler would move that to behind the wait,
/// where everybody waits for it: an instruction that depends on them, and does nothing but tell a profiler, keeps it from that.
template <typename... Known>
__device__ __forceinline__ void wait_for_earlier(Known... known)
{
#if __CUDA_ARCH__ >= 900
    const unsigned bits = (0u ^ ... ^ bits_of(known));
    asm volatile("{\n"
                 "    .reg .pred none;\n"
                 "    setp.eq.u32 none, %0, 0;\n"
                 "    @none pmevent 1;\n"
                 "}" ::"r"(bits));
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Lets the kernel after this one be made ready as soon as all blocks have said so; it waits by itself.
__device__ __forceinline__ void let_later_begin()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/// The same where it saves time. Saying so slows down how fast blocks begin, to about one in 1.2 ns on an H200: one that moves 8 KiB takes longer than
/// that by itself, and where blocks move fewer `bytes` they say it only if there are few of them.
__device__ __forceinline__ void let_later_begin_after(unsigned bytes)
{
    if (bytes >= 8192 || gridDim.x <= 1024)
        let_later_begin();
}
