// Copyright of the Cubinder authors; Apache-2.0.
#include "heap.hpp"

#include <cerrno>
#include <cstddef>

// glibc's names for the replaced functions; its `free` accepts all their blocks.
extern "C" void* __libc_malloc(size_t bytes);
extern "C" void* __libc_calloc(size_t count, size_t bytes);
extern "C" void* __libc_realloc(void* old, size_t bytes);
extern "C" void* __libc_memalign(size_t alignment, size_t bytes);
extern "C" void __libc_free(void* block);

namespace
{

uint64_t gAllocations = 0;
int64_t gBlocks = 0;

// `gone`: freed blocks.
void* counted(void* block, int64_t gone = 0)
{
    int64_t const come = block == nullptr ? 0 : 1;
    __atomic_fetch_add(&gAllocations, static_cast<uint64_t>(come), __ATOMIC_RELAXED);
    __atomic_fetch_add(&gBlocks, come - gone, __ATOMIC_RELAXED);
    return block;
}

}

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED uint64_t heapAllocations()
{
    return __atomic_load_n(&gAllocations, __ATOMIC_RELAXED);
}
EXPORTED int64_t heapBlocks()
{
    return __atomic_load_n(&gBlocks, __ATOMIC_RELAXED);
}

EXPORTED void* malloc(size_t bytes)
{
    return counted(__libc_malloc(bytes));
}
EXPORTED void* calloc(size_t number, size_t bytes)
{
    return counted(__libc_calloc(number, bytes));
}
EXPORTED void* realloc(void* old, size_t bytes)
{
    void* block = __libc_realloc(old, bytes);
    bool const isGone = old != nullptr && (block != nullptr || bytes == 0);
    return counted(block, isGone ? 1 : 0);
}
EXPORTED void* aligned_alloc(size_t alignment, size_t bytes)
{
    return counted(__libc_memalign(alignment, bytes));
}
EXPORTED int posix_memalign(void** place, size_t alignment, size_t bytes)
{
    *place = counted(__libc_memalign(alignment, bytes));
    return *place == nullptr ? ENOMEM : 0;
}
EXPORTED void free(void* block)
{
    __libc_free(block);
    counted(nullptr, block == nullptr ? 0 : 1);
}
