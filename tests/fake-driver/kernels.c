// Copyright of the Cubinder authors; Apache-2.0.
//
// Host versions, for floats, of the kernels in `tests/data/testing` and of `cubinder new`.
#include "device.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum
{
    ILLEGAL_ADDRESS = 700,
    MISALIGNED_ADDRESS = 716,
    TENSOR_MEMORY_LEAK = 721
};

static void* pointer(void* param)
{
    void* value;
    memcpy(&value, param, sizeof value);
    return value;
}

static int64_t longOf(void* param)
{
    int64_t value;
    memcpy(&value, param, sizeof value);
    return value;
}

static int32_t intOf(void* param)
{
    int32_t value;
    memcpy(&value, param, sizeof value);
    return value;
}

// `planted<VEC>(const float* x, float* y, long long count, int fault)`.
static void planted(char const* symbol, void** params)
{
    float* x = pointer(params[0]);
    float* y = pointer(params[1]);
    int64_t const count = longOf(params[2]);
    int const fault = intOf(params[3]);
    int const isVector = strstr(symbol, "Li4E") != NULL;
    if (isVector && fault == 7 && ((uintptr_t) x % 16 != 0 || (uintptr_t) y % 16 != 0))
    {
        gDeviceLost = MISALIGNED_ADDRESS;
        return;
    }
    float const before = count > 0 ? y[count - 1] : 0;
    for (int64_t i = 0; i < count - (fault == 2); ++i)
    {
        y[i] = 2 * x[i];
    }
    switch (fault)
    {
    case 1: y[count] = 0; break;
    case 3: y[count / 2] += 1; break;
    case 4: x[0] = 7; break;
    case 5: y[count - 1] += before > 0 ? 1 : 0; break;
    case 6: gDeviceLost = ILLEGAL_ADDRESS; break;
    case 8: y[-1] = 0; break;
    case 9: raise(SIGKILL); break;
    case 10:
        for (;;)
        {
            pause();
        }
    case 12:
        // Device code prints to the process's output. Without a newline the output joins the next line.
        for (int64_t i = 0; isVector && i < count; ++i)
        {
            printf("%f ", x[i]);
        }
        fflush(stdout);
        y[0] += isVector ? 1 : 0;
        break;
    case 11: y[0] += isVector ? 1 : 0; break;
    case 13: y[count - 1] += before > 0 ? 1.6F : 0.8F; break;
    // Newer devices end the process with it.
    case 14: gDeviceLost = isVector ? TENSOR_MEMORY_LEAK : 0; break;
    default: break;
    }
}

// `doubled(float* x, long long count)`.
static void doubled(void** params)
{
    float* x = pointer(params[0]);
    for (int64_t i = 0, count = longOf(params[1]); i < count; ++i)
    {
        x[i] *= 2;
    }
}

// `positive(const float* x, float* y, int* size, long long count, int fault)`.
static void positive(void** params)
{
    float const* x = pointer(params[0]);
    float* y = pointer(params[1]);
    int32_t* size = pointer(params[2]);
    int64_t const count = longOf(params[3]);
    int const fault = intOf(params[4]);
    for (int64_t i = 0; i < count; ++i)
    {
        if (x[i] > 0)
        {
            y[(*size)++] = x[i];
        }
    }
    if (fault == 1)
    {
        *size = (int32_t) count + 1;
    }
}

// `NAME_kernel<T, VEC>(const T* x, T* y, long long vectors, float factor)`, for floats.
static void scaled(char const* symbol, void** params)
{
    float const* x = pointer(params[0]);
    float* y = pointer(params[1]);
    int64_t const count = longOf(params[2]) * (strstr(symbol, "Li4E") != NULL ? 4 : 1);
    float factor;
    memcpy(&factor, params[3], sizeof factor);
    for (int64_t i = 0; i < count; ++i)
    {
        y[i] = x[i] * factor;
    }
}

