// Copyright of the Cubinder authors; Apache-2.0.
//
// A handwritten circular padding: baseline of Cubinder's `enqueue`, and a test of the oracle. Attribute `pads` (INTS:
// before and after, last dimension first); float32, linear, ranks 1 to 8.
#include "driver.hpp"

#include <NvInferRuntime.h>

#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>

namespace reference
{

using namespace nvinfer1;

namespace
{

constexpr char kNAME[] = "CircPadReference";
constexpr char kVERSION[] = "1";
constexpr char kNAMESPACE[] = "reference";
constexpr uint32_t kTHREADS = 256;
constexpr int32_t kMOST_PADS = 2 * Dims::MAX_DIMS;

std::atomic<ILoggerFinder*> gFinder{nullptr};

__attribute__((format(printf, 1, 2))) void error(char const* format, ...)
{
    char text[512];
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

// The checksum is the last member.
struct State
{
    uint32_t magic{0x31525043}; // "CPR1"
    int32_t count{0};
    int32_t pads[kMOST_PADS]{};
    uint64_t checksum{0};

    uint64_t sum() const
    {
        uint64_t hash = 0xCBF29CE484222325ULL; // FNV-1a
        auto const* bytes = reinterpret_cast<uint8_t const*>(this);
        for (size_t i = 0; i < offsetof(State, checksum); ++i)
        {
            hash = (hash ^ bytes[i]) * 0x100000001B3ULL;
        }
        return hash;
    }
    int32_t before(int32_t rank, int32_t dimension) const
    {
        int32_t const pair = rank - 1 - dimension;
        return 2 * pair < count ? pads[2 * pair] : 0;
    }
    int32_t both(int32_t rank, int32_t dimension) const
    {
        int32_t const pair = rank - 1 - dimension;
        return 2 * pair < count ? pads[2 * pair] + pads[2 * pair + 1] : 0;
    }
    bool fits(int32_t rank) const
    {
        return rank >= 1 && rank <= Dims::MAX_DIMS && count <= 2 * rank;
    }
};
static_assert(sizeof(State) == 80, "no padding: every byte is covered by the checksum");

class Plugin final : public IPluginV3,
                     public IPluginV3OneCore,
                     public IPluginV3OneBuildV2,
                     public IPluginV3OneRuntime
{
public:
    explicit Plugin(State const& state)
        : mState(state)
    {
        refer();
    }
    Plugin(Plugin const& other)
        : mState(other.mState)
    {
        refer();
    }

    IPluginCapability* getCapabilityInterface(PluginCapabilityType type) noexcept override
    {
        switch (type)
        {
        case PluginCapabilityType::kCORE: return static_cast<IPluginV3OneCore*>(this);
        case PluginCapabilityType::kBUILD: return static_cast<IPluginV3OneBuildV2*>(this);
        case PluginCapabilityType::kRUNTIME: return static_cast<IPluginV3OneRuntime*>(this);
        }
        return nullptr;
    }
    Plugin* clone() noexcept override
    {
        return new (std::nothrow) Plugin(*this);
    }

    AsciiChar const* getPluginName() const noexcept override
    {
        return kNAME;
    }
    AsciiChar const* getPluginVersion() const noexcept override
    {
        return kVERSION;
    }
    AsciiChar const* getPluginNamespace() const noexcept override
    {
        return kNAMESPACE;
    }

    int32_t getNbOutputs() const noexcept override
    {
        return 1;
    }
    int32_t getOutputDataTypes(
        DataType* outputs, int32_t nbOutputs, DataType const* inputs, int32_t nbInputs) const noexcept override
    {
        if (nbInputs != 1 || nbOutputs != 1 || inputs[0] != DataType::kFLOAT)
        {
            error("%s: expects one float32 input and one output", kNAME);
            return 1;
        }
        outputs[0] = inputs[0];
        return 0;
    }
    int32_t getOutputShapes(DimsExprs const* inputs, int32_t nbInputs, DimsExprs const*, int32_t, DimsExprs* outputs,
        int32_t nbOutputs, IExprBuilder& builder) noexcept override
    {
        if (nbInputs != 1 || nbOutputs != 1 || inputs == nullptr || outputs == nullptr || !mState.fits(inputs[0].nbDims))
        {
            error("%s: `pads` of length %d do not fit the input", kNAME, mState.count);
            return 1;
        }
        DimsExprs const& x = inputs[0];
        DimsExprs& y = outputs[0];
        y.nbDims = x.nbDims;
        for (int32_t i = 0; i < x.nbDims; ++i)
        {
            int32_t const both = mState.both(x.nbDims, i);
            y.d[i] = x.d[i];
            if (both != 0)
            {
                IDimensionExpr const* sum = builder.constant(both);
                y.d[i] = sum == nullptr ? nullptr : builder.operation(DimensionOperation::kSUM, *x.d[i], *sum);
            }
            if (y.d[i] == nullptr)
            {
                error("%s: the expression builder returned no dimension", kNAME);
                return 1;
            }
        }
        return 0;
    }
    bool supportsFormatCombination(
        int32_t position, DynamicPluginTensorDesc const* all, int32_t nbInputs, int32_t nbOutputs) noexcept override
    {
        if (nbInputs != 1 || nbOutputs != 1 || position < 0 || position > 1)
        {
            return false;
        }
        PluginTensorDesc const& desc = all[position].desc;
        return desc.type == DataType::kFLOAT && desc.format == TensorFormat::kLINEAR;
    }
    int32_t configurePlugin(DynamicPluginTensorDesc const* in, int32_t nbInputs, DynamicPluginTensorDesc const* out,
        int32_t nbOutputs) noexcept override
    {
        auto const isRows = [](DynamicPluginTensorDesc const& tensor) {
            return tensor.desc.type == DataType::kFLOAT && tensor.desc.format == TensorFormat::kLINEAR;
        };
        bool const fits = nbInputs == 1 && nbOutputs == 1 && in != nullptr && out != nullptr && isRows(in[0]) && isRows(out[0])
            && mState.fits(in[0].desc.dims.nbDims);
        if (!fits)
        {
            error("%s: cannot be configured for this node", kNAME);
        }
        return fits ? 0 : 1;
    }

    int32_t setTactic(int32_t tactic) noexcept override
    {
        if (tactic != 0)
        {
            error("%s: no tactic %d", kNAME, tactic);
        }
        return tactic == 0 ? 0 : 1;
    }
    int32_t onShapeChange(
        PluginTensorDesc const* in, int32_t nbInputs, PluginTensorDesc const* out, int32_t nbOutputs) noexcept override
    {
        // TensorRT-RTX calls this before every enqueue.
        if (mKernel != nullptr && nbInputs == 1 && nbOutputs == 1 && in != nullptr && isKnown(in[0]))
        {
            return 0;
        }
        mKernel = nullptr;
        if (nbInputs != 1 || nbOutputs != 1 || in == nullptr || out == nullptr || in[0].type != DataType::kFLOAT
            || !mState.fits(in[0].dims.nbDims) || !describe(in[0].dims))
        {
            error("%s: cannot run with these inputs: one float32 tensor of rank 1 to 8, the padded one below 2^31", kNAME);
            return 1;
        }
        std::string why;
        mKernel = circPadKernel(why);
        if (mKernel == nullptr)
        {
            error("%s: cannot load the kernel: %s", kNAME, why.c_str());
            return 1;
        }
        mDims = in[0].dims;
        return 0;
    }
    int32_t enqueue(PluginTensorDesc const*, PluginTensorDesc const*, void const* const* inputs, void* const* outputs,
        void*, cudaStream_t stream) noexcept override
    {
        if (mKernel == nullptr)
        {
            error("%s: no kernel to launch", kNAME);
            return 1;
        }
        if (mBlocks == 0)
        {
            return 0;
        }
        mX = inputs[0];
        mY = outputs[0];
        int32_t const code = launch(mKernel, mBlocks, kTHREADS, reinterpret_cast<Stream*>(stream), mArguments);
        if (code != 0)
        {
            error("%s: cuLaunchKernel failed with %d", kNAME, code);
        }
        return code;
    }
    IPluginV3* attachToContext(IPluginResourceContext*) noexcept override
    {
        std::string why;
        circPadKernel(why); // Early, so that a first run can be captured. Building needs no driver.
        return clone();
    }
    PluginFieldCollection const* getFieldsToSerialize() noexcept override
    {
        return &mFields;
    }

private:
    void refer()
    {
        mField = PluginField("state", &mState, PluginFieldType::kINT8, sizeof(State));
        mFields.nbFields = 1;
        mFields.fields = &mField;
    }

    bool isKnown(PluginTensorDesc const& x) const
    {
        return x.type == DataType::kFLOAT && x.dims.nbDims == mDims.nbDims
            && std::memcmp(x.dims.d, mDims.d, sizeof(mDims.d[0]) * static_cast<size_t>(mDims.nbDims)) == 0;
    }

    // False above the kernel's counter.
    bool describe(Dims const& dims)
    {
        int32_t outer = 0;
        while (outer < dims.nbDims && mState.both(dims.nbDims, outer) == 0)
        {
            ++outer;
        }
        Geometry geometry{};
        uint64_t count = 1;
        uint64_t leading = 1;
        for (int32_t i = dims.nbDims - 1; i >= 0; --i)
        {
            if (dims.d[i] < 0 || dims.d[i] > INT32_MAX)
            {
                return false;
            }
            auto const in = static_cast<uint32_t>(dims.d[i]);
            uint32_t const out = in + static_cast<uint32_t>(mState.both(dims.nbDims, i));
            count *= out;
            if (count > INT32_MAX)
            {
                return false;
            }
            if (i < outer)
            {
                leading *= in;
            }
            else if (in != 0)
            {
                uint32_t const d = geometry.rank++;
                geometry.in[d] = in;
                geometry.out[d] = out;
                geometry.shift[d] = in - static_cast<uint32_t>(mState.before(dims.nbDims, i)) % in;
            }
            else if (out != 0)
            {
                return false;
            }
        }
        if (outer > 0 && count != 0)
        {
            uint32_t const d = geometry.rank++;
            geometry.in[d] = geometry.out[d] = geometry.shift[d] = static_cast<uint32_t>(leading);
        }
        geometry.count = static_cast<uint32_t>(count);
        mGeometry = geometry;
        mBlocks = (geometry.count + kTHREADS - 1) / kTHREADS;
        return true;
    }

    State mState;
    PluginField mField;
    PluginFieldCollection mFields;

    // For the shape `mDims`; not prepared if `mKernel` is null.
    Kernel* mKernel{nullptr};
    Dims mDims{};
    uint32_t mBlocks{0};
    void const* mX{nullptr};
    void* mY{nullptr};
    Geometry mGeometry{};
    void* mArguments[3]{&mX, &mY, &mGeometry};
};

class Creator final : public IPluginCreatorV3One
{
public:
    Creator()
    {
        mNames.nbFields = 1;
        mNames.fields = &mPads;
    }
    AsciiChar const* getPluginName() const noexcept override
    {
        return kNAME;
    }
    AsciiChar const* getPluginVersion() const noexcept override
    {
        return kVERSION;
    }
    AsciiChar const* getPluginNamespace() const noexcept override
    {
        return kNAMESPACE;
    }
    PluginFieldCollection const* getFieldNames() noexcept override
    {
        return &mNames;
    }
    IPluginV3* createPlugin(AsciiChar const*, PluginFieldCollection const* fields, TensorRTPhase phase) noexcept override
    {
        State state;
        bool isGood = false;
        bool const isReadable
            = fields != nullptr && fields->nbFields >= 0 && (fields->nbFields == 0 || fields->fields != nullptr);
        if (!isReadable)
        {
            error("%s: no collection of fields", kNAME);
        }
        else if (phase == TensorRTPhase::kBUILD)
        {
            isGood = fromAttributes(*fields, state);
        }
        else if (phase == TensorRTPhase::kRUNTIME)
        {
            isGood = fromEngine(*fields, state);
        }
        else
        {
            error("%s: unknown phase %d", kNAME, static_cast<int32_t>(phase));
        }
        return isGood ? new (std::nothrow) Plugin(state) : nullptr;
    }

private:
    static bool fromAttributes(PluginFieldCollection const& fields, State& state)
    {
        PluginField const* pads = nullptr;
        for (int32_t i = 0; i < fields.nbFields; ++i)
        {
            PluginField const& field = fields.fields[i];
            if (field.name == nullptr || std::strcmp(field.name, "pads") != 0 || pads != nullptr)
            {
                error("%s: `pads` is the only attribute, found `%s`", kNAME, field.name == nullptr ? "" : field.name);
                return false;
            }
            pads = &field;
        }
        bool const isList = pads != nullptr && pads->length >= 0 && pads->length <= kMOST_PADS && pads->length % 2 == 0
            && (pads->length == 0 || (pads->type == PluginFieldType::kINT32 && pads->data != nullptr));
        if (!isList)
        {
            error("%s: `pads` must be an even number of integers, at most %d", kNAME, kMOST_PADS);
            return false;
        }
        state.count = pads->length;
        if (pads->length != 0)
        {
            std::memcpy(state.pads, pads->data, sizeof(int32_t) * static_cast<size_t>(pads->length));
        }
        for (int32_t i = 0; i < state.count; ++i)
        {
            if (state.pads[i] < 0 || state.pads[i] > (1 << 24))
            {
                error("%s: `pads` must lie between 0 and 2^24, found %d", kNAME, state.pads[i]);
                return false;
            }
        }
        state.checksum = state.sum();
        return true;
    }

    static bool fromEngine(PluginFieldCollection const& fields, State& state)
    {
        bool const isState = fields.nbFields == 1 && fields.fields[0].name != nullptr
            && std::strcmp(fields.fields[0].name, "state") == 0 && fields.fields[0].type == PluginFieldType::kINT8
            && fields.fields[0].length == sizeof(State) && fields.fields[0].data != nullptr;
        if (!isState)
        {
            error("%s: the engine does not contain this plugin's fields", kNAME);
            return false;
        }
        State const expected;
        std::memcpy(&state, fields.fields[0].data, sizeof(State));
        if (state.magic != expected.magic || state.checksum != state.sum())
        {
            error("%s: the engine is damaged", kNAME);
            return false;
        }
        return true;
    }

    PluginField mPads{"pads", nullptr, PluginFieldType::kINT32, 0};
    PluginFieldCollection mNames;
};

}

}

extern "C" __attribute__((visibility("default"))) void setLoggerFinder(nvinfer1::ILoggerFinder* finder)
{
    reference::gFinder.store(finder);
}

extern "C" __attribute__((visibility("default"))) nvinfer1::IPluginCreatorInterface* const* getCreators(int32_t& count)
{
    static reference::Creator creator;
    static nvinfer1::IPluginCreatorInterface* const creators[] = {&creator};
    count = 1;
    return creators;
}
