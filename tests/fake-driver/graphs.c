// Copyright of the Cubinder authors; Apache-2.0.
//
// Streams, captures and a simulated clock, for equal timings everywhere. FAKE_UNSTEADY slows every third graph by
// half. FAKE_HANGS: the graph launch that never ends, from 1. FAKE_NAP: host milliseconds per launch.
#define _GNU_SOURCE
#include "device.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

enum
{
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    INVALID_HANDLE = 400,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    GLOBAL = 0,
    RELAXED = 2,
    MOST_PARAMS_BYTES = kMOST_BYTES
};

struct Node
{
    struct Node* next;
    char symbol[256];
    uint32_t grid[3];
    uint32_t count;
    uint32_t offsets[kMOST_PARAMS];
    unsigned char params[MOST_PARAMS_BYTES];
    uint64_t to;
    uint64_t from;
    uint64_t bytes;
    unsigned char byte;
};

struct Graph
{
    struct Node* first;
    struct Node* last;
    // References from the capture and its instances.
    int32_t holders;
};

struct Stream
{
    struct Graph* capture;
    int32_t isBroken;
    int32_t mode;
    pid_t thread;
};

struct Event
{
    // Time in nanoseconds; -1 if not recorded.
    int64_t at;
};

static int64_t gNow;

// FAKE_TIMES: `Li4E=3000,Li1E=2000`, parts of kernel names, nanoseconds. Default: 1000, plus 10 per block.
static int64_t timeOf(char const* symbol, uint32_t const grid[3])
{
    char const* said = getenv("FAKE_TIMES");
    while (said != NULL && *said != '\0')
    {
        size_t const part = strcspn(said, "=");
        char name[64] = {0};
        memcpy(name, said, part < sizeof name ? part : sizeof name - 1);
        if (said[part] == '=' && strstr(symbol, name) != NULL)
        {
            return strtoll(said + part + 1, NULL, 10);
        }
        said += strcspn(said, ",");
        said += *said == ',';
    }
    return 1000 + 10 * (int64_t) grid[0] * grid[1] * grid[2];
}

// 1 GB/ms, reads and writes together.
static int64_t timeOfBytes(struct Node const* node)
{
    return 500 + (int64_t) (node->bytes * (node->from != 0 ? 2 : 1) / 1000);
}

static void perform(struct Node* node)
{
    if (node->symbol[0] == '\0')
    {
        gNow += timeOfBytes(node);
        if (node->from != 0)
        {
            deviceCopy(node->to, node->from, node->bytes);
        }
        else
        {
            deviceFill(node->to, node->byte, node->bytes);
        }
        return;
    }
    void* params[kMOST_PARAMS];
    for (uint32_t i = 0; i < node->count; ++i)
    {
        params[i] = node->params + node->offsets[i];
    }
    gNow += timeOf(node->symbol, node->grid);
    deviceRun(node->symbol, node->grid, params);
}

// The default stream cannot capture.
static int32_t doOrCapture(void* handle, struct Node const* node)
{
    struct Stream* stream = handle;
    if (!graphsHas(stream) || stream->capture == NULL)
    {
        struct Node now = *node;
        perform(&now);
        return 0;
    }
    struct Node* kept = malloc(sizeof *kept);
    if (kept == NULL)
    {
        return OUT_OF_MEMORY;
    }
    *kept = *node;
    struct Graph* graph = stream->capture;
    *(graph->last != NULL ? &graph->last->next : &graph->first) = kept;
    graph->last = kept;
    return 0;
}

int32_t graphsLaunch(
    void* stream, char const* symbol, uint32_t const grid[3], struct FakeSignature const* signature, void** params)
{
    struct Node node = {0};
    strncpy(node.symbol, symbol, sizeof node.symbol - 1);
    memcpy(node.grid, grid, sizeof node.grid);
    node.count = signature->count;
    uint32_t used = 0;
    for (uint32_t i = 0; i < signature->count; ++i)
    {
        // Aligned for every number type.
        node.offsets[i] = used;
        memcpy(node.params + used, params[i], signature->sizes[i]);
        used += (signature->sizes[i] + 7) / 8 * 8;
    }
    return doOrCapture(stream, &node);
}

int32_t graphsFill(void* stream, uint64_t to, unsigned char byte, uint64_t bytes)
{
    struct Node const node = {.to = to, .byte = byte, .bytes = bytes};
    return doOrCapture(stream, &node);
}

int32_t graphsCopy(void* stream, uint64_t to, uint64_t from, uint64_t bytes)
{
    struct Node const node = {.to = to, .from = from, .bytes = bytes};
    return doOrCapture(stream, &node);
}

enum
{
    MOST_STREAMS = 64
};
static struct Stream gStreams[MOST_STREAMS];
static uint32_t gStreamCount;

int graphsHas(void const* stream)
{
    struct Stream const* known = stream;
    return known >= gStreams && known < gStreams + gStreamCount;
}

void graphsBreak(void* handle)
{
    struct Stream* stream = handle;
    if (graphsHas(stream) && stream->capture != NULL)
    {
        stream->isBroken = 1;
    }
}

