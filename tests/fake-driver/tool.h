// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: what a test sees of the stand-in for a profiler.
#ifndef CUBINDER_FAKE_TOOL_H
#define CUBINDER_FAKE_TOOL_H

#include <stdint.h>

enum
{
    kMOST_RANGES = 64,
    kMOST_NAME = 128
};

struct FakeTool
{
    // How many copies of NVTX were attached.
    int32_t attached;
    // Ranges that were begun and ended since the test last set both to 0, and how many are open in the thread that reads.
    int32_t pushes;
    int32_t pops;
    int32_t depth;
    // The names of the first.
    char names[kMOST_RANGES][kMOST_NAME];
};

#ifdef __cplusplus
extern "C"
#endif
struct FakeTool* fakeTool(void);

#endif
