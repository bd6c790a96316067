// Copyright of the Cubinder authors; Apache-2.0.
//
// A program with a hidden, static TensorRT 10 that loads a plugin library. Its shared library, or a named one, plays
// TensorRT 11.
#define _GNU_SOURCE
#define staticFinder linkedFinder
#define newFinder newLinkedFinder
#define hideLogger hideLinkedLogger
#define countLogged countLinked
#define callPlugin callLinked
#define atUnload atLinkedUnload
#include "../../runtime-plugin/abi/src/tests/tensorrt.c"

#include <dlfcn.h>
#include <stdio.h>

struct Fields
{
    int32_t count;
    void const* first;
};

static void* find(void* library, char const* name)
{
    void* const found = dlsym(library, name);
    if (found == NULL)
    {
        fprintf(stderr, "%s: %s\n", name, dlerror());
        exit(2);
    }
    return found;
}

// linked PLUGINS [TENSORRT]: with the finder of the program's TensorRT, or of the stand-in TENSORRT.
int main(int argc, char** argv)
{
    void* (*finder)(void) = linkedFinder;
    int (*logged)(void) = countLinked;
    if (argc > 2)
    {
        void* const tensorrt = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
        finder = (void* (*) (void) ) find(tensorrt, "staticFinder");
        logged = (int (*)(void)) find(tensorrt, "countLogged");
    }
    void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    void (*set)(void*) = (void (*)(void*)) find(library, "setLoggerFinder");
    struct Object* const* (*get)(int32_t*) = (struct Object* const* (*) (int32_t*) ) find(library, "getCreators");
    int32_t (*version)(void) = (int32_t (*)(void)) find(RTLD_DEFAULT, "getInferLibVersion");
    set(finder());
    int32_t count = 0;
    struct Object* creator = get(&count)[0];
    printf("found version %d, %d creators, logged %d\n", version(), count, logged());
    // `IPluginCreatorV3One::createPlugin` is slot 4; phase 1 is the runtime.
    void* (*create)(void*, char const*, struct Fields const*, int32_t)
        = (void* (*) (void*, char const*, struct Fields const*, int32_t)) ((void* const*) creator->vptr)[4];
    struct Fields const none = {0, NULL};
    void* const plugin = create(creator, "node", &none, 1);
    printf("created %s, logged %d\n", plugin == NULL ? "nothing" : "a plugin", logged());
    return 0;
}
