// Copyright of the Cubinder authors; Apache-2.0.
//
// A preloaded shim that fails driver calls of plugin libraries, whose `dlsym` it intercepts.
//
//   faultsArm(n, code, lasts)   the n-th call from now fails, with `lasts` also later ones; n 0 disables
//   faultsCalls()               calls since then
//   faultsFailed()              the first failed call since then, or null
//   faultsUnknown()             a requested function that this file lacks, or null
//
// A failed call is not made, except those that return an object: the shim makes them and reports failure.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VISIBLE __attribute__((visibility("default")))

static atomic_int gAt;
static atomic_int gCode;
static atomic_int gLasts;
static atomic_int gCalls;
static _Atomic(char const*) gFailed;
static _Atomic(char const*) gUnknown;

VISIBLE void faultsArm(int at, int code, int lasts)
{
    gAt = 0;
    gCode = code;
    gLasts = lasts;
    gFailed = NULL;
    gCalls = 0;
    gAt = at;
}

VISIBLE int faultsCalls(void)
{
    return gCalls;
}

VISIBLE char const* faultsFailed(void)
{
    return gFailed;
}

VISIBLE char const* faultsUnknown(void)
{
    return gUnknown;
}

static int fault(char const* call)
{
    int const number = atomic_fetch_add(&gCalls, 1) + 1;
    int const at = gAt;
    if (at == 0 || number < at || (number > at && !gLasts))
    {
        return 0;
    }
    char const* none = NULL;
    atomic_compare_exchange_strong(&gFailed, &none, call);
    return gCode;
}

// All arguments are integers or addresses, at most eleven.
typedef long Word;
typedef int Call(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);

#define CALLS(X)                                                                                                                                     \
    X(cuInit)                                                                                                                                        \
    X(cuDriverGetVersion)                                                                                                                            \
    X(cuCtxGetCurrent)                                                                                                                               \
    X(cuCtxGetId)                                                                                                                                    \
    X(cuCtxGetDevice)                                                                                                                                \
    X(cuCtxPushCurrent_v2)                                                                                                                           \
    X(cuStreamGetCtx)                                                                                                                                \
    X(cuDeviceGet)                                                                                                                                   \
    X(cuDeviceGetCount)                                                                                                                              \
    X(cuDeviceGetAttribute)                                                                                                                          \
    X(cuDeviceGetName)                                                                                                                               \
    X(cuDevicePrimaryCtxRetain)                                                                                                                      \
    X(cuLibraryLoadData)                                                                                                                             \
    X(cuLibraryGetKernel)                                                                                                                            \
    X(cuKernelGetFunction)                                                                                                                           \
    X(cuKernelGetAttribute)                                                                                                                          \
    X(cuKernelSetAttribute)                                                                                                                          \
    X(cuKernelGetParamInfo)                                                                                                                          \
    X(cuFuncLoad)                                                                                                                                    \
    X(cuLaunchKernel)                                                                                                                                \
    X(cuLaunchKernelEx)                                                                                                                              \
    X(cuMemsetD8Async)                                                                                                                               \
    X(cuMemcpyDtoDAsync_v2)                                                                                                                          \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                                                                                   \
    X(cuOccupancyMaxActiveClusters)                                                                                                                  \
    X(cuThreadExchangeStreamCaptureMode)

#define RELEASES(X)                                                                                                                                  \
    X(cuCtxPopCurrent_v2)                                                                                                                            \
    X(cuDevicePrimaryCtxRelease_v2)

