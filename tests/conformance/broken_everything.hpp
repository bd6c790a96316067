// Copyright of the Cubinder authors; Apache-2.0.
//
// A handwritten `everything_plugin` with planted faults. With a driver it queues the steps of
// `tests/data/conformance/everything.toml`.
#pragma once

#include "broken.hpp"

#include <array>
#include <atomic>
#include <climits>
#include <dlfcn.h>
#include <mutex>
#include <vector>

namespace
{

struct EverythingNode
{
    static constexpr int32_t kMAGIC = 0x45564552;

    int32_t level{0};
    int32_t seed{0};
    // Type and format of x; -1 before configuration.
    int32_t type{-1};
    int32_t format{-1};
    // Elements of the largest x, for the workspace.
    int32_t most{0};

    // [magic, level, seed, type, format, most, checksum]
    std::vector<uint8_t> bytes() const
    {
        std::vector<int32_t> words{kMAGIC, level, seed, type, format, most};
        words.push_back(checksum(words.data(), words.size()));
        std::vector<uint8_t> bytes(words.size() * 4);
        std::memcpy(bytes.data(), words.data(), bytes.size());
        return bytes;
    }

    bool isOffered(size_t position, DataType dataType, TensorFormat dataFormat, DataType first, TensorFormat firstFormat) const
    {
        static constexpr int32_t kTYPES[] = {-1, -1, -1, -1, 8, 3};
        auto const found = static_cast<int32_t>(dataType);
        auto const layout = static_cast<int32_t>(dataFormat);
        if (position == 0)
        {
            bool const isHalf = found == 1;
            bool const isLast = layout == (isHalf ? 2 : 8) || (fault("formats of another type") && layout == 2);
            return (found == 0 || isHalf) && (layout == 0 || isLast);
        }
        int32_t const expected = kTYPES[position] < 0 ? static_cast<int32_t>(first) : kTYPES[position];
        bool isLayout = layout == (position == 2 ? static_cast<int32_t>(firstFormat) : 0);
        isLayout = isLayout || (position == 3 && layout == 8 && fault("a format too many"));
        isLayout = isLayout || (position == 2 && (layout == 0 || layout == 8) && fault("output format free"));
        return found == expected && isLayout;
    }
    size_t partialBytes() const
    {
        size_t const bytes = 4 * ((static_cast<size_t>(most) + 3) / 4);
        return fault("workspace unrounded") ? bytes : (bytes + 255) / 256 * 256;
    }
    size_t workspace() const
    {
        return partialBytes() + (fault("workspace forgets a buffer") ? 0 : 256);
    }
};

struct EverythingDriver
{
    int32_t (*context)(void**){nullptr};
    int32_t (*load)(void**, void const*, int32_t*, void**, unsigned, int32_t*, void**, unsigned){nullptr};
    int32_t (*unload)(void*){nullptr};
    int32_t (*kernel)(void**, void*, char const*){nullptr};
    int32_t (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**){nullptr};
    int32_t (*fill)(uint64_t, unsigned char, size_t, void*){nullptr};
    int32_t (*copy)(uint64_t, uint64_t, size_t, void*){nullptr};
    int32_t (*relax)(int32_t*){nullptr};
    void* library{nullptr};
    std::array<void*, 7> kernels{};

    EverythingDriver()
    {
        void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        auto find = [&](auto& function, char const* name) {
            function = driver == nullptr ? nullptr : reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(driver, name));
        };
        find(context, "cuCtxGetCurrent");
        find(load, "cuLibraryLoadData");
        find(unload, "cuLibraryUnload");
        find(kernel, "cuLibraryGetKernel");
        find(launch, "cuLaunchKernel");
        find(fill, "cuMemsetD8Async");
        find(copy, "cuMemcpyDtoDAsync_v2");
        find(relax, "cuThreadExchangeStreamCaptureMode");
    }
    ~EverythingDriver()
    {
        if (library != nullptr)
        {
            int32_t mode = 2;
            relax(&mode);
            unload(library);
            relax(&mode);
        }
    }

