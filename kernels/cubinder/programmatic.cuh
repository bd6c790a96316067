// What kernels do whose launches are programmatic: from compute capability 9.0 on they are made ready while what was queued before still runs. Older
// GPUs run one after the other.

#pragma once

/// Waits until all that was queued before has ended and what it wrote is seen. Comes before a kernel's first read or write.
__device__ __forceinline__ void wait_for_earlier()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Lets the kernel after this one be made ready as soon as all blocks have said so; it waits by itself. It helped where few blocks wait for each other's
/// memory, and cost time where there are many that are over in a moment: to be measured.
__device__ __forceinline__ void let_later_begin()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