int graphsForbid(int32_t mode)
{
    pid_t const self = gettid();
    int isForbidden = 0;
    for (uint32_t i = 0; i < gStreamCount && mode != RELAXED; ++i)
    {
        struct Stream* stream = &gStreams[i];
        int const isOwn = stream->thread == self && stream->mode != RELAXED;
        int const isGlobal = stream->mode == GLOBAL && mode == GLOBAL;
        if (stream->capture != NULL && (isOwn || isGlobal))
        {
            stream->isBroken = 1;
            isForbidden = 1;
        }
    }
    return isForbidden;
}

static void release(struct Graph* graph)
{
    if (--graph->holders > 0)
    {
        return;
    }
    for (struct Node* node = graph->first; node != NULL;)
    {
        struct Node* next = node->next;
        free(node);
        node = next;
    }
    free(graph);
}

API int32_t cuStreamCreate(void** stream, unsigned flags)
{
    if (flags > 1 || gStreamCount == MOST_STREAMS)
    {
        return INVALID_VALUE;
    }
    *stream = &gStreams[gStreamCount++];
    return gDeviceLost;
}
API int32_t cuStreamDestroy_v2(void* stream)
{
    return graphsHas(stream) ? gDeviceLost : INVALID_HANDLE;
}
API int32_t cuStreamSynchronize(void* stream)
{
    if (graphsHas(stream) && ((struct Stream*) stream)->capture != NULL)
    {
        graphsBreak(stream);
        return CAPTURE_UNSUPPORTED;
    }
    return gDeviceLost;
}
API int32_t cuStreamBeginCapture_v2(void* handle, int32_t mode)
{
    struct Stream* stream = handle;
    if (!graphsHas(stream) || stream->capture != NULL || mode < 0 || mode > RELAXED)
    {
        return CAPTURE_UNSUPPORTED;
    }
    stream->capture = calloc(1, sizeof *stream->capture);
    stream->capture->holders = 1;
    stream->isBroken = 0;
    stream->mode = mode;
    stream->thread = gettid();
    return gDeviceLost;
}
API int32_t cuStreamEndCapture(void* handle, void** graph)
{
    struct Stream* stream = handle;
    *graph = NULL;
    if (!graphsHas(stream) || stream->capture == NULL)
    {
        return INVALID_VALUE;
    }
    struct Graph* captured = stream->capture;
    stream->capture = NULL;
    if (stream->isBroken)
    {
        release(captured);
        return CAPTURE_INVALIDATED;
    }
    *graph = captured;
    return gDeviceLost;
}
API int32_t cuGraphInstantiateWithFlags(void** made, void* graph, unsigned long long flags)
{
    if (graph == NULL || flags != 0)
    {
        return INVALID_VALUE;
    }
    ++((struct Graph*) graph)->holders;
    *made = graph;
    return gDeviceLost;
}
static void linger(uint32_t launches)
{
    char const* const hangs = getenv("FAKE_HANGS");
    while (hangs != NULL && strtoul(hangs, NULL, 10) == launches)
    {
        pause();
    }
    char const* const nap = getenv("FAKE_NAP");
    if (nap != NULL)
    {
        usleep((useconds_t) strtoul(nap, NULL, 10) * 1000);
    }
}

API int32_t cuGraphLaunch(void* made, void* stream)
{
    if (made == NULL || !graphsHas(stream) || ((struct Stream*) stream)->capture != NULL)
    {
        return INVALID_VALUE;
    }
    static uint32_t launches;
    int64_t const start = gNow;
    for (struct Node* node = ((struct Graph*) made)->first; node != NULL; node = node->next)
    {
        perform(node);
    }
    linger(++launches);
    gNow += launches % 3 == 0 && getenv("FAKE_UNSTEADY") != NULL ? (gNow - start) / 2 : 0;
    return gDeviceLost;
}
API int32_t cuGraphDestroy(void* graph)
{
    release(graph);
    return 0;
}
API int32_t cuGraphExecDestroy(void* made)
{
    release(made);
    return 0;
}
API int32_t cuEventCreate(void** event, unsigned flags)
{
    struct Event* made = malloc(sizeof *made);
    if (flags != 0 || made == NULL)
    {
        free(made);
        return INVALID_VALUE;
    }
    made->at = -1;
    *event = made;
    return gDeviceLost;
}
API int32_t cuEventDestroy_v2(void* event)
{
    free(event);
    return 0;
}
API int32_t cuEventRecord(void* event, void* stream)
{
    if (!graphsHas(stream))
    {
        return INVALID_HANDLE;
    }
    ((struct Event*) event)->at = gNow;
    return gDeviceLost;
}
API int32_t cuEventSynchronize(void* event)
{
    return ((struct Event*) event)->at < 0 ? INVALID_HANDLE : gDeviceLost;
}
API int32_t cuEventElapsedTime(float* milliseconds, void* start, void* end)
{
    int64_t const from = ((struct Event*) start)->at, to = ((struct Event*) end)->at;
    if (from < 0 || to < 0)
    {
        return INVALID_HANDLE;
    }
    *milliseconds = (float) ((double) (to - from) / 1e6);
    return gDeviceLost;
}
