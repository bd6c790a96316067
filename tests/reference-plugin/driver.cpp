// Copyright of the Cubinder authors; Apache-2.0.
#include "driver.hpp"

#include <atomic>
#include <dlfcn.h>
#include <mutex>

// Embeds `circ_pad.sm_90.cubin` and `circ_pad.compute_80.ptx`. The driver needs PTX's final NUL.
asm(".pushsection .rodata\n"
    ".balign 16\n"
    "reference_cubin: .incbin \"" CODE_DIR "/circ_pad.sm_90.cubin\"\n"
    ".balign 16\n"
    "reference_ptx: .incbin \"" CODE_DIR "/circ_pad.compute_80.ptx\"\n"
    ".byte 0\n"
    ".popsection\n");
extern "C" __attribute__((visibility("hidden"))) char const reference_cubin[];
extern "C" __attribute__((visibility("hidden"))) char const reference_ptx[];

namespace reference
{

namespace
{

// Declared as in `cuda.h`, CUDA 12 and later.
using Result = int32_t;
struct Library;
struct Function;
constexpr int32_t kCAPTURE_MODE_RELAXED = 2;

struct Driver
{
    Result (*init)(unsigned){};
    Result (*libraryLoadData)(Library**, void const*, void*, void**, unsigned, void*, void**, unsigned){};
    Result (*libraryGetKernel)(Kernel**, Library*, char const*){};
    Result (*libraryUnload)(Library*){};
    Result (*kernelGetFunction)(Function**, Kernel*){};
    Result (*funcLoad)(Function*){};
    Result (*ctxGetCurrent)(void**){};
    Result (*exchangeCaptureMode)(int32_t*){};
    Result (*launchKernel)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream*, void**,
        void**){};
    Result (*getErrorName)(Result, char const**){};
};

Driver gDriver;

template <class F>
bool find(void* library, char const* name, F& function)
{
    function = reinterpret_cast<F>(dlsym(library, name));
    return function != nullptr;
}

bool openDriver(std::string& why)
{
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
    {
        why = "no CUDA driver on this machine";
        return false;
    }
    Driver& d = gDriver;
    bool const complete = find(library, "cuInit", d.init) && find(library, "cuLibraryLoadData", d.libraryLoadData)
        && find(library, "cuLibraryGetKernel", d.libraryGetKernel) && find(library, "cuLibraryUnload", d.libraryUnload)
        && find(library, "cuKernelGetFunction", d.kernelGetFunction) && find(library, "cuFuncLoad", d.funcLoad)
        && find(library, "cuCtxGetCurrent", d.ctxGetCurrent)
        && find(library, "cuThreadExchangeStreamCaptureMode", d.exchangeCaptureMode)
        && find(library, "cuLaunchKernel", d.launchKernel) && find(library, "cuGetErrorName", d.getErrorName);
    if (!complete)
    {
        why = "the CUDA driver is older than 12.4";
        return false;
    }
    if (Result const code = d.init(0))
    {
        why = "cuInit failed with " + std::to_string(code);
        return false;
    }
    return true;
}

std::string nameOf(Result code)
{
    char const* name = nullptr;
    gDriver.getErrorName(code, &name);
    return name == nullptr ? std::to_string(code) : name;
}

// While others capture, loading requires relaxed mode.
class RelaxedCapture
{
public:
    RelaxedCapture()
    {
        gDriver.exchangeCaptureMode(&mMode);
    }
    ~RelaxedCapture()
    {
        gDriver.exchangeCaptureMode(&mMode);
    }
    RelaxedCapture(RelaxedCapture const&) = delete;
    RelaxedCapture& operator=(RelaxedCapture const&) = delete;

private:
    int32_t mMode{kCAPTURE_MODE_RELAXED};
};

// Lives until the library closes: captured graphs may refer to it.
class Code
{
public:
    ~Code()
    {
        if (mLibrary != nullptr)
        {
            gDriver.libraryUnload(mLibrary);
        }
    }

    Kernel* kernel(std::string& why)
    {
        if (Kernel* known = mKernel.load(std::memory_order_acquire))
        {
            return known;
        }
        std::lock_guard<std::mutex> lock(mMutex);
        if (mKernel.load(std::memory_order_relaxed) == nullptr && (mIsOpen = mIsOpen || openDriver(why)))
        {
            mKernel.store(load(why), std::memory_order_release);
        }
        return mKernel.load(std::memory_order_relaxed);
    }

private:
    Kernel* load(std::string& why)
    {
        RelaxedCapture const relaxed;
        why.clear();
        for (char const* image : {reference_cubin, reference_ptx})
        {
            Kernel* kernel = nullptr;
            Result code = gDriver.libraryLoadData(&mLibrary, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
            if (code == 0)
            {
                code = gDriver.libraryGetKernel(&kernel, mLibrary, "circ_pad");
            }
            if (code == 0)
            {
                code = loadNow(kernel);
            }
            if (code == 0)
            {
                return kernel;
            }
            if (mLibrary != nullptr)
            {
                gDriver.libraryUnload(mLibrary);
                mLibrary = nullptr;
            }
            why += std::string(why.empty() ? "" : ", ") + (image == reference_cubin ? "cubin: " : "PTX: ") + nameOf(code);
        }
        why = "the driver rejects both code objects (" + why + ")";
        return nullptr;
    }

    // Lazy loading would fail only at the first launch or during captures.
    Result loadNow(Kernel* kernel)
    {
        void* context = nullptr;
        if (gDriver.ctxGetCurrent(&context) != 0 || context == nullptr)
        {
            return 0;
        }
        Function* function = nullptr;
        Result const code = gDriver.kernelGetFunction(&function, kernel);
        return code != 0 ? code : gDriver.funcLoad(function);
    }

    std::mutex mMutex;
    bool mIsOpen{false};
    Library* mLibrary{nullptr};
    std::atomic<Kernel*> mKernel{nullptr};
};

Code gCode;

}

Kernel* circPadKernel(std::string& why)
{
    return gCode.kernel(why);
}

int32_t launch(Kernel* kernel, uint32_t blocks, uint32_t threads, Stream* stream, void** arguments)
{
    return gDriver.launchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr);
}

}
