// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: what the stand-in's driver asks of its device, which has memory and runs a few kernels.
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

// Whether a device of this compute capability takes the code: 0, or the error. PTX is taken, whatever it is for.
int32_t codeJudged(unsigned char const* code, int32_t major, int32_t minor);

// A number that equal code has alike.
uint64_t codeNumber(unsigned char const* code);

// Fills memory of the device; what `deviceAllocate` has not given is left alone.
void deviceFill(uint64_t to, unsigned char byte, uint64_t bytes);

// Copies within memory of the device, likewise.
void deviceCopy(uint64_t to, uint64_t from, uint64_t bytes);

// Work on a stream, in the place of what does it at once: done now, or once the graph is launched that is being captured.
int32_t graphsLaunch(
    void* stream, char const* symbol, uint32_t const grid[3], struct FakeSignature const* signature, void** params);
int32_t graphsFill(void* stream, uint64_t to, unsigned char byte, uint64_t bytes);
int32_t graphsCopy(void* stream, uint64_t to, uint64_t from, uint64_t bytes);

// Whether it is a stream that `cuStreamCreate` gave.
int graphsHas(void const* stream);

// What is being captured on the stream, if anything, can be no graph any more.
void graphsBreak(void* stream);

// Whether a capture forbids unsafe calls to the calling thread, which is in this capture mode. Such a call invalidates the capture, as
// `cuThreadExchangeStreamCaptureMode` documents it.
int graphsForbid(int32_t mode);

// The kernels that are played, by parts of their names.
struct FakeSignature const* deviceSignatures(uint32_t* count);

// Runs a kernel that is played; any other does nothing.
void deviceRun(char const* symbol, uint32_t const grid[3], void** params);

// Whether so many bytes from an address on are memory that was given.
int deviceHas(uint64_t begin, uint64_t bytes);

// Whether the memory that the test describes (`FakeDriver::zones`) has so many bytes from `begin` on. What it has not is counted.
int deviceReaches(uint64_t begin, uint64_t bytes);

// What a kernel did that no device survives: each later call is answered with it. 0 where all is well.
extern int32_t gDeviceLost;

#endif