// `NAME_kernel<__half, VEC>`, computed with doubles.
static void scaledHalf(char const* symbol, void** params)
{
    _Float16 const* x = pointer(params[0]);
    _Float16* y = pointer(params[1]);
    int64_t const count = longOf(params[2]) * (strstr(symbol, "Li4E") != NULL ? 4 : 1);
    float factor;
    memcpy(&factor, params[3], sizeof factor);
    for (int64_t i = 0; i < count; ++i)
    {
        y[i] = (_Float16) ((float) x[i] * factor);
    }
}

// `scale_f32_VEC` and `scale_f16_VEC` (const T* x, T* y, float factor, int count) of `tests/data/code`.
static void scaledElsewhere(char const* symbol, void** params)
{
    void const* x = pointer(params[0]);
    void* y = pointer(params[1]);
    float factor;
    memcpy(&factor, params[2], sizeof factor);
    for (int32_t i = 0, count = intOf(params[3]); i < count; ++i)
    {
        if (strstr(symbol, "f16") != NULL)
        {
            ((_Float16*) y)[i] = (_Float16) ((float) ((_Float16 const*) x)[i] * factor);
        }
        else
        {
            ((float*) y)[i] = ((float const*) x)[i] * factor;
        }
    }
}

// Mixes elements of equal index into the arrays selected by `written` (`runtime-plugin/tests/meaning`).
static void blend(char const* symbol, void** params)
{
    int const arrays = symbol[strlen("blend")] - '0';
    int64_t const count = longOf(params[arrays]);
    uint32_t const salt = (uint32_t) intOf(params[arrays + 1]);
    uint32_t const written = (uint32_t) intOf(params[arrays + 2]);
    for (int64_t i = 0; i < count; ++i)
    {
        uint32_t mixed = salt;
        for (int k = 0; k < arrays; ++k)
        {
            mixed = mixed * 2654435761U + ((uint32_t*) pointer(params[k]))[i];
        }
        for (int k = 0; k < arrays; ++k)
        {
            if ((written >> k & 1) != 0)
            {
                ((uint32_t*) pointer(params[k]))[i] = mixed + (uint32_t) k;
            }
        }
    }
}

static struct FakeSignature const kSIGNATURES[] = {
    {"blend1", 4, {8, 8, 4, 4}},
    {"blend2", 5, {8, 8, 8, 4, 4}},
    {"blend3", 6, {8, 8, 8, 8, 4, 4}},
    {"blend4", 7, {8, 8, 8, 8, 8, 4, 4}},
    {"planted", 4, {8, 8, 8, 4}},
    {"doubled", 2, {8, 8}},
    {"positive", 5, {8, 8, 8, 8, 4}},
    {"_kernelI", 4, {8, 8, 8, 4}},
    {"scale_f", 4, {8, 8, 4, 4}},
};

struct FakeSignature const* deviceSignatures(uint32_t* count)
{
    *count = sizeof kSIGNATURES / sizeof kSIGNATURES[0];
    return kSIGNATURES;
}

void deviceRun(char const* symbol, uint32_t const grid[3], void** params)
{
    (void) grid;
    // Unallocated addresses: the test only checks launches.
    if (gDeviceLost != 0 || !deviceHas((uint64_t) (uintptr_t) pointer(params[0]), 0))
    {
        return;
    }
    if (strncmp(symbol, "blend", strlen("blend")) == 0)
    {
        blend(symbol, params);
    }
    else if (strstr(symbol, "planted") != NULL)
    {
        planted(symbol, params);
    }
    else if (strstr(symbol, "doubled") != NULL)
    {
        doubled(params);
    }
    else if (strstr(symbol, "positive") != NULL)
    {
        positive(params);
    }
    else if (strstr(symbol, "scale_f") != NULL)
    {
        scaledElsewhere(symbol, params);
    }
    else if (strstr(symbol, "_kernelIf") != NULL)
    {
        scaled(symbol, params);
    }
    else if (strstr(symbol, "_kernelI6__half") != NULL)
    {
        scaledHalf(symbol, params);
    }
}
