// Copyright of the Cubinder authors; Apache-2.0.
//
// Device memory, allocated on the host.
#define _GNU_SOURCE
#include "device.h"

#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

enum
{
    MOST_BLOCKS = 1024,
    // The default of FAKE_GPU_BYTES.
    DEVICE_BYTES = 1 << 28
};

struct Block
{
    uint64_t begin;
    uint64_t bytes;
};

int32_t gDeviceLost;
static struct Block gBlocks[MOST_BLOCKS];
static uint64_t gUsed;

static uint64_t limit(void)
{
    char const* said = getenv("FAKE_GPU_BYTES");
    return said != NULL ? strtoull(said, NULL, 10) : DEVICE_BYTES;
}

int deviceHas(uint64_t begin, uint64_t bytes)
{
    for (int i = 0; i < MOST_BLOCKS; ++i)
    {
        struct Block const* block = &gBlocks[i];
        if (block->bytes != 0 && begin >= block->begin && begin - block->begin <= block->bytes
            && bytes <= block->bytes - (begin - block->begin))
        {
            return 1;
        }
    }
    return 0;
}

int deviceReaches(uint64_t begin, uint64_t bytes)
{
    struct FakeDriver* const driver = fakeDriver();
    int there = driver->zoneCount == 0;
    for (uint32_t i = 0; i < driver->zoneCount; ++i)
    {
        struct FakeZone const* zone = &driver->zones[i];
        there = there || (begin >= zone->begin && begin - zone->begin <= zone->bytes && bytes <= zone->bytes - (begin - zone->begin));
    }
    if (!there && __atomic_fetch_add(&driver->strays, 1, __ATOMIC_RELAXED) == 0)
    {
        driver->stray = begin;
    }
    return there;
}

void deviceFill(uint64_t to, unsigned char byte, uint64_t bytes)
{
    if (gDeviceLost == 0 && deviceHas(to, bytes))
    {
        memset((void*) (uintptr_t) to, byte, bytes);
    }
}

void deviceCopy(uint64_t to, uint64_t from, uint64_t bytes)
{
    if (gDeviceLost == 0 && deviceHas(to, bytes) && deviceHas(from, bytes))
    {
        memmove((void*) (uintptr_t) to, (void const*) (uintptr_t) from, bytes);
    }
}

API int32_t cuMemGetInfo_v2(size_t* freeBytes, size_t* total)
{
    *total = limit();
    *freeBytes = *total - gUsed;
    return gDeviceLost;
}
API int32_t cuMemAlloc_v2(uint64_t* address, size_t bytes)
{
    if (gDeviceLost != 0)
    {
        return gDeviceLost;
    }
    for (int i = 0; i < MOST_BLOCKS && gUsed + bytes <= limit(); ++i)
    {
        if (gBlocks[i].bytes == 0)
        {
            void* memory = aligned_alloc(512, (bytes + 511) / 512 * 512);
            gBlocks[i] = (struct Block){(uint64_t) (uintptr_t) memory, bytes};
            gUsed += bytes;
            *address = gBlocks[i].begin;
            return memory != NULL ? 0 : 2;
        }
    }
    return 2; // CUDA_ERROR_OUT_OF_MEMORY
}
API int32_t cuMemFree_v2(uint64_t address)
{
    for (int i = 0; i < MOST_BLOCKS; ++i)
    {
        if (gBlocks[i].bytes != 0 && gBlocks[i].begin == address)
        {
            gUsed -= gBlocks[i].bytes;
            gBlocks[i].bytes = 0;
            free((void*) (uintptr_t) address);
            return gDeviceLost;
        }
    }
    return 1; // CUDA_ERROR_INVALID_VALUE
}
API int32_t cuMemcpyHtoD_v2(uint64_t to, void const* from, size_t bytes)
{
    if (gDeviceLost == 0 && deviceHas(to, bytes))
    {
        memcpy((void*) (uintptr_t) to, from, bytes);
        return 0;
    }
    return gDeviceLost != 0 ? gDeviceLost : 1;
}
API int32_t cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes)
{
    if (gDeviceLost == 0 && deviceHas(from, bytes))
    {
        memcpy(to, (void const*) (uintptr_t) from, bytes);
        return 0;
    }
    return gDeviceLost != 0 ? gDeviceLost : 1;
}
API int32_t cuCtxSynchronize(void)
{
    return gDeviceLost;
}