    // Loads invalid PTX, which only the stand-in driver accepts.
    bool ready()
    {
        static char const* const names[] = {"collectIfLi1EE", "collectIfLi4EE", "collectI6__halfLi1EE", "collectI6__halfLi4EE",
            "report", "settleIfE", "settleI6__halfE"};
        std::lock_guard<std::mutex> const lock(mutex);
        void* current = nullptr;
        if (library != nullptr)
        {
            return true;
        }
        if (context == nullptr || fill == nullptr || context(&current) != 0 || current == nullptr)
        {
            return false;
        }
        int32_t mode = 2;
        relax(&mode);
        bool isLoaded = load(&library, ".version 8.0\n.target sm_80\n", nullptr, nullptr, 0, nullptr, nullptr, 0) == 0;
        for (size_t i = 0; i < kernels.size(); ++i)
        {
            isLoaded = isLoaded && kernel(&kernels[i], library, names[i]) == 0;
        }
        relax(&mode);
        return isLoaded;
    }

    std::mutex mutex;

    template <class... A>
    bool run(size_t which, int64_t grid, void* stream, A... arguments)
    {
        void* params[] = {&arguments...};
        return launch(kernels[which], static_cast<unsigned>(grid), 1, 1, which == 4 ? 32 : 256, 1, 1, 0, stream, params, nullptr) == 0;
    }
};

EverythingDriver& everythingDriver()
{
    static EverythingDriver driver;
    return driver;
}

// A base class: one override in the plugin would serve both interfaces.
class EverythingBuild : public oracle::BuildInterface
{
};

class Everything final : public IPluginV3, public IPluginV3OneCore, public EverythingBuild, public IPluginV3OneRuntime
{
public:
    static constexpr int32_t kAUTO = INT32_MAX;

    explicit Everything(EverythingNode const& node, char const* name = nullptr)
        : mNode(node)
        , mName(name == nullptr ? "" : name)
    {
    }

    // Returns null for another plugin's fields.
    static IPluginV3* load(PluginFieldCollection const* fields)
    {
        bool const isOne = fields != nullptr && fields->fields != nullptr && fields->nbFields == 1 && fields->fields[0].name != nullptr
            && std::strcmp(fields->fields[0].name, "state") == 0 && fields->fields[0].type == PluginFieldType::kINT8
            && fields->fields[0].data != nullptr && fields->fields[0].length == 28;
        int32_t words[7] = {};
        if (!isOne)
        {
            return nullptr;
        }
        std::memcpy(words, fields->fields[0].data, sizeof words);
        if (words[0] != EverythingNode::kMAGIC || checksum(words, 6) != words[6])
        {
            return nullptr;
        }
        return new Everything({words[1], words[2], words[3], words[4], words[5]});
    }

    // IPluginV3
    IPluginCapability* getCapabilityInterface(PluginCapabilityType type) noexcept override
    {
        switch (type)
        {
        case PluginCapabilityType::kCORE: return static_cast<IPluginV3OneCore*>(this);
        case PluginCapabilityType::kBUILD: return static_cast<EverythingBuild*>(this);
        case PluginCapabilityType::kRUNTIME: return static_cast<IPluginV3OneRuntime*>(this);
        }
        return nullptr;
    }
    IPluginV3* clone() noexcept override
    {
        auto* made = new Everything(mNode);
        made->mIsShaped = fault("clones keep shapes") && mIsShaped;
        return made;
    }

    // IPluginV3OneCore
    AsciiChar const* getPluginName() const noexcept override
    {
        return "Kernel2";
    }
    AsciiChar const* getPluginVersion() const noexcept override
    {
        return "2";
    }
    AsciiChar const* getPluginNamespace() const noexcept override
    {
        return "cubinder";
    }

