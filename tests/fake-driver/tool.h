// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: the test's view of the stand-in profiler.
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
    int32_t attached;
    int32_t pushes;
    int32_t pops;
    int32_t depth;
    char names[kMOST_RANGES][kMOST_NAME];
};

#ifdef __cplusplus
extern "C"
#endif
struct FakeTool* fakeTool(void);

#endif
