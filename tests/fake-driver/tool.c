// Copyright of the Cubinder authors; Apache-2.0.
//
// A stand-in profiler for `NVTX_INJECTION64_PATH` that counts ranges and records their names. The types repeat
// `nvtxTypes.h` of NVTX 3.1.0 to detect errors in the library under test.
//
// FAKE_TOOL=refuse: initialization fails. FAKE_TOOL=deaf: registers no range functions.
#include "tool.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

typedef void (*Function)(void);

struct Callbacks
{
    size_t structSize;
    int (*getModuleFunctionTable)(int module, Function*** table, unsigned* size);
};
struct VersionInfo
{
    size_t structSize;
    uint32_t version;
    uint32_t reserved;
    void (*setInjectionVersion)(uint32_t version);
};

static struct FakeTool gTool;

API struct FakeTool* fakeTool(void)
{
    return &gTool;
}

static int push(char const* name)
{
    if (gTool.pushes < kMOST_RANGES)
    {
        strncpy(gTool.names[gTool.pushes], name, kMOST_NAME - 1);
    }
    ++gTool.pushes;
    return gTool.depth++;
}

static int pop(void)
{
    ++gTool.pops;
    return --gTool.depth;
}

API int InitializeInjectionNvtx2(void const* (*getExportTable)(uint32_t id))
{
    char const* mood = getenv("FAKE_TOOL");
    struct Callbacks const* callbacks = getExportTable(1);
    struct VersionInfo const* version = getExportTable(3);
    if (callbacks == NULL || callbacks->structSize < sizeof *callbacks || version == NULL
        || version->structSize < sizeof *version || version->version < 2 || getExportTable(2) != NULL)
    {
        abort();
    }
    version->setInjectionVersion(3);
    static unsigned const kSIZES[] = {0, 16, 9, 15, 7, 16, 7};
    for (int module = 1; module <= 6; ++module)
    {
        Function** table = NULL;
        unsigned size = 0;
        if (callbacks->getModuleFunctionTable(module, &table, &size) != 1 || size < kSIZES[module] || table[size] != NULL)
        {
            abort();
        }
        for (unsigned i = 1; i < size; ++i)
        {
            *table[i] = NULL;
        }
        int const takes = mood == NULL || strcmp(mood, "deaf") != 0;
        if (module == 1 && takes)
        {
            *table[9] = (Function) push;
            *table[11] = (Function) pop;
        }
    }
    int const refuses = mood != NULL && strcmp(mood, "refuse") == 0;
    gTool.attached += !refuses;
    return !refuses;
}