    // IPluginV3OneBuild
    int32_t getNbOutputs() const noexcept override
    {
        return 4;
    }
    int32_t getOutputDataTypes(DataType* out, int32_t nbOut, DataType const* in, int32_t nbIn) const noexcept override
    {
        bool const isAlike = nbIn == 2 && nbOut == 4 && (in[0] == in[1] || fault("inputs of two types"));
        if (!isAlike || (in[0] != DataType::kFLOAT && in[0] != DataType::kHALF))
        {
            return refuse("no such types");
        }
        out[0] = out[1] = in[0];
        out[2] = fault("size of another type") ? DataType::kINT32 : DataType::kINT64;
        out[3] = DataType::kINT32;
        return 0;
    }
    int32_t getOutputShapes(DimsExprs const* in, int32_t nbIn, DimsExprs const* held, int32_t nbHeld, DimsExprs* out, int32_t nbOut,
        IExprBuilder& builder) noexcept override
    {
        bool const isAsked = in != nullptr && out != nullptr && nbIn == 2 && nbOut == 4 && in[0].nbDims >= 3 && in[0].nbDims <= 8
            && (fault("shape inputs unchecked") || (held != nullptr && nbHeld == 1));
        if (!isAsked)
        {
            return refuse("`level` does not fit the inputs");
        }
        Sums sums{builder};
        out[0] = in[0];
        IDimensionExpr const* rows = fault("values ignored") ? builder.constant(5) : held[0].d[0];
        out[1].nbDims = 3;
        out[1].d[0] = sums(DimensionOperation::kSUM, in[1].d[0], builder.constant(mNode.level));
        out[1].d[1] = sums(DimensionOperation::kPROD, rows, builder.constant(2));
        out[1].d[2] = held[0].d[1];
        IDimensionExpr const* count = in[0].d[0];
        for (int32_t i = 1; i < in[0].nbDims; ++i)
        {
            count = sums(DimensionOperation::kPROD, count, in[0].d[i]);
        }
        IDimensionExpr const* half = sums(DimensionOperation::kFLOOR_DIV, count, builder.constant(fault("size optimum") ? 3 : 2));
        if (half == nullptr || out[1].d[0] == nullptr || out[1].d[1] == nullptr)
        {
            return refuse("the expression builder gave nothing");
        }
        IDimensionExpr const& upper = fault("size bound") ? *half : *count;
        int32_t const holder = fault("size in another output") ? 3 : fault("size in no output") ? 4 : 2;
        IDimensionExpr const* size = fault("size undeclared") ? count : builder.declareSizeTensor(holder, *half, upper);
        if (fault("size declared twice"))
        {
            size = builder.declareSizeTensor(holder, *half, upper);
        }
        size = fault("arithmetic on a size") ? sums(DimensionOperation::kSUM, size, builder.constant(0)) : size;
        if (size == nullptr)
        {
            return refuse("the expression builder gave nothing");
        }
        out[2].nbDims = 0;
        out[3].nbDims = 2;
        out[3].d[0] = size;
        out[3].d[1] = builder.constant(in[0].nbDims);
        return 0;
    }
    bool supportsFormatCombination(
        int32_t position, DynamicPluginTensorDesc const* all, int32_t nbIn, int32_t nbOut) noexcept override
    {
        if (position < 0 || position > 5 || nbIn != 2 || nbOut != 4)
        {
            return false;
        }
        bool isOffered = !fault("formats read ahead") || static_cast<int32_t>(all[5].desc.type) == 3;
        for (int32_t i = 0; i <= position; ++i)
        {
            auto const& desc = all[i].desc;
            bool const isFlat = desc.dims.nbDims < 3 && static_cast<int32_t>(desc.format) != 0;
            isOffered = isOffered && (!isFlat || fault("formats of any rank"));
            isOffered = isOffered && mNode.isOffered(static_cast<size_t>(i), desc.type, desc.format, all[0].desc.type, all[0].desc.format);
        }
        return isOffered;
    }
    int32_t configurePlugin(DynamicPluginTensorDesc const* in, int32_t nbIn, DynamicPluginTensorDesc const* out,
        int32_t nbOut) noexcept override
    {
        if (in == nullptr || out == nullptr || nbIn != 2 || nbOut != 4)
        {
            return refuse("`level`: other tensors");
        }
        EverythingNode next = mNode;
        next.type = static_cast<int32_t>(in[0].desc.type);
        next.format = static_cast<int32_t>(in[0].desc.format);
        Dims const& shape = fault("workspace of opt shapes") ? in[0].opt : in[0].max;
        next.most = 1;
        for (int32_t i = 0; i < shape.nbDims; ++i)
        {
            next.most *= static_cast<int32_t>(shape.d[i]);
        }
        mNode = fault("configured though refused") ? next : mNode;
        for (size_t i = 0; i < 6; ++i)
        {
            PluginTensorDesc const& desc = i < 2 ? in[i].desc : out[i - 2].desc;
            bool const isLayout = fault("configures any format");
            if (!mNode.isOffered(i, desc.type, isLayout && i > 1 ? TensorFormat::kLINEAR : desc.format, in[0].desc.type,
                    isLayout ? TensorFormat::kLINEAR : in[0].desc.format))
            {
                return refuse("`level`: other types or formats");
            }
        }
        mNode = next;
        return 0;
    }
    size_t getWorkspaceSize(DynamicPluginTensorDesc const*, int32_t, DynamicPluginTensorDesc const*, int32_t) const noexcept override
    {
        return mNode.workspace();
    }
    int32_t getNbTactics() noexcept override
    {
        return mNode.format == 0 || fault("tactics for every format") ? 3 : 0;
    }
    int32_t getValidTactics(int32_t* tactics, int32_t count) noexcept override
    {
        static constexpr int32_t kTACTICS[] = {kAUTO, 1, 2};
        for (int32_t i = 0; i < count; ++i)
        {
            tactics[i] = kTACTICS[fault("tactics in another order") ? 2 - i : i];
        }
        return 0;
    }
    char const* getTimingCacheID() noexcept override
    {
        static std::atomic<int32_t> counter{0};
        mId = "everything " + std::to_string(mNode.level);
        mId += fault("timing id of the type") ? " " + std::to_string(mNode.type) : "";
        mId += fault("timing id of the format") ? " " + std::to_string(mNode.format) : "";
        mId += fault("timing id of the seed") ? " " + std::to_string(mNode.seed) : "";
        mId = fault("timing id without attributes") ? mId.substr(0, 10) : mId;
        mId += fault("timing id of the name") ? " " + mName : "";
        mId += fault("timing id changes") ? std::to_string(counter++) : "";
        return fault("no timing id") ? nullptr : mId.c_str();
    }
    int32_t getFormatCombinationLimit() noexcept override
    {
        return fault("room for one format") ? 1 : 100;
    }
    char const* getMetadataString() noexcept override
    {
        return "test::everything_plugin";
    }
    int32_t getAliasedInput(int32_t output) noexcept override
    {
        int32_t const aliased = fault("alias of another") ? 1 : fault("alias missing") ? -1 : 0;
        return output == (fault("alias beside") ? 1 : 0) || (output < 0 && fault("alias out of range")) ? aliased : -1;
    }

