// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: what a test sees of the stand-in for NVIDIA's driver, and how it is told what to do.
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

// Whether a device has clusters: `CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH`.
enum
{
    kCLUSTER_LAUNCH = 120
};

// What a launch asks for beside its extents (`FakeEvent::asked`).
enum
{
    kCOOPERATIVE = 1,
    kPROGRAMMATIC = 2,
    kCLUSTERS = 4
};

// One call. What a call has nothing to do with is 0.
struct FakeEvent
{
    char const* call;
    int32_t result;
    // Whether it fails because the test wants it to.
    int32_t isInjected;
    // The library or the kernel that it is about; libraries of one content have one handle for each load.
    uint64_t handle;
    // The kernel's name in its code object.
    char const* symbol;
    int32_t attribute;
    int32_t value;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t sharedBytes;
    // Launches with attributes: which, and the blocks of a cluster.
    uint32_t asked;
    uint32_t cluster[3];
    // What is filled or copied; a fill has its byte in `value`.
    uint64_t to;
    uint64_t from;
    uint64_t bytes;
    void* stream;
    // The bytes of the arguments, one after the other without padding.
    uint32_t argumentBytes;
    unsigned char arguments[kMOST_BYTES];
};

// The parameters of every kernel whose name contains `part`.
struct FakeSignature
{
    char const* part;
    uint32_t count;
    uint32_t sizes[kMOST_PARAMS];
};

// Memory of the device.
struct FakeZone
{
    uint64_t begin;
    uint64_t bytes;
};

// The driver. `fakeDriver` returns the only one; a test reads and writes it between calls, from the process's first thread, while
// no other calls the driver.
struct FakeDriver
{
    // The number of the thread's context, from 1; 0: none; -1: the driver was never initialized.
    int32_t context;
    // The number of that context's device. `attributes` are those of the device with this number.
    int32_t device;
    // The call that fails, whichever it is, counted from 1; 0: none. It counts down, and is 0 once the call has failed.
    int32_t failIn;
    int32_t failWith;
    // Which calls after that one fail with it too (`kNO_CALL`, `kCALLS_OF_DEVICE`, `kALL_CALLS`). `isLost` says that they do now; a test
    // takes it back.
    int32_t isLasting;
    int32_t isLost;
    // The mode in which the thread meets captures of others: 2 is relaxed. Loading or unloading code in another one is an error, as if a
    // thread were capturing all the time.
    int32_t captureMode;
    // Code objects that are loaded, and how often one was that was loaded already.
    int32_t liveLibraries;
    int32_t loadedTwice;
    // Whether unloading one ends the process, because nobody may do that any more.
    int32_t keepsLibraries;
    int32_t attributes[128];
    uint32_t signatureCount;
    struct FakeSignature const* signatures;
    // How many blocks of a kernel run on one multiprocessor at once, and how many clusters on the device.
    int32_t activeBlocks;
    int32_t activeClusters;
    // The memory that there is, where a test says so (`zoneCount` is not 0): what is filled or copied elsewhere, and arguments that
    // are addresses of the device (`fakeIsAddress`) in no zone, are `strays`. `stray` is the first.
    uint32_t zoneCount;
    struct FakeZone zones[kMOST_ZONES];
    uint32_t strays;
    uint64_t stray;
    // Every call since the test last set it to 0, the first `kMOST_EVENTS` of them with their values.
    uint32_t eventCount;
    struct FakeEvent events[kMOST_EVENTS];
};

// What fails after an error that lasts: what needs the device, as after a kernel that wrote where it should not, or everything, as when the
// driver shuts itself down.
enum
{
    kNO_CALL = 0,
    kCALLS_OF_DEVICE = 1,
    kALL_CALLS = 2
};

// What is of one thread alone, so that many may call the driver at once. `fakeThread` returns the calling thread's.
struct FakeThread
{
    // The number of its context; 0: that of the driver.
    int32_t context;
    // One call in so many fails, with one of the codes; 0: none does. Which ones follows from `seed`.
    uint32_t failOneIn;
    uint64_t seed;
    uint32_t codeCount;
    int32_t codes[8];
    // How many calls of the thread were made to fail.
    uint32_t failures;
    // How many contexts it has pushed and not popped.
    uint32_t pushed;
    // What it queued with success, and the last of it.
    uint32_t queued;
    struct FakeEvent last;
};

// Where the tests put the memory of the device. No other argument of a kernel has such a value.
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