#define DEFINE(name)                                                                                                                                 \
    static Call* gReal_##name;                                                                                                                       \
    static int faulty_##name(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j, Word k)                                 \
    {                                                                                                                                                \
        int const code = fault(#name);                                                                                                               \
        return code != 0 ? code : gReal_##name(a, b, c, d, e, f, g, h, i, j, k);                                                                     \
    }
CALLS(DEFINE)

#define DEFINE_RELEASE(name)                                                                                                                         \
    static Call* gReal_##name;                                                                                                                       \
    static int faulty_##name(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j, Word k)                                 \
    {                                                                                                                                                \
        int const code = fault(#name);                                                                                                               \
        int const real = gReal_##name(a, b, c, d, e, f, g, h, i, j, k);                                                                              \
        return code != 0 ? code : real;                                                                                                              \
    }
RELEASES(DEFINE_RELEASE)

// Whether to make the call: plugin libraries retry a failed unload once, except after a shutdown, so the first failure
// leaves the library loaded.
static int isUnloaded(Word library, int code)
{
    enum
    {
        SHUT_DOWN = 4,
        MOST_REFUSED = 64
    };
    static _Atomic(Word) refused[MOST_REFUSED];
    for (size_t i = 0; i < MOST_REFUSED; ++i)
    {
        Word expected = library;
        if (atomic_compare_exchange_strong(&refused[i], &expected, 0))
        {
            return 1;
        }
    }
    if (code == 0 || code == SHUT_DOWN)
    {
        return 1;
    }
    for (size_t i = 0; i < MOST_REFUSED; ++i)
    {
        Word expected = 0;
        if (atomic_compare_exchange_strong(&refused[i], &expected, library))
        {
            return 0;
        }
    }
    fprintf(stderr, "more than %d code objects that were refused before are loaded\n", MOST_REFUSED);
    abort();
}

static Call* gReal_cuLibraryUnload;
static int faulty_cuLibraryUnload(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j, Word k)
{
    int const code = fault("cuLibraryUnload");
    int const real = isUnloaded(a, code) ? gReal_cuLibraryUnload(a, b, c, d, e, f, g, h, i, j, k) : 0;
    return code != 0 ? code : real;
}

struct Entry
{
    char const* name;
    Call** real;
    Call* faulty;
};

#define ENTRY(name) {#name, &gReal_##name, faulty_##name},
static struct Entry const kENTRIES[] = {CALLS(ENTRY) RELEASES(ENTRY) ENTRY(cuLibraryUnload)};

// Calls that report errors never fail.
static char const* const kUNTOUCHED[] = {"cuGetErrorName", "cuGetErrorString"};

typedef void* Lookup(void*, char const*);

static Lookup* lookup(void)
{
    static _Atomic(Lookup*) real;
    Lookup* found = real;
    if (found == NULL)
    {
        found = (Lookup*) dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
        real = found;
    }
    return found;
}

// All plugin libraries export it.
static int isPlugin(void* address)
{
    Dl_info info;
    if (dladdr(address, &info) == 0 || info.dli_fname == NULL)
    {
        return 0;
    }
    void* const library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_LOCAL);
    if (library == NULL)
    {
        return 0;
    }
    void* const creators = lookup()(library, "getCreators");
    Dl_info of;
    int const isOwn = creators != NULL && dladdr(creators, &of) != 0 && of.dli_fbase == info.dli_fbase;
    dlclose(library);
    return isOwn;
}

static void* faulty(void* library, char const* name)
{
    void* const real = lookup()(library, name);
    for (size_t i = 0; i < sizeof kUNTOUCHED / sizeof *kUNTOUCHED; ++i)
    {
        if (strcmp(kUNTOUCHED[i], name) == 0)
        {
            return real;
        }
    }
    for (size_t i = 0; i < sizeof kENTRIES / sizeof *kENTRIES; ++i)
    {
        if (strcmp(kENTRIES[i].name, name) == 0 && real != NULL)
        {
            *kENTRIES[i].real = (Call*) real;
            return (void*) kENTRIES[i].faulty;
        }
    }
    gUnknown = real == NULL ? gUnknown : strdup(name);
    return real;
}

// Must be a tail call: `RTLD_NEXT` is relative to the caller.
VISIBLE void* dlsym(void* library, char const* name)
{
    if (library != RTLD_NEXT && strncmp(name, "cu", 2) == 0 && isPlugin(__builtin_return_address(0)))
    {
        return faulty(library, name);
    }
    return lookup()(library, name);
}
