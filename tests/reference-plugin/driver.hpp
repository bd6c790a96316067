// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: the CUDA driver and the kernel's code, loaded on first use. Never: links against CUDA, or fails without a
// driver (engines are built without a GPU).
#pragma once

#include <cstdint>
#include <string>

namespace reference
{

struct Kernel;
struct Stream;

// Must match `circ_pad.cu`.
struct Geometry
{
    uint32_t count;
    uint32_t rank;
    uint32_t in[8];
    uint32_t out[8];
    uint32_t shift[8];
};

// Null with the reason in `why`.
Kernel* circPadKernel(std::string& why);

// One-dimensional grid, no shared memory.
int32_t launch(Kernel* kernel, uint32_t blocks, uint32_t threads, Stream* stream, void** arguments);

}
