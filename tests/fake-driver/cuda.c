// Copyright of the Cubinder authors; Apache-2.0.
//
// A stand-in for NVIDIA's `libcuda.so.1`: an 8.9 device that refuses what the real driver refuses, records calls,
// detects stray accesses, and fails on request. OLD_DRIVER: before CUDA 12.4.
#define _GNU_SOURCE
#include "device.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

enum
{
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    STREAM_CAPTURE_UNSUPPORTED = 900,
    RELAXED = 2,
    MAX_THREADS_PER_BLOCK = 0,
    STATIC_SHARED_BYTES = 1,
    MAX_DYNAMIC_SHARED_BYTES = 8,
    MAJOR = 75,
    MINOR = 76,
    COOPERATIVE_LAUNCH = 95,
    MAX_SHARED_BYTES_OPTIN = 97,
    LAUNCH_COOPERATIVE = 2,
    LAUNCH_CLUSTER = 4,
    LAUNCH_PROGRAMMATIC = 6,
    COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    INVALID_CLUSTER_SIZE = 912,
    UNKNOWN = 999
};

struct Library
{
    int32_t live;
    uint64_t code;
};
struct Kernel
{
    struct Library* library;
    char symbol[256];
    int32_t allowedSharedBytes;
    struct FakeSignature const* signature;
};

static struct FakeDriver gDriver = {
    .context = 1,
    .attributes = {[MAJOR] = 8, [MINOR] = 9, [16] = 128, [COOPERATIVE_LAUNCH] = 1, [MAX_SHARED_BYTES_OPTIN] = 99 * 1024},
    .activeBlocks = 6,
    .activeClusters = 64,
};
// Never reused, so use after unload is detected.
static struct Library gLibraries[kMOST_OBJECTS];
static struct Kernel gKernels[kMOST_OBJECTS];
static uint32_t gLibraryCount, gKernelCount;
static pthread_mutex_t gLock = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local struct FakeThread gThread;

API struct FakeDriver* fakeDriver(void)
{
    return &gDriver;
}
API struct FakeThread* fakeThread(void)
{
    return &gThread;
}

// Returns the error to raise, mostly none, from Knuth's MMIX generator.
static int32_t thrown(void)
{
    if (gThread.failOneIn == 0 || gThread.codeCount == 0)
    {
        return SUCCESS;
    }
    gThread.seed = gThread.seed * 6364136223846793005ULL + 1442695040888963407ULL;
    uint64_t const number = gThread.seed >> 33;
    if (number % gThread.failOneIn != 0)
    {
        return SUCCESS;
    }
    ++gThread.failures;
    return gThread.codes[number / gThread.failOneIn % gThread.codeCount];
}

static int isLostTo(char const* call)
{
    static char const* const kHOST_ALONE[] = {"cuCtx", "cuDevice", "cuDriver", "cuInit", "cuThread"};
    for (size_t i = 0; gDriver.isLost == kCALLS_OF_DEVICE && i < sizeof kHOST_ALONE / sizeof kHOST_ALONE[0]; ++i)
    {
        if (strncmp(call, kHOST_ALONE[i], strlen(kHOST_ALONE[i])) == 0)
        {
            return 0;
        }
    }
    return gDriver.isLost != kNO_CALL;
}

static struct FakeEvent* begin(char const* call, void const* handle)
{
    static _Thread_local struct FakeEvent beyond;
    uint32_t const number = __atomic_fetch_add(&gDriver.eventCount, 1, __ATOMIC_RELAXED);
    struct FakeEvent* event = number < kMOST_EVENTS ? &gDriver.events[number] : &beyond;
    memset(event, 0, sizeof *event);
    event->call = call;
    event->handle = (uint64_t) (uintptr_t) handle;
    event->result = isLostTo(call) ? gDriver.failWith : thrown();
    if (gDriver.failIn > 0 && --gDriver.failIn == 0)
    {
        event->result = gDriver.failWith;
        gDriver.isLost = gDriver.isLasting;
    }
    event->isInjected = event->result != SUCCESS;
    return event;
}

// The driver's if the test reads that one.
static int32_t* captureMode(void)
{
    static _Thread_local int32_t own;
    return gettid() == getpid() ? &gDriver.captureMode : &own;
}

// Outside of tests no thread captures.
static int isRelaxed(void)
{
    return *captureMode() == RELAXED || gDriver.signatureCount == 0;
}

