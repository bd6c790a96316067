// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: how tests control and observe the stand-in driver.
#ifndef CUBINDER_FAKE_DRIVER_H
#define CUBINDER_FAKE_DRIVER_H

#include <stddef.h>
#include <stdint.h>

enum
{
    kMOST_EVENTS = 8192,
    kMOST_BYTES = 256,
    kMOST_OBJECTS = 1 << 18,
    kMOST_PARAMS = 16,
    kMOST_ZONES = 32
};

// `CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH`.
enum
{
    kCLUSTER_LAUNCH = 120
};

enum
{
    kCOOPERATIVE = 1,
    kPROGRAMMATIC = 2,
    kCLUSTERS = 4
};

// One call; inapplicable members are 0.
struct FakeEvent
{
    char const* call;
    int32_t result;
    int32_t isInjected;
    // Of library or kernel; equal for equal code.
    uint64_t handle;
    char const* symbol;
    int32_t attribute;
    int32_t value;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t sharedBytes;
    uint32_t asked;
    uint32_t cluster[3];
    // A fill's byte is in `value`.
    uint64_t to;
    uint64_t from;
    uint64_t bytes;
    void* stream;
    // Without padding.
    uint32_t argumentBytes;
    unsigned char arguments[kMOST_BYTES];
};

// Parameters of kernels whose name contains `part`.
struct FakeSignature
{
    char const* part;
    uint32_t count;
    uint32_t sizes[kMOST_PARAMS];
};

struct FakeZone
{
    uint64_t begin;
    uint64_t bytes;
};

// Tests access it from the first thread, alone.
struct FakeDriver
{
    // From 1; 0: none; -1: not initialized.
    int32_t context;
    // To which `attributes` belong.
    int32_t device;
    // Counts down to the failing call; 0: none.
    int32_t failIn;
    int32_t failWith;
    // Which later calls also fail. `isLost` is set meanwhile; a test resets it.
    int32_t isLasting;
    int32_t isLost;
    // 2 is relaxed. In others loading and unloading fail, as during others' captures.
    int32_t captureMode;
    int32_t liveLibraries;
    int32_t loadedTwice;
    // Whether unloading ends the process.
    int32_t keepsLibraries;
    int32_t attributes[128];
    uint32_t signatureCount;
    struct FakeSignature const* signatures;
    // Per multiprocessor, and per device.
    int32_t activeBlocks;
    int32_t activeClusters;
    // Existing memory, if any. Fills, copies and addresses in arguments outside it (`fakeIsAddress`) are `strays`.
    uint32_t zoneCount;
    struct FakeZone zones[kMOST_ZONES];
    uint32_t strays;
    uint64_t stray;
    // Since the test's reset; the first `kMOST_EVENTS` have values.
    uint32_t eventCount;
    struct FakeEvent events[kMOST_EVENTS];
};

// Scope of a lasting error: calls that use the device, or all (a shutdown).
enum
{
    kNO_CALL = 0,
    kCALLS_OF_DEVICE = 1,
    kALL_CALLS = 2
};

// The calling thread's state (`fakeThread`).
struct FakeThread
{
    // 0: the driver's.
    int32_t context;
    // One in this many calls fails, by `seed`; 0: none.
    uint32_t failOneIn;
    uint64_t seed;
    uint32_t codeCount;
    int32_t codes[8];
    uint32_t failures;
    // Contexts pushed and not popped.
    uint32_t pushed;
    uint32_t queued;
    struct FakeEvent last;
};

// Only the tests' device addresses have such values.
static inline int fakeIsAddress(uint64_t value)
{
    return value >> 40 == 0x7A;
}

#ifdef __cplusplus
extern "C"
#endif
struct FakeDriver* fakeDriver(void);
#ifdef __cplusplus
extern "C"
#endif
struct FakeThread* fakeThread(void);

#endif
