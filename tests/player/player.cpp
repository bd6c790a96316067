// Copyright of the Cubinder authors; Apache-2.0.
//
// TensorRT's role for programs in other languages: from the creator to `enqueue` on the caller's stream, with the
// first tactic. Functions return null or -1 on failure; `player_error` returns the reason. Not thread-safe.
#include <NvInferRuntime.h>

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace nvinfer1;

#define PLAYER_API extern "C" __attribute__((visibility("default")))

// `type` is a `PluginFieldType`.
struct PlayerField
{
    char const* name;
    void const* data;
    int32_t type;
    int32_t length;
};

// `type` is a `DataType`.
struct PlayerTensor
{
    int32_t type;
    int32_t rank;
    int64_t extents[8];
};

namespace
{

std::string lastError;

// Puts the plugin's message before the call's name.
class Log final : public ILogger
{
public:
    void log(Severity severity, AsciiChar const* text) noexcept override
    {
        if (severity <= Severity::kERROR)
        {
            mSaid += std::string(text) + "\n";
        }
    }
    std::string taken()
    {
        return std::exchange(mSaid, {});
    }

private:
    std::string mSaid;
};

Log theLog;

class Finder final : public ILoggerFinder
{
public:
    ILogger* findLogger() override
    {
        return &theLog;
    }
};

Finder finder;

[[noreturn]] void fail(std::string const& what)
{
    throw std::runtime_error(what);
}

void need(int32_t code, char const* call)
{
    if (code != 0)
    {
        fail(std::string(call) + " returned " + std::to_string(code));
    }
}

PluginTensorDesc described(PlayerTensor const& tensor)
{
    PluginTensorDesc desc{};
    desc.dims.nbDims = tensor.rank;
    std::copy(tensor.extents, tensor.extents + tensor.rank, desc.dims.d);
    desc.type = static_cast<DataType>(tensor.type);
    desc.format = TensorFormat::kLINEAR;
    desc.scale = 1.0F;
    return desc;
}

template <typename Interface>
Interface& capability(IPluginV3& plugin, PluginCapabilityType type)
{
    auto* const found = static_cast<Interface*>(plugin.getCapabilityInterface(type));
    return found != nullptr ? *found : throw std::runtime_error("a capability is missing");
}

IPluginCreatorV3One& creator(std::vector<void*> const& libraries, char const* name)
{
    using GetCreators = IPluginCreatorInterface* const* (*) (int32_t&);
    for (void* const library : libraries)
    {
        auto const getCreators = reinterpret_cast<GetCreators>(dlsym(library, "getCreators"));
        int32_t count = 0;
        auto* const* const creators = getCreators != nullptr ? getCreators(count) : nullptr;
        for (int32_t i = 0; i < count; ++i)
        {
            auto* const one = static_cast<IPluginCreatorV3One*>(creators[i]);
            if (std::strcmp(one->getPluginName(), name) == 0)
            {
                return *one;
            }
        }
    }
    fail(std::string("no library has a creator for ") + name);
}

class Node
{
public:
    Node(std::vector<void*> const& libraries, char const* op, std::vector<PluginField> const& fields, std::vector<PlayerTensor> const& inputs,
        std::vector<PlayerTensor> const& outputs)
    {
        PluginFieldCollection attributes{static_cast<int32_t>(fields.size()), fields.data()};
        IPluginV3* const built = creator(libraries, op).createPlugin("node", &attributes, TensorRTPhase::kBUILD);
        if (built == nullptr)
        {
            fail("createPlugin rejected the node");
        }
        for (PlayerTensor const& tensor : inputs)
        {
            mIn.push_back(described(tensor));
        }
        for (PlayerTensor const& tensor : outputs)
        {
            mOut.push_back(described(tensor));
        }
        auto& build = capability<IPluginV3OneBuild>(*built, PluginCapabilityType::kBUILD);
        std::vector<DynamicPluginTensorDesc> const in = fixed(mIn);
        std::vector<DynamicPluginTensorDesc> const out = fixed(mOut);
        auto const inCount = static_cast<int32_t>(in.size());
        auto const outCount = static_cast<int32_t>(out.size());
        need(build.configurePlugin(in.data(), inCount, out.data(), outCount), "configurePlugin");
        mScratchBytes = build.getWorkspaceSize(in.data(), inCount, out.data(), outCount);
        std::vector<int32_t> tactics(static_cast<size_t>(std::max(build.getNbTactics(), 0)));
        need(build.getValidTactics(tactics.data(), static_cast<int32_t>(tactics.size())), "getValidTactics");
        auto& core = capability<IPluginV3OneCore>(*built, PluginCapabilityType::kCORE);
        auto& runtime = capability<IPluginV3OneRuntime>(*built, PluginCapabilityType::kRUNTIME);
        IPluginV3* const loaded = creator(libraries, core.getPluginName())
                                      .createPlugin("node", runtime.getFieldsToSerialize(), TensorRTPhase::kRUNTIME);
        IPluginV3* const attached
            = loaded == nullptr ? nullptr : capability<IPluginV3OneRuntime>(*loaded, PluginCapabilityType::kRUNTIME).attachToContext(nullptr);
        if (attached == nullptr)
        {
            fail("the engine's fields were rejected");
        }
        mRuntime = &capability<IPluginV3OneRuntime>(*attached, PluginCapabilityType::kRUNTIME);
        if (!tactics.empty())
        {
            need(mRuntime->setTactic(tactics[0]), "setTactic");
        }
        need(mRuntime->onShapeChange(mIn.data(), inCount, mOut.data(), outCount), "onShapeChange");
    }