static int32_t end(struct FakeEvent* event, int32_t result)
{
    event->result = event->result != SUCCESS ? event->result : result;
    return event->result;
}

static int32_t endQueued(struct FakeEvent* event, int32_t result)
{
    int32_t const ended = end(event, result);
    if (ended == SUCCESS)
    {
        ++gThread.queued;
        gThread.last = *event;
    }
    return ended;
}

// If a test drives the driver, only captured work runs.
static int plays(void const* stream)
{
    return gDriver.signatureCount == 0 || graphsHas(stream);
}

static struct Kernel* kernelOf(void* handle)
{
    struct Kernel* kernel = handle;
    uint32_t const count = __atomic_load_n(&gKernelCount, __ATOMIC_ACQUIRE);
    int known = kernel >= gKernels && kernel < gKernels + count && kernel->library->live;
    return known ? kernel : NULL;
}

// Reads the limit atomically: another thread may raise it.
static int32_t allowedBytes(struct Kernel const* kernel)
{
    return __atomic_load_n(&kernel->allowedSharedBytes, __ATOMIC_RELAXED);
}

#define BEGIN(handle)                                                                                                  \
    struct FakeEvent* event = begin(__func__, handle);                                                                 \
    if (event->result != SUCCESS)                                                                                      \
    return event->result

#define BEGIN_KERNEL(handle)                                                                                           \
    struct Kernel* kernel = kernelOf(handle);                                                                          \
    BEGIN(handle);                                                                                                     \
    if (kernel == NULL)                                                                                                \
        return end(event, INVALID_HANDLE);                                                                             \
    event->symbol = kernel->symbol

// FAKE_INIT: the error. FAKE_GPU_LOST: a file that the first process creates; for later ones the device is lost.
static int32_t start(void)
{
    char const* const said = getenv("FAKE_INIT");
    if (said != NULL)
    {
        return (int32_t) strtol(said, NULL, 10);
    }
    char const* const lost = getenv("FAKE_GPU_LOST");
    int const made = lost != NULL ? open(lost, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600) : -1;
    if (made >= 0)
    {
        close(made);
    }
    return lost != NULL && made < 0 ? UNKNOWN : SUCCESS;
}

API int32_t cuInit(unsigned flags)
{
    BEGIN(NULL);
    return end(event, flags == 0 ? start() : INVALID_VALUE);
}
API int32_t cuDriverGetVersion(int32_t* version)
{
    BEGIN(NULL);
    *version = 13000;
    return SUCCESS;
}
// 0 is the primary context that tools retain.
static char gContexts[8];
static _Thread_local void* gPushed[4];

static void* currentContext(void)
{
    if (gThread.pushed != 0)
    {
        return gPushed[gThread.pushed - 1];
    }
    int32_t const number = gThread.context != 0 ? gThread.context : gDriver.context;
    return number > 0 ? &gContexts[number % 8] : NULL;
}

