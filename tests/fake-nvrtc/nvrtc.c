// A stand-in for NVRTC whose behaviour the kernel text selects: compiler crashes and hangs. Implements the functions
// of CUDA 13.0's nvrtc.h that Cubinder calls; of 11.0 with `-DFAKE_11_0`.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

struct program
{
    char* text;
};

static void log_of(const struct program* program, char* out)
{
    (void)program;
    strcpy(out, "k.cu(1): error: the stand-in compiles nothing");
}

__attribute__((constructor)) static void loaded(void)
{
    if (getenv("FAKE_NVRTC_LOAD"))
    {
        fputs("the stand-in does not load\n", stderr);
        abort();
    }
}

EXPORTED int nvrtcVersion(int* major, int* minor)
{
#ifdef FAKE_11_0
    *major = 11;
#else
    *major = 13;
#endif
    *minor = 0;
    return 0;
}

EXPORTED const char* nvrtcGetErrorString(int code)
{
    return code == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}

#ifndef FAKE_11_0
EXPORTED int nvrtcGetNumSupportedArchs(int* count)
{
    *count = 1;
    return 0;
}

EXPORTED int nvrtcGetSupportedArchs(int* archs)
{
    archs[0] = 90;
    return 0;
}
#endif

EXPORTED int nvrtcCreateProgram(void** out, const char* source, const char* name, int count, const char** headers, const char** names)
{
    (void)name, (void)count, (void)headers, (void)names;
    struct program* program = malloc(sizeof *program);
    program->text = strdup(source);
    *out = program;
    return 0;
}

EXPORTED int nvrtcDestroyProgram(void** out)
{
    struct program* program = *out;
    free(program->text);
    free(program);
    return 0;
}

EXPORTED int nvrtcAddNameExpression(void* program, const char* name)
{
    (void)program, (void)name;
    return 0;
}

EXPORTED int nvrtcCompileProgram(void* opaque, int count, const char** options)
{
    const struct program* program = opaque;
    int is_traced = 0;
    for (int i = 0; i < count; ++i)
        is_traced |= strcmp(options[i], "-Xcudafe=--trace_includes") == 0;
    const char* calls = getenv("FAKE_NVRTC_UNTRACED");
    FILE* log = calls ? fopen(calls, "a") : NULL;
    if (log)
    {
        fputs(is_traced ? "traced\n" : "plain\n", log);
        fclose(log);
        if (is_traced)
            return 5; // NVRTC_ERROR_INVALID_OPTION
    }
    if (strstr(program->text, "fake: crash"))
    {
        fputs("__nv_nvrtc_builtin_header.h\nmalloc(): the stand-in is corrupted\n", stderr);
        abort();
    }
    if (strstr(program->text, "fake: exit"))
        _exit(3);
    if (strstr(program->text, "fake: print"))
        (void)!write(1, "chatter on standard output\n", 27);
    if (strstr(program->text, "fake: change"))
    {
        const char* path = getenv("FAKE_NVRTC_CHANGES");
        FILE* file = path ? fopen(path, "a") : NULL;
        if (file)
        {
            fputs("// changed\n", file);
            fclose(file);
        }
    }
    if (strstr(program->text, "fake: endless"))
    {
        const char* path = getenv("FAKE_NVRTC_PROCESS");
        FILE* file = path ? fopen(path, "w") : NULL;
        if (file)
        {
            fprintf(file, "%d\n", (int)getpid());
            fclose(file);
        }
        for (;;)
            pause();
    }
    return 6;
}

EXPORTED int nvrtcGetLoweredName(void* program, const char* name, const char** lowered)
{
    (void)program;
    *lowered = name;
    return 0;
}

EXPORTED int nvrtcGetProgramLogSize(void* program, size_t* size)
{
    char text[256];
    log_of(program, text);
    *size = strlen(text) + 1;
    return 0;
}

EXPORTED int nvrtcGetProgramLog(void* program, char* out)
{
    log_of(program, out);
    return 0;
}

EXPORTED int nvrtcGetCUBINSize(void* program, size_t* size)
{
    (void)program;
    *size = 0;
    return 0;
}

EXPORTED int nvrtcGetCUBIN(void* program, char* out)
{
    (void)program, (void)out;
    return 0;
}

EXPORTED int nvrtcGetPTXSize(void* program, size_t* size)
{
    return nvrtcGetCUBINSize(program, size);
}

EXPORTED int nvrtcGetPTX(void* program, char* out)
{
    return nvrtcGetCUBIN(program, out);
}
