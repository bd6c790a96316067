// Copyright of the Cubinder authors; Apache-2.0.
//
// Which code the stand-in's device accepts, and the names of driver errors.
#define _GNU_SOURCE
#include "device.h"

#include <string.h>

#define API __attribute__((visibility("default")))

enum
{
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    DEINITIALIZED = 4,
    INVALID_IMAGE = 200,
    NO_BINARY_FOR_GPU = 209,
    LAUNCH_OUT_OF_RESOURCES = 701,
    LAUNCH_FAILED = 719
};

// PTX, or code of this major and no higher minor compute capability.
int32_t codeJudged(unsigned char const* code, int32_t major, int32_t minor)
{
    if (memcmp(code, "\177ELF", 4) != 0)
    {
        return strstr((char const*) code, ".target sm_") != NULL ? SUCCESS : INVALID_IMAGE;
    }
    // Its place in `e_flags` depends on the ABI version: 7 for CUDA 12, 8 for CUDA 13.
    int32_t const arch = code[8] == 7 ? code[48] : code[49];
    int runs = arch / 10 == major && arch % 10 <= minor;
    return runs ? SUCCESS : NO_BINARY_FOR_GPU;
}

// FNV-1a of the code. ELF files of CUDA's compilers end with the section or segment table.
uint64_t codeNumber(unsigned char const* code)
{
    size_t bytes = strlen((char const*) code);
    if (memcmp(code, "\177ELF", 4) == 0)
    {
        uint64_t sections, segments;
        uint16_t sizes[5];
        memcpy(&segments, code + 32, sizeof segments);
        memcpy(&sections, code + 40, sizeof sections);
        memcpy(sizes, code + 54, sizeof sizes);
        uint64_t const ends[2] = {segments + (uint64_t) sizes[0] * sizes[1], sections + (uint64_t) sizes[2] * sizes[3]};
        bytes = ends[0] > ends[1] ? ends[0] : ends[1];
    }
    uint64_t number = 14695981039346656037ULL;
    for (size_t i = 0; i < bytes; ++i)
    {
        number = (number ^ code[i]) * 1099511628211ULL;
    }
    return number;
}

// Not recorded: only called after errors.
API int32_t cuGetErrorName(int32_t code, char const** name)
{
    switch (code)
    {
    case INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; break;
    case OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case DEINITIALIZED: *name = "CUDA_ERROR_DEINITIALIZED"; break;
    case NO_BINARY_FOR_GPU: *name = "CUDA_ERROR_NO_BINARY_FOR_GPU"; break;
    case LAUNCH_OUT_OF_RESOURCES: *name = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"; break;
    case LAUNCH_FAILED: *name = "CUDA_ERROR_LAUNCH_FAILED"; break;
    default: *name = NULL;
    }
    return *name != NULL ? SUCCESS : INVALID_VALUE;
}
API int32_t cuGetErrorString(int32_t code, char const** text)
{
    *text = code == NO_BINARY_FOR_GPU ? "no kernel image is available for execution on the device" : NULL;
    return *text != NULL ? SUCCESS : INVALID_VALUE;
}
