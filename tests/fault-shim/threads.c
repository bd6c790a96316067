// An `LD_PRELOAD` library that prevents new threads, as `ulimit -u` does for users other than root.
//
// FAULT_THREADS  number of threads to allow; default 0

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

typedef int create_t(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

int pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*what)(void*), void* with)
{
    static long started;
    const char* allowed = getenv("FAULT_THREADS");
    if (__atomic_fetch_add(&started, 1, __ATOMIC_SEQ_CST) >= (allowed ? atol(allowed) : 0))
        return EAGAIN;
    create_t* create = (create_t*)dlsym(RTLD_NEXT, "pthread_create");
    return create(thread, how, what, with);
}
