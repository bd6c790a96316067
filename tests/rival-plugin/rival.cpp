// Copyright of the Cubinder authors; Apache-2.0.
//
// Handwritten element-wise C++ plugins, the baseline for Cubinder's. Each launches its kernel once or several times.
//
// One linear float32 input and an output of its shape. `RIVAL_OPS` names a file with a line `{name, arguments,
// launches},` for each; `RIVAL_CODE` a fat binary with all kernels, of blocks of 256 threads and these parameters:
//   1: float* y                                          (y has a multiple of 256 elements)
//   3: float const* x, float* y, long long count
//   16: those of 3, and 13 of type int: 0, 1, 2, ...
#include <NvInferRuntime.h>

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <new>
#include <vector>

asm(".pushsection .rodata\n"
    ".balign 16\n"
    "rival_code: .incbin \"" RIVAL_CODE "\"\n"
    ".popsection\n");
extern "C" __attribute__((visibility("hidden"))) char const rival_code[];

namespace rival
{

using namespace nvinfer1;

namespace
{

struct Op
{
    char const* name;
    int32_t arguments;
    int32_t launches;
};
constexpr Op kOPS[] = {
#include RIVAL_OPS
};
constexpr int32_t kCOUNT = sizeof kOPS / sizeof kOPS[0];
constexpr uint32_t kTHREADS = 256;
constexpr int32_t kMOST_ARGUMENTS = 16;

std::atomic<ILoggerFinder*> gFinder{nullptr};

__attribute__((format(printf, 1, 2))) void error(char const* format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ILoggerFinder* finder = gFinder.load();
    ILogger* logger = finder == nullptr ? nullptr : finder->findLogger();
    if (logger != nullptr)
    {
        logger->log(ILogger::Severity::kERROR, text);
    }
}

// Declared as in `cuda.h`, CUDA 12 and later.
using Result = int32_t;
struct Driver
{
    Result (*init)(unsigned){};
    Result (*libraryLoadData)(void**, void const*, void*, void**, unsigned, void*, void**, unsigned){};
    Result (*libraryGetKernel)(void**, void*, char const*){};
    Result (*kernelGetFunction)(void**, void*){};
    Result (*funcLoad)(void*){};
    Result (*launchKernel)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**){};
};

class Code
{
public:
    // Null without a driver (builds without a GPU), or if it refuses the code.
    void* kernel(int32_t op)
    {
        std::lock_guard<std::mutex> lock(mMutex);
        void*& known = mKernels[static_cast<size_t>(op)];
        if (known != nullptr || !open())
        {
            return known;
        }
        void* kernel = nullptr;
        void* function = nullptr;
        // Avoids lazy loading at the first launch.
        if (mDriver.libraryGetKernel(&kernel, mLibrary, kOPS[op].name) == 0 && mDriver.kernelGetFunction(&function, kernel) == 0
            && mDriver.funcLoad(function) == 0)
        {
            known = kernel;
        }
        return known;
    }
    Driver const& driver() const
    {
        return mDriver;
    }

private:
    bool open()
    {
        if (mLibrary != nullptr)
        {
            return true;
        }
        void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        auto const find = [library](char const* name, auto& function) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
            return function != nullptr;
        };
        Driver& d = mDriver;
        return library != nullptr && find("cuInit", d.init) && find("cuLibraryLoadData", d.libraryLoadData)
            && find("cuLibraryGetKernel", d.libraryGetKernel) && find("cuKernelGetFunction", d.kernelGetFunction)
            && find("cuFuncLoad", d.funcLoad) && find("cuLaunchKernel", d.launchKernel) && d.init(0) == 0
            && d.libraryLoadData(&mLibrary, rival_code, nullptr, nullptr, 0, nullptr, nullptr, 0) == 0;
    }

    std::mutex mMutex;
    Driver mDriver;
    void* mLibrary{nullptr};
    std::array<void*, kCOUNT> mKernels{};
};

Code gCode;

template <class Interface>
class Named : public Interface
{
public:
    explicit Named(int32_t op)
        : mOp(op)
    {
    }
    AsciiChar const* getPluginName() const noexcept override
    {
        return kOPS[mOp].name;
    }
    AsciiChar const* getPluginVersion() const noexcept override
    {
        return "1";
    }
    AsciiChar const* getPluginNamespace() const noexcept override
    {
        return "rival";
    }

protected:
    int32_t const mOp;
    PluginFieldCollection mNone{0, nullptr};
};

class Plugin final : public IPluginV3, public Named<IPluginV3OneCore>, public IPluginV3OneBuild, public IPluginV3OneRuntime
{
public:
    using Named::Named;
    Plugin(Plugin const& other)
        : Named(other.mOp)
    {
    }

