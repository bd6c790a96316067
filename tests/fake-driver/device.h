// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: what the stand-in's driver asks of its device, which has memory and runs a few kernels.
#ifndef CUBINDER_FAKE_DEVICE_H
#define CUBINDER_FAKE_DEVICE_H

#include "fake.h"

// Fills memory of the device; what `deviceAllocate` has not given is left alone.
void deviceFill(uint64_t to, unsigned char byte, uint64_t bytes);

// The kernels that are played, by parts of their names.
struct FakeSignature const* deviceSignatures(uint32_t* count);

// Runs a kernel that is played; any other does nothing.
void deviceRun(char const* symbol, uint32_t const grid[3], void** params);

// Whether so many bytes from an address on are memory that was given.
int deviceHas(uint64_t begin, uint64_t bytes);

// What a kernel did that no device survives: each later call is answered with it. 0 where all is well.
extern int32_t gDeviceLost;

#endif
