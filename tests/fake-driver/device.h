// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: the stand-in's memory and its few kernels.
#ifndef CUBINDER_FAKE_DEVICE_H
#define CUBINDER_FAKE_DEVICE_H

#include "fake.h"

// `CUlaunchAttribute` and `CUlaunchConfig`.
struct Attribute
{
    int32_t id;
    char pad[4];
    union
    {
        uint32_t words[3];
        char bytes[64];
    } value;
};
struct Config
{
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t sharedBytes;
    void* stream;
    struct Attribute const* attributes;
    uint32_t count;
};
_Static_assert(sizeof(struct Attribute) == 72 && sizeof(struct Config) == 56, "as in cuda.h");

// Returns 0 or an error. Any PTX is accepted.
int32_t codeJudged(unsigned char const* code, int32_t major, int32_t minor);

uint64_t codeNumber(unsigned char const* code);

// Skips addresses not from `deviceAllocate`.
void deviceFill(uint64_t to, unsigned char byte, uint64_t bytes);

void deviceCopy(uint64_t to, uint64_t from, uint64_t bytes);

// Now, or at the launch of the graph being captured.
int32_t graphsLaunch(
    void* stream, char const* symbol, uint32_t const grid[3], struct FakeSignature const* signature, void** params);
int32_t graphsFill(void* stream, uint64_t to, unsigned char byte, uint64_t bytes);
int32_t graphsCopy(void* stream, uint64_t to, uint64_t from, uint64_t bytes);

int graphsHas(void const* stream);

void graphsBreak(void* stream);

// As `cuThreadExchangeStreamCaptureMode` documents.
int graphsForbid(int32_t mode);

struct FakeSignature const* deviceSignatures(uint32_t* count);

// Ignores unknown kernels.
void deviceRun(char const* symbol, uint32_t const grid[3], void** params);

int deviceHas(uint64_t begin, uint64_t bytes);

// Whether `FakeDriver::zones` contain it. Counts misses.
int deviceReaches(uint64_t begin, uint64_t bytes);

// A kernel's sticky error, or 0.
extern int32_t gDeviceLost;

#endif