    IPluginCapability* getCapabilityInterface(PluginCapabilityType type) noexcept override
    {
        switch (type)
        {
        case PluginCapabilityType::kCORE: return static_cast<IPluginV3OneCore*>(this);
        case PluginCapabilityType::kBUILD: return static_cast<IPluginV3OneBuild*>(this);
        case PluginCapabilityType::kRUNTIME: return static_cast<IPluginV3OneRuntime*>(this);
        }
        return nullptr;
    }
    Plugin* clone() noexcept override
    {
        return new (std::nothrow) Plugin(*this);
    }
    int32_t getNbOutputs() const noexcept override
    {
        return 1;
    }
    int32_t getOutputDataTypes(DataType* outputs, int32_t, DataType const* inputs, int32_t) const noexcept override
    {
        outputs[0] = inputs[0];
        return 0;
    }
    int32_t getOutputShapes(DimsExprs const* inputs, int32_t, DimsExprs const*, int32_t, DimsExprs* outputs, int32_t,
        IExprBuilder&) noexcept override
    {
        outputs[0] = inputs[0];
        return 0;
    }
    bool supportsFormatCombination(
        int32_t position, DynamicPluginTensorDesc const* all, int32_t inputs, int32_t outputs) noexcept override
    {
        PluginTensorDesc const& desc = all[position].desc;
        return inputs == 1 && outputs == 1 && desc.type == DataType::kFLOAT && desc.format == TensorFormat::kLINEAR;
    }
    int32_t configurePlugin(DynamicPluginTensorDesc const*, int32_t, DynamicPluginTensorDesc const*, int32_t) noexcept override
    {
        return 0;
    }

    int32_t onShapeChange(PluginTensorDesc const* in, int32_t, PluginTensorDesc const*, int32_t) noexcept override
    {
        // TensorRT-RTX calls this before every enqueue.
        Dims const& dims = in[0].dims;
        if (mKernel != nullptr && dims.nbDims == mDims.nbDims
            && std::memcmp(dims.d, mDims.d, sizeof(mDims.d[0]) * static_cast<size_t>(mDims.nbDims)) == 0)
        {
            return 0;
        }
        mKernel = gCode.kernel(mOp);
        if (mKernel == nullptr)
        {
            error("%s: the kernel cannot be loaded", kOPS[mOp].name);
            return 1;
        }
        mDims = dims;
        mElements = 1;
        for (int32_t i = 0; i < dims.nbDims; ++i)
        {
            mElements *= dims.d[i];
        }
        mBlocks = static_cast<uint32_t>((mElements + kTHREADS - 1) / kTHREADS);
        return 0;
    }
    int32_t enqueue(PluginTensorDesc const*, PluginTensorDesc const*, void const* const* inputs, void* const* outputs, void*,
        cudaStream_t stream) noexcept override
    {
        if (mKernel == nullptr)
        {
            error("%s: no kernel to launch", kOPS[mOp].name);
            return 1;
        }
        mX = inputs[0];
        mY = outputs[0];
        void** const arguments = kOPS[mOp].arguments == 1 ? mArguments.data() + 1 : mArguments.data();
        for (int32_t launch = 0; launch < kOPS[mOp].launches && mBlocks != 0; ++launch)
        {
            Result const code = gCode.driver().launchKernel(mKernel, mBlocks, 1, 1, kTHREADS, 1, 1, 0, stream, arguments, nullptr);
            if (code != 0)
            {
                error("%s: cuLaunchKernel failed with %d", kOPS[mOp].name, code);
                return code;
            }
        }
        return 0;
    }
    int32_t setTactic(int32_t) noexcept override
    {
        return 0;
    }
    IPluginV3* attachToContext(IPluginResourceContext*) noexcept override
    {
        gCode.kernel(mOp); // Early, so that a first run can be captured.
        return clone();
    }
    PluginFieldCollection const* getFieldsToSerialize() noexcept override
    {
        return &mNone;
    }

private:
    // For the shape `mDims`; not prepared if `mKernel` is null.
    void* mKernel{nullptr};
    Dims mDims{};
    uint32_t mBlocks{0};
    void const* mX{nullptr};
    void* mY{nullptr};
    int64_t mElements{0};
    std::array<int32_t, kMOST_ARGUMENTS - 3> mNumbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    std::array<void*, kMOST_ARGUMENTS> mArguments{&mX, &mY, &mElements, &mNumbers[0], &mNumbers[1], &mNumbers[2], &mNumbers[3], &mNumbers[4],
        &mNumbers[5], &mNumbers[6], &mNumbers[7], &mNumbers[8], &mNumbers[9], &mNumbers[10], &mNumbers[11], &mNumbers[12]};
};

class Creator final : public Named<IPluginCreatorV3One>
{
public:
    using Named::Named;
    PluginFieldCollection const* getFieldNames() noexcept override
    {
        return &mNone;
    }
    IPluginV3* createPlugin(AsciiChar const*, PluginFieldCollection const*, TensorRTPhase) noexcept override
    {
        return new (std::nothrow) Plugin(mOp);
    }
};

struct Creators
{
    Creators()
    {
        all.reserve(kCOUNT);
        for (int32_t op = 0; op < kCOUNT; ++op)
        {
            all.emplace_back(op);
            pointers[static_cast<size_t>(op)] = &all.back();
        }
    }
    std::vector<Creator> all;
    std::array<IPluginCreatorInterface*, kCOUNT> pointers{};
};

}

}

extern "C" __attribute__((visibility("default"))) void setLoggerFinder(nvinfer1::ILoggerFinder* finder)
{
    rival::gFinder.store(finder);
}

extern "C" __attribute__((visibility("default"))) nvinfer1::IPluginCreatorInterface* const* getCreators(int32_t& count)
{
    static rival::Creators creators;
    count = rival::kCOUNT;
    return creators.pointers.data();
}