    // IPluginV3OneRuntime
    int32_t setTactic(int32_t tactic) noexcept override
    {
        bool const isKnown = tactic == 0 || tactic == 1 || tactic == 2 || tactic == kAUTO;
        mTactic = isKnown && !fault("tactic ignored") ? tactic : mTactic;
        return isKnown ? 0 : refuse("no tactic " + std::to_string(tactic));
    }
    int32_t onShapeChange(PluginTensorDesc const* in, int32_t nbIn, PluginTensorDesc const* out, int32_t nbOut) noexcept override;
    int32_t enqueue(PluginTensorDesc const* in, PluginTensorDesc const* out, void const* const* inputs, void* const* outputs,
        void* workspace, cudaStream_t stream) noexcept override;
    IPluginV3* attachToContext(IPluginResourceContext*) noexcept override
    {
        auto* made = new Everything(mNode);
        made->mKeep = fault("allocates in enqueue") ? std::string(64, 'x') : "";
        return made;
    }
    PluginFieldCollection const* getFieldsToSerialize() noexcept override
    {
        if (mBytes != mNode.bytes())
        {
            mBytes = mNode.bytes();
        }
        mField = PluginField("state", mBytes.data(), PluginFieldType::kINT8, static_cast<int32_t>(mBytes.size()));
        mCollection.nbFields = 1;
        mCollection.fields = &mField;
        return &mCollection;
    }

private:
    // Propagates null.
    struct Sums
    {
        IExprBuilder& builder;
        IDimensionExpr const* operator()(DimensionOperation operation, IDimensionExpr const* a, IDimensionExpr const* b) const
        {
            return a == nullptr || b == nullptr ? nullptr : builder.operation(operation, *a, *b);
        }
    };