API int32_t cuCtxGetCurrent(void** context)
{
    BEGIN(NULL);
    *context = currentContext();
    return end(event, gDriver.context == -1 ? NOT_INITIALIZED : SUCCESS);
}
API int32_t cuCtxGetDevice(int32_t* device)
{
    BEGIN(NULL);
    *device = gDriver.device;
    return end(event, currentContext() != NULL ? SUCCESS : INVALID_CONTEXT);
}
// The number, which other contexts at its address do not have.
API int32_t cuCtxGetId(void* context, uint64_t* id)
{
    BEGIN(context);
    int32_t const number = gThread.context != 0 ? gThread.context : gDriver.context;
    *id = gThread.pushed != 0 ? (uint64_t) ((char*) currentContext() - gContexts) : (uint64_t) number;
    int const isNone = context != NULL || currentContext() == NULL;
    return end(event, gDriver.context == -1 ? NOT_INITIALIZED : isNone ? INVALID_CONTEXT : SUCCESS);
}
API int32_t cuCtxPushCurrent_v2(void* context)
{
    BEGIN(context);
    if (context == NULL || gThread.pushed == sizeof gPushed / sizeof gPushed[0])
    {
        return end(event, INVALID_CONTEXT);
    }
    gPushed[gThread.pushed++] = context;
    return SUCCESS;
}
API int32_t cuCtxPopCurrent_v2(void** context)
{
    BEGIN(NULL);
    if (gThread.pushed == 0)
    {
        return end(event, INVALID_CONTEXT);
    }
    *context = gPushed[--gThread.pushed];
    return SUCCESS;
}
// Every non-default stream (not 0, 1, 2) belongs to context 1.
API int32_t cuStreamGetCtx(void* stream, void** context)
{
    BEGIN(NULL);
    *context = (uintptr_t) stream > 2 ? &gContexts[1] : currentContext();
    return end(event, gDriver.context == -1 ? NOT_INITIALIZED : *context != NULL ? SUCCESS : INVALID_CONTEXT);
}
API int32_t cuDeviceGet(int32_t* device, int32_t ordinal)
{
    BEGIN(NULL);
    *device = ordinal;
    return end(event, ordinal == 0 ? SUCCESS : INVALID_VALUE);
}
API int32_t cuDeviceGetCount(int32_t* count)
{
    BEGIN(NULL);
    *count = 1;
    return SUCCESS;
}
API int32_t cuDeviceGetAttribute(int32_t* value, int32_t attribute, int32_t device)
{
    struct FakeEvent* event = begin(__func__, NULL);
    event->attribute = attribute;
    if (event->result != SUCCESS)
    {
        return event->result;
    }
    int known = device == gDriver.device && attribute >= 0 && attribute < 128;
    *value = known ? gDriver.attributes[attribute] : 0;
    return end(event, known ? SUCCESS : INVALID_VALUE);
}
API int32_t cuDeviceGetName(char* name, int32_t bytes, int32_t device)
{
    BEGIN(NULL);
    char const* const said = getenv("FAKE_GPU_NAME");
    char const* const own = said != NULL ? said : "Stand-In 4090";
    strncpy(name, own, (size_t) bytes);
    return end(event, device == gDriver.device && (size_t) bytes > strlen(own) ? SUCCESS : INVALID_VALUE);
}
API int32_t cuDevicePrimaryCtxRetain(void** context, int32_t device)
{
    BEGIN(NULL);
    *context = &gContexts[0];
    return end(event, device == 0 ? SUCCESS : INVALID_VALUE);
}
API int32_t cuDevicePrimaryCtxRelease_v2(int32_t device)
{
    BEGIN(NULL);
    return end(event, device == 0 ? SUCCESS : INVALID_VALUE);
}

static int isLive(uint64_t code)
{
    for (uint32_t i = 0; i < gLibraryCount; ++i)
    {
        if (gLibraries[i].live && gLibraries[i].code == code)
        {
            return 1;
        }
    }
    return 0;
}

