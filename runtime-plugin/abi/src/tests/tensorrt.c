// A stand-in TensorRT for a plugin library's logging: a version, and a finder that is a static. Compiled by
// `logger/tests/images.rs`.
//
// VERSION   the result of `getInferLibVersion`; undefined, the function is missing
// BASE      if defined, finder and logger derive from `IVersionedInterface`
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef VERSION
int32_t getInferLibVersion(void)
{
    return VERSION;
}
#endif

struct Object
{
    void const* vptr;
};

struct InterfaceInfo
{
    char const* kind;
    int32_t major;
    int32_t minor;
};

static int gLogged;
static int gIsHidden;

static void logMessage(struct Object* self, int32_t severity, char const* text)
{
    (void) self;
    (void) severity;
    (void) text;
    __atomic_add_fetch(&gLogged, 1, __ATOMIC_RELAXED);
}

#ifdef BASE
static int32_t language(struct Object* self)
{
    (void) self;
    return 0;
}
static void destroy(struct Object* self)
{
    (void) self;
}
static struct InterfaceInfo loggerInfo(struct Object* self)
{
    (void) self;
    return (struct InterfaceInfo){"ILogger", 1, 0};
}
static struct InterfaceInfo finderInfo(struct Object* self)
{
    (void) self;
    return (struct InterfaceInfo){"ILoggerFinder", 1, 0};
}
static void* const kLOGGER[] = {language, loggerInfo, destroy, destroy, logMessage};
#else
static void* const kLOGGER[] = {logMessage};
#endif

static struct Object gLogger = {kLOGGER};

static struct Object* findLogger(struct Object* self)
{
    (void) self;
    return __atomic_load_n(&gIsHidden, __ATOMIC_RELAXED) ? NULL : &gLogger;
}

#ifdef BASE
static void* const kFINDER[] = {language, finderInfo, destroy, destroy, findLogger};
#else
static void* const kFINDER[] = {findLogger};
#endif

static struct Object gFinder = {kFINDER};

void* staticFinder(void)
{
    return &gFinder;
}

void* newFinder(void)
{
    struct Object* finder = malloc(sizeof *finder);
    *finder = gFinder;
    return finder;
}

void hideLogger(int isHidden)
{
    __atomic_store_n(&gIsHidden, isHidden, __ATOMIC_RELAXED);
}

int countLogged(void)
{
    return __atomic_load_n(&gLogged, __ATOMIC_RELAXED);
}

static void (*gAtUnload)(void*);
static void* gArgument;

// Sets a callback for the destructor.
void atUnload(void (*callback)(void*), void* argument)
{
    gAtUnload = callback;
    gArgument = argument;
}

__attribute__((destructor)) static void unload(void)
{
    if (gAtUnload != NULL)
    {
        gAtUnload(gArgument);
    }
}

// Calls a plugin library as TensorRT does: not in tail position, so this function has a frame.
int callPlugin(void (*plugin)(void*), void* argument)
{
    plugin(argument);
    return countLogged();
}