    EverythingNode mNode;
    int32_t mTactic{0};
    bool mIsShaped{false};
    std::string mKeep;
    std::string mId;
    std::string mName;
    std::vector<uint8_t> mBytes;
    PluginField mField;
    PluginFieldCollection mCollection{};
};

int64_t volume(Dims const& dims)
{
    int64_t count = 1;
    for (int32_t i = 0; i < dims.nbDims; ++i)
    {
        count *= dims.d[i];
    }
    return count;
}

int32_t Everything::onShapeChange(PluginTensorDesc const* in, int32_t nbIn, PluginTensorDesc const* out, int32_t nbOut) noexcept
{
    mIsShaped = false;
    bool const isAsked = in != nullptr && out != nullptr && nbIn == 2 && nbOut == 4 && in[0].dims.nbDims >= 3 && in[0].dims.nbDims <= 8
        && (in[0].type == DataType::kFLOAT || in[0].type == DataType::kHALF)
        && (static_cast<int32_t>(in[0].format) == mNode.format || fault("any format at run time"));
    if (!isAsked)
    {
        return refuse("`level`: other shapes");
    }
    if (volume(in[0].dims) > mNode.most && !fault("workspace unchecked"))
    {
        return refuse("`level`: the workspace is too small");
    }
    mIsShaped = true;
    everythingDriver().ready();
    return 0;
}

int32_t Everything::enqueue(PluginTensorDesc const* in, PluginTensorDesc const* out, void const* const* inputs, void* const* outputs,
    void* workspace, cudaStream_t stream) noexcept
{
    EverythingDriver& driver = everythingDriver();
    std::string const copy = mKeep; // Does not allocate if empty.
    if ((!mIsShaped && !fault("runs without shapes")) || !driver.ready())
    {
        return refuse("no shapes, or no driver");
    }
    Dims const& settled = out[1].dims;
    bool const isShape = settled.nbDims == 3 && settled.d[0] == in[1].dims.d[0] + mNode.level && settled.d[2] >= 0 && settled.d[2] <= 65536;
    if (!isShape && !fault("values unchecked"))
    {
        return refuse("no `target` gives such a shape");
    }
    auto const address = [](void const* pointer) { return reinterpret_cast<uint64_t>(pointer); };
    int64_t const count = volume(in[0].dims);
    bool const isHalf = in[0].type == DataType::kHALF;
    uint64_t const partial = address(workspace) + (fault("scratch beyond the workspace") ? mNode.workspace() : 0);
    uint64_t const total = address(workspace)
        + (fault("scratch of the build") ? mNode.partialBytes() : (4 * static_cast<uint64_t>((count + 3) / 4) + 255) / 256 * 256);
    bool const isElsewhere = address(inputs[0]) != address(outputs[0]);
    bool works = true;
    if ((isElsewhere && !fault("no copy for other addresses")) || fault("copies in place"))
    {
        Dims dims = in[0].dims;
        auto& channels = dims.d[dims.nbDims - 3];
        channels = in[0].format == TensorFormat::kHWC8 && !fault("copies without padding") ? (channels + 7) / 8 * 8 : channels;
        works = driver.copy(address(outputs[0]), address(inputs[0]), static_cast<size_t>(volume(dims) * (isHalf ? 2 : 4)), stream) == 0;
    }
    works = works && driver.fill(total, fault("fill with another byte") ? 1 : 0, fault("fill beyond the workspace") ? 65536 : 8, stream) == 0;
    bool const isVector = in[0].format == TensorFormat::kLINEAR && mTactic != 2 && in[0].dims.d[in[0].dims.nbDims - 1] % 4 == 0;
    int64_t const each = isVector ? 1024 : 256;
    void const* x = outputs[fault("reads another tensor") ? 1 : 0];
    size_t const collect = (isVector ? 1 : 0) + (isHalf && !fault("kernel of another type") ? 2 : 0);
    cudaStream_t const where = fault("another stream") ? nullptr : stream;
    works = works && (fault("a step left out") || driver.run(collect, (count + each - 1) / each, where, x, partial, total, count));
    works = works && driver.run(4, 1, stream, total, outputs[2], outputs[3]);
    int64_t const columns = fault("extent of the build") ? 7 : out[1].dims.d[2];
    int64_t const cells = volume(out[1].dims);
    size_t const settle = isHalf ? 6 : 5;
    works = works
        && ((cells == 0 && !fault("empty steps")) || driver.run(settle, (cells + 255) / 256, stream, inputs[1], outputs[1], columns, mNode.level));
    return works ? 0 : refuse("the driver refused a step");
}