API int32_t cuLibraryLoadData(void** library, void const* code, int32_t* jitOptions, void** jitValues,
    unsigned jitCount, int32_t* options, void** values, unsigned count)
{
    (void) jitOptions, (void) jitValues, (void) options, (void) values;
    BEGIN(NULL);
    int32_t const verdict = isRelaxed() ? codeJudged(code, gDriver.attributes[MAJOR], gDriver.attributes[MINOR]) : STREAM_CAPTURE_UNSUPPORTED;
    if (verdict != SUCCESS || jitCount != 0 || count != 0)
    {
        return end(event, verdict != SUCCESS ? verdict : INVALID_VALUE);
    }
    uint64_t const number = codeNumber(code);
    pthread_mutex_lock(&gLock);
    gDriver.loadedTwice += isLive(number);
    struct Library* loaded = gLibraryCount < kMOST_OBJECTS ? &gLibraries[gLibraryCount++] : NULL;
    if (loaded != NULL)
    {
        loaded->live = 1;
        loaded->code = number;
        ++gDriver.liveLibraries;
    }
    pthread_mutex_unlock(&gLock);
    if (loaded == NULL)
    {
        return end(event, OUT_OF_MEMORY);
    }
    *library = loaded;
    event->handle = (uint64_t) (uintptr_t) loaded;
    return SUCCESS;
}
API int32_t cuLibraryUnload(void* handle)
{
    if (gDriver.keepsLibraries)
    {
        abort();
    }
    BEGIN(handle);
    // The only plugin library call that a driver was seen to forbid during captures (H100, driver 580).
    if (graphsForbid(*captureMode()) || !isRelaxed())
    {
        return end(event, STREAM_CAPTURE_UNSUPPORTED);
    }
    struct Library* library = handle;
    pthread_mutex_lock(&gLock);
    int known = library >= gLibraries && library < gLibraries + gLibraryCount && library->live;
    if (known)
    {
        library->live = 0;
        --gDriver.liveLibraries;
    }
    pthread_mutex_unlock(&gLock);
    return end(event, known ? SUCCESS : INVALID_HANDLE);
}
API int32_t cuLibraryGetKernel(void** kernel, void* library, char const* symbol)
{
    BEGIN(library);
    uint32_t count = gDriver.signatureCount;
    struct FakeSignature const* signature = count != 0 ? gDriver.signatures : deviceSignatures(&count);
    struct FakeSignature const* last = signature + count;
    while (signature != last && strstr(symbol, signature->part) == NULL)
    {
        ++signature;
    }
    if (signature == last)
    {
        return end(event, NOT_FOUND);
    }
    pthread_mutex_lock(&gLock);
    struct Kernel* found = gKernelCount < kMOST_OBJECTS ? &gKernels[gKernelCount] : NULL;
    if (found != NULL)
    {
        found->library = library;
        found->allowedSharedBytes = 48 * 1024;
        found->signature = signature;
        strncpy(found->symbol, symbol, sizeof found->symbol - 1);
        __atomic_store_n(&gKernelCount, gKernelCount + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&gLock);
    if (found == NULL)
    {
        return end(event, OUT_OF_MEMORY);
    }
    *kernel = found;
    event->symbol = found->symbol;
    return SUCCESS;
}
API int32_t cuKernelGetFunction(void** function, void* handle)
{
    BEGIN_KERNEL(handle);
    *function = kernel;
    return end(event, currentContext() == NULL ? INVALID_CONTEXT : isRelaxed() ? SUCCESS : STREAM_CAPTURE_UNSUPPORTED);
}
API int32_t cuKernelGetAttribute(int32_t* value, int32_t attribute, void* handle, int32_t device)
{
    BEGIN_KERNEL(handle);
    event->attribute = attribute;
    *value = attribute == MAX_THREADS_PER_BLOCK ? 1024
        : attribute == MAX_DYNAMIC_SHARED_BYTES ? allowedBytes(kernel)
                                                : 0;
    return end(event, device == gDriver.device ? SUCCESS : INVALID_VALUE);
}
API int32_t cuKernelSetAttribute(int32_t attribute, int32_t value, void* handle, int32_t device)
{
    BEGIN_KERNEL(handle);
    event->attribute = attribute;
    event->value = value;
    int fits = attribute == MAX_DYNAMIC_SHARED_BYTES && value <= gDriver.attributes[MAX_SHARED_BYTES_OPTIN];
    if (fits && device == gDriver.device)
    {
        __atomic_store_n(&kernel->allowedSharedBytes, value, __ATOMIC_RELAXED);
        return SUCCESS;
    }
    return end(event, INVALID_VALUE);
}
static void takeArguments(struct FakeEvent* event, struct Kernel const* kernel, void** params)
{
    for (uint32_t i = 0; i < kernel->signature->count; ++i)
    {
        uint32_t const size = kernel->signature->sizes[i];
        memcpy(event->arguments + event->argumentBytes, params[i], size);
        event->argumentBytes += size;
        uint64_t address = 0;
        memcpy(&address, params[i], size == sizeof address ? size : 0);
        if (fakeIsAddress(address))
        {
            // An address means at least one byte. Tests that know the plugin check the rest (`Expected::reached`).
            deviceReaches(address, 1);
        }
    }
}

static int32_t launch(struct FakeEvent* event, struct Kernel const* kernel, struct Config const* config, void** params, void** extra)
{
    memcpy(event->grid, config->grid, sizeof event->grid);
    memcpy(event->block, config->block, sizeof event->block);
    event->sharedBytes = config->sharedBytes;
    event->stream = config->stream;
    takeArguments(event, kernel, params);
    uint64_t const blocks = (uint64_t) config->grid[0] * config->grid[1] * config->grid[2];
    uint64_t const threads = (uint64_t) config->block[0] * config->block[1] * config->block[2];
    int fits = blocks != 0 && threads != 0 && threads <= 1024 && extra == NULL
        && config->sharedBytes <= (unsigned) allowedBytes(kernel);
    for (uint32_t i = 0; i < config->count; ++i)
    {
        struct Attribute const* attribute = &config->attributes[i];
        uint32_t const* words = attribute->value.words;
        switch (attribute->id)
        {
        case 0: break;
        case LAUNCH_COOPERATIVE: event->asked |= words[0] != 0 ? kCOOPERATIVE : 0; break;
        case LAUNCH_PROGRAMMATIC: event->asked |= words[0] != 0 ? kPROGRAMMATIC : 0; break;
        case LAUNCH_CLUSTER:
            event->asked |= kCLUSTERS;
            memcpy(event->cluster, words, sizeof event->cluster);
            break;
        default: fits = 0;
        }
    }
    if ((event->asked & kCOOPERATIVE) != 0 && blocks > (uint64_t) gDriver.activeBlocks * (uint64_t) gDriver.attributes[16])
    {
        return end(event, COOPERATIVE_LAUNCH_TOO_LARGE);
    }
    for (int d = 0; d < 3 && (event->asked & kCLUSTERS) != 0; ++d)
    {
        if (event->cluster[d] == 0 || config->grid[d] % event->cluster[d] != 0)
        {
            return end(event, INVALID_CLUSTER_SIZE);
        }
    }
    if (!fits)
    {
        graphsBreak(config->stream);
        return end(event, INVALID_VALUE);
    }
    int const isDone = plays(config->stream);
    return endQueued(event, isDone ? graphsLaunch(config->stream, kernel->symbol, config->grid, kernel->signature, params) : SUCCESS);
}

API int32_t cuLaunchKernel(void* handle, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
    unsigned blockY, unsigned blockZ, unsigned sharedBytes, void* stream, void** params, void** extra)
{
    BEGIN_KERNEL(handle);
    struct Config const config
        = {{gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes, stream, NULL, 0};
    return launch(event, kernel, &config, params, extra);
}
API int32_t cuLaunchKernelEx(struct Config const* config, void* handle, void** params, void** extra)
{
    BEGIN_KERNEL(handle);
    return launch(event, kernel, config, params, extra);
}
API int32_t cuMemsetD8Async(uint64_t to, unsigned char byte, size_t bytes, void* stream)
{
    BEGIN(NULL);
    event->to = to;
    event->bytes = bytes;
    event->value = byte;
    event->stream = stream;
    int32_t const done = plays(stream) ? graphsFill(stream, to, byte, bytes) : SUCCESS;
    return endQueued(event, deviceReaches(to, bytes) ? done : INVALID_VALUE);
}
API int32_t cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* stream)
{
    BEGIN(NULL);
    event->to = to;
    event->from = from;
    event->bytes = bytes;
    event->stream = stream;
    int32_t const done = plays(stream) ? graphsCopy(stream, to, from, bytes) : SUCCESS;
    int const there = deviceReaches(to, bytes) & deviceReaches(from, bytes);
    return endQueued(event, there ? done : INVALID_VALUE);
}
API int32_t cuOccupancyMaxActiveBlocksPerMultiprocessor(int32_t* blocks, void* handle, int32_t threads, size_t sharedBytes)
{
    BEGIN_KERNEL(handle);
    *blocks = gDriver.activeBlocks;
    int const fits = threads > 0 && sharedBytes <= (size_t) allowedBytes(kernel);
    return end(event, currentContext() == NULL ? INVALID_CONTEXT : fits ? SUCCESS : INVALID_VALUE);
}
API int32_t cuOccupancyMaxActiveClusters(int32_t* clusters, void* handle, struct Config const* config)
{
    BEGIN_KERNEL(handle);
    *clusters = gDriver.activeClusters;
    return end(event, currentContext() == NULL ? INVALID_CONTEXT : config->count > 0 ? SUCCESS : INVALID_VALUE);
}
API int32_t cuThreadExchangeStreamCaptureMode(int32_t* mode)
{
    BEGIN(NULL);
    int32_t const before = *captureMode();
    *captureMode() = *mode;
    *mode = before;
    return SUCCESS;
}
#ifndef OLD_DRIVER
API int32_t cuFuncLoad(void* handle)
{
    BEGIN_KERNEL(handle);
    return end(event, isRelaxed() ? SUCCESS : STREAM_CAPTURE_UNSUPPORTED);
}
API int32_t cuKernelGetParamInfo(void* handle, size_t index, size_t* offset, size_t* size)
{
    BEGIN_KERNEL(handle);
    if (currentContext() == NULL)
    {
        return end(event, INVALID_CONTEXT);
    }
    int known = index < kernel->signature->count;
    *offset = 0;
    *size = known ? kernel->signature->sizes[index] : 0;
    return end(event, known ? SUCCESS : INVALID_VALUE);
}
#endif
