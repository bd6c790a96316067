// Copyright of the Cubinder authors; Apache-2.0.
//
// A program with a TensorRT 10 linked into it, whose symbols it hides: it loads a plugin library as that TensorRT would, and has a plugin
// rejected. The shared library that it is linked with plays TensorRT 11.
//
// Owns: the program of one test of `tests/tests/registry.rs`.
#define _GNU_SOURCE
#define staticFinder linkedFinder
#define newFinder newLinkedFinder
#define hideLogger hideLinkedLogger
#define countLogged countLinked
#define callPlugin callLinked
#include "../../runtime-plugin/abi/src/testing/tensorrt.c"

#include <dlfcn.h>
#include <stdio.h>

struct Fields
{
    int32_t count;
    void const* first;
};

int main(int argc, char** argv)
{
    void* const library = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
    {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void (*set)(void*) = (void (*)(void*)) dlsym(library, "setLoggerFinder");
    struct Object* const* (*get)(int32_t*) = (struct Object* const* (*) (int32_t*) ) dlsym(library, "getCreators");
    int32_t (*version)(void) = (int32_t (*)(void)) dlsym(RTLD_DEFAULT, "getInferLibVersion");
    set(linkedFinder());
    int32_t count = 0;
    struct Object* creator = get(&count)[0];
    // `IPluginCreatorV3One::createPlugin` is slot 4; phase 1 is that of running.
    void* (*create)(void*, char const*, struct Fields const*, int32_t)
        = (void* (*) (void*, char const*, struct Fields const*, int32_t)) ((void* const*) creator->vptr)[4];
    struct Fields const none = {0, NULL};
    void* const plugin = create(creator, "node", &none, 1);
    printf("found version %d, created %s, logged %d\n", version(), plugin == NULL ? "nothing" : "a plugin", countLinked());
    return 0;
}