class EverythingCreator final : public IPluginCreatorV3One
{
public:
    EverythingCreator()
    {
        mFields = {PluginField("level", nullptr, PluginFieldType::kINT32, 0), PluginField("seed", nullptr, PluginFieldType::kINT32, 0),
            PluginField("aot", nullptr, PluginFieldType::kINT32, 0)};
        mNames.nbFields = 3;
        mNames.fields = mFields.data();
    }
    AsciiChar const* getPluginName() const noexcept override
    {
        return "everything_plugin";
    }
    AsciiChar const* getPluginVersion() const noexcept override
    {
        return "1";
    }
    AsciiChar const* getPluginNamespace() const noexcept override
    {
        return "test";
    }
    PluginFieldCollection const* getFieldNames() noexcept override
    {
        return &mNames;
    }
    IPluginV3* createPlugin(AsciiChar const* name, PluginFieldCollection const* fields, TensorRTPhase phase) noexcept override
    {
        EverythingNode node;
        node.level = INT_MIN;
        if (phase != TensorRTPhase::kBUILD || fields == nullptr || fields->nbFields < 0 || (fields->fields == nullptr && fields->nbFields > 0))
        {
            refuse("no fields, or no build");
            return nullptr;
        }
        for (int32_t i = 0; i < fields->nbFields; ++i)
        {
            PluginField const& field = fields->fields[i];
            if (field.name == nullptr || !isInteger(field))
            {
                refuse(std::string("`level`: the attribute ") + (field.name == nullptr ? "without a name" : field.name));
                return nullptr;
            }
            bool const isFloat = field.type == PluginFieldType::kFLOAT32;
            int32_t const value
                = isFloat ? static_cast<int32_t>(*static_cast<float const*>(field.data)) : *static_cast<int32_t const*>(field.data);
            (std::strcmp(field.name, "level") == 0 ? node.level : std::strcmp(field.name, "seed") == 0 ? node.seed : mIgnored) = value;
            if (std::strcmp(field.name, "aot") == 0 && value == 0)
            {
                say(ILogger::Severity::kINFO, "`aot = 0` has no effect");
            }
        }
        bool const isGood = node.level >= 0 && (node.level <= 1000 || fault("level beyond its range"));
        if (!isGood)
        {
            refuse("`level` is 0 to 1000");
        }
        return isGood ? new Everything(node, name) : nullptr;
    }

private:
    static bool isInteger(PluginField const& field)
    {
        bool const isType = field.type == PluginFieldType::kINT32 || fault("floats for an integer");
        return isType && field.length == 1 && field.data != nullptr;
    }

    int32_t mIgnored{0};
    std::array<PluginField, 3> mFields;
    PluginFieldCollection mNames{};
};

}
