// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: the CUDA driver, found when it is first needed, and the kernel's code, loaded once a process.
// Never: links against CUDA, and never fails where no driver is: the plugin is also used to build engines without a GPU.
#pragma once

#include <cstdint>
#include <string>

namespace reference
{

struct Kernel;
struct Stream;

// `circ_pad.cu`: keep the two declarations the same.
struct Geometry
{
    uint32_t count;
    uint32_t rank;
    uint32_t in[8];
    uint32_t out[8];
    uint32_t shift[8];
};

// The kernel of the current context, loaded at the first call; null with the reason in `why`.
Kernel* circPadKernel(std::string& why);

// `cuLaunchKernel` with a one-dimensional grid and no shared memory. Only after `circPadKernel` gave a kernel.
int32_t launch(Kernel* kernel, uint32_t blocks, uint32_t threads, Stream* stream, void** arguments);

} // namespace reference