    size_t scratchBytes() const
    {
        return mScratchBytes;
    }
    int32_t enqueue(void const* const* inputs, void* const* outputs, void* scratch, void* stream) const
    {
        return mRuntime->enqueue(mIn.data(), mOut.data(), inputs, outputs, scratch, static_cast<cudaStream_t>(stream));
    }

private:
    static std::vector<DynamicPluginTensorDesc> fixed(std::vector<PluginTensorDesc> const& tensors)
    {
        std::vector<DynamicPluginTensorDesc> all;
        for (PluginTensorDesc const& tensor : tensors)
        {
            all.push_back({tensor, tensor.dims, tensor.dims, tensor.dims});
        }
        return all;
    }

    std::vector<PluginTensorDesc> mIn;
    std::vector<PluginTensorDesc> mOut;
    size_t mScratchBytes{0};
    IPluginV3OneRuntime* mRuntime{nullptr};
};

// On failure stores the reason.
template <typename Result, typename Call>
Result guarded(Result refused, Call const& call)
{
    try
    {
        return call();
    }
    catch (std::exception const& error)
    {
        lastError = theLog.taken() + error.what();
        return refused;
    }
}

}

// Plugin libraries read TensorRT's version here.
PLAYER_API int32_t getInferLibVersion() noexcept
{
    return NV_TENSORRT_VERSION;
}

PLAYER_API char const* player_error()
{
    return lastError.c_str();
}

// Fixed shapes and types; `libraries` are paths. Never freed.
PLAYER_API void* player_node(char const* const* libraries, int32_t libraryCount, char const* op, PlayerField const* fields, int32_t fieldCount,
    PlayerTensor const* tensors, int32_t inputCount, int32_t outputCount)
{
    return guarded<void*>(nullptr, [&]() -> void* {
        std::vector<void*> opened;
        for (char const* const* path = libraries; path != libraries + libraryCount; ++path)
        {
            opened.push_back(dlopen(*path, RTLD_NOW));
            if (opened.back() == nullptr)
            {
                fail(dlerror());
            }
            using SetLoggerFinder = void (*)(ILoggerFinder*);
            if (auto const setLoggerFinder = reinterpret_cast<SetLoggerFinder>(dlsym(opened.back(), "setLoggerFinder")))
            {
                setLoggerFinder(&finder);
            }
        }
        std::vector<PluginField> attributes;
        for (PlayerField const* field = fields; field != fields + fieldCount; ++field)
        {
            attributes.push_back({field->name, field->data, static_cast<PluginFieldType>(field->type), field->length});
        }
        PlayerTensor const* const outputs = tensors + inputCount;
        return std::make_unique<Node>(opened, op, attributes, std::vector<PlayerTensor>(tensors, outputs),
            std::vector<PlayerTensor>(outputs, outputs + outputCount))
            .release();
    });
}

// Workspace bytes of `enqueue`.
PLAYER_API int64_t player_scratch_bytes(void const* node)
{
    return static_cast<int64_t>(static_cast<Node const*>(node)->scratchBytes());
}

PLAYER_API int32_t player_enqueue(void const* node, void const* const* inputs, void* const* outputs, void* scratch, void* stream)
{
    return guarded<int32_t>(-1, [&] {
        need(static_cast<Node const*>(node)->enqueue(inputs, outputs, scratch, stream), "enqueue");
        return 0;
    });
}
