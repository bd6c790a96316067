// Copyright of the Cubinder authors; Apache-2.0.
//
// The program around the library of the checks (`conformance/oracle.cpp` says why there are two). It also counts what the
// process asks of the heap: the functions of the program come before those of the C library, for plugin libraries too.
#include <cerrno>
#include <cstddef>
#include <cstdint>

extern "C" int runMain(int argc, char** argv, uint64_t (*allocations)());

// The C library's own names for what is replaced here (glibc).
extern "C" void* __libc_malloc(size_t bytes);
extern "C" void* __libc_calloc(size_t count, size_t bytes);
extern "C" void* __libc_realloc(void* old, size_t bytes);
extern "C" void* __libc_memalign(size_t alignment, size_t bytes);

namespace
{

uint64_t gAllocations = 0;

void count()
{
    __atomic_fetch_add(&gAllocations, 1, __ATOMIC_RELAXED);
}

uint64_t allocations()
{
    return __atomic_load_n(&gAllocations, __ATOMIC_RELAXED);
}

} // namespace

#define REPLACED extern "C" __attribute__((visibility("default")))

REPLACED void* malloc(size_t bytes)
{
    count();
    return __libc_malloc(bytes);
}
REPLACED void* calloc(size_t number, size_t bytes)
{
    count();
    return __libc_calloc(number, bytes);
}
REPLACED void* realloc(void* old, size_t bytes)
{
    count();
    return __libc_realloc(old, bytes);
}
REPLACED void* aligned_alloc(size_t alignment, size_t bytes)
{
    count();
    return __libc_memalign(alignment, bytes);
}
REPLACED int posix_memalign(void** place, size_t alignment, size_t bytes)
{
    count();
    *place = __libc_memalign(alignment, bytes);
    return *place == nullptr ? ENOMEM : 0;
}

int main(int argc, char** argv)
{
    return runMain(argc, argv, allocations);
}
