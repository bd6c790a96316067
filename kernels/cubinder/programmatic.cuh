// Programmatic launches: from compute capability 9.0 on, kernels are prepared while earlier work still runs.
// Older GPUs run kernels in order.

#pragma once

/// Returns bits that depend on a value, not necessarily unique ones.
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

/// Waits until all earlier work has ended and is visible; that includes the previous kernel's predecessors,
/// because each grid waits. Must precede a kernel's first read or write.
///
/// `known` must include every `__restrict__` pointer that is read later, or an address derived from it:
/// otherwise the compiler assumes that its memory does not change, and may read it before. `known` values are
/// computed before the wait. The compiler would move that behind the wait, if not for an instruction that
/// depends on them, and only signals a profiler.
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

/// Lets the next kernel be prepared once all blocks have called this; it waits itself.
__device__ __forceinline__ void let_later_begin()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/// Calls `let_later_begin` if that saves time. It slows down block starts to about one per 1.2 ns on an H200;
/// a block that moves 8 KiB takes longer. If blocks move fewer `bytes`, only small grids call it.
__device__ __forceinline__ void let_later_begin_after(unsigned bytes)
{
    if (bytes >= 8192 || gridDim.x <= 1024)
        let_later_begin();
}
