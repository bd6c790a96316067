// Copyright of the Cubinder authors; Apache-2.0.
//
// A plugin library with planted faults (`ORACLE_FAULT`) for the oracle. Two plugins have no kernel: enqueue fails, as
// without a driver.
#include "broken_attributes.hpp"
#include "broken_everything.hpp"

#include <array>
#include <atomic>
#include <fcntl.h>
#include <memory>
#include <new>
#include <unistd.h>
#include <vector>

namespace
{

struct Model
{
    int32_t op{0};
    std::vector<int32_t> values;
    int32_t type{-1};

    char const* attribute() const
    {
        return op == 0 ? "pads" : "block_size";
    }
    int32_t inputs() const
    {
        return 1;
    }
    int64_t more(int32_t rank, int32_t dimension) const
    {
        size_t const pair = static_cast<size_t>(rank - 1 - dimension);
        return op == 0 && 2 * pair < values.size() ? values[2 * pair] + values[2 * pair + 1] : 0;
    }
    bool fits(int32_t rank) const
    {
        return rank >= (op == 0 ? 1 : 0) && rank <= 8 && (op == 1 || values.size() <= 2 * static_cast<size_t>(rank));
    }
    bool takes(int32_t dataType) const
    {
        return dataType == 0 || dataType == 1;
    }

    // [magic, op, type, values..., checksum]
    std::vector<uint8_t> bytes() const
    {
        std::vector<int32_t> words{0x42524B31, op, type};
        words.insert(words.end(), values.begin(), values.end());
        words.push_back(checksum(words.data(), words.size()));
        std::vector<uint8_t> bytes(words.size() * 4);
        std::memcpy(bytes.data(), words.data(), bytes.size());
        return bytes;
    }
    static bool parse(PluginField const& field, Model& model)
    {
        if (fault("truncation unnoticed") && field.length >= 16)
        {
            model = Model{};
            return true;
        }
        if (field.length < 16 || field.length % 4 != 0)
        {
            return false;
        }
        std::vector<int32_t> words(static_cast<size_t>(field.length) / 4);
        std::memcpy(words.data(), field.data, static_cast<size_t>(field.length));
        bool const isWhole = fault("damage unnoticed") || checksum(words.data(), words.size() - 1) == words.back();
        if (!isWhole || words[0] != 0x42524B31)
        {
            return false;
        }
        model.op = words[1];
        model.type = words[2];
        model.values.assign(words.begin() + 3, words.end() - 1);
        return true;
    }
};

std::atomic<int32_t> gCounter{0};
int32_t gRacing = 0;
std::shared_ptr<Model> gShared;

// A base class: one override in the plugin would serve both interfaces.
class Root : public IPluginV3
{
public:
    InterfaceInfo getInterfaceInfo() const noexcept override
    {
        return {fault("plugin kind") ? "PLUGIN_V3" : "PLUGIN", 1, 0};
    }
};

class Build : public oracle::BuildInterface
{
public:
    InterfaceInfo getInterfaceInfo() const noexcept override
    {
        return {fault("build kind") ? "PLUGIN_V3ONE_CORE" : "PLUGIN_V3ONE_BUILD", oracle::kBUILD_VERSION, 0};
    }
};

class Plugin final : public Root, public IPluginV3OneCore, public Build, public IPluginV3OneRuntime
{
public:
    explicit Plugin(std::shared_ptr<Model> model, bool isRunning)
        : mModel(std::move(model))
        , mIsRunning(isRunning)
    {
        if (fault("leak"))
        {
            mLeak = new char[64];
        }
    }
    ~Plugin() override
    {
        if (fault("clone dies with its original") && mChild != nullptr)
        {
            mChild->mModel = std::make_shared<Model>();
            mChild->mParent = nullptr;
        }
        if (mParent != nullptr)
        {
            mParent->mChild = nullptr;
        }
    }

    IPluginCapability* getCapabilityInterface(PluginCapabilityType type) noexcept override
    {
        if (fault("capability missing") && type == PluginCapabilityType::kRUNTIME)
        {
            return nullptr;
        }
        if (fault("capability moves") && type == PluginCapabilityType::kCORE && mAsked++ == 20)
        {
            return static_cast<IPluginV3OneCore*>(new Plugin(mModel, mIsRunning));
        }
        switch (type)
        {
        case PluginCapabilityType::kCORE: return static_cast<IPluginV3OneCore*>(this);
        case PluginCapabilityType::kBUILD: return static_cast<Build*>(this);
        case PluginCapabilityType::kRUNTIME: return static_cast<IPluginV3OneRuntime*>(this);
        }
        return fault("unknown capability") ? static_cast<IPluginV3OneCore*>(this) : nullptr;
    }
    IPluginV3* clone() noexcept override
    {
        if (fault("null clone"))
        {
            return nullptr;
        }
        if (fault("clone is itself"))
        {
            return this;
        }
        auto model = fault("clone shares state") ? mModel : std::make_shared<Model>(*mModel);
        if (fault("clone forgets the configuration"))
        {
            model->type = -1;
        }
        auto* made = new Plugin(std::move(model), mIsRunning);
        made->mParent = this;
        mChild = made;
        return made;
    }

    AsciiChar const* getPluginName() const noexcept override
    {
        return fault("core name") ? "Colonel" : "Kernel2";
    }
    AsciiChar const* getPluginVersion() const noexcept override
    {
        return fault("core version") ? "1" : "2";
    }
    AsciiChar const* getPluginNamespace() const noexcept override
    {
        return "cubinder";
    }

    int32_t getNbOutputs() const noexcept override
    {
        return fault("two outputs") ? 2 : 1;
    }
    int32_t getOutputDataTypes(DataType* out, int32_t nbOut, DataType const* in, int32_t nbIn) const noexcept override
    {
        auto const type = nbIn > 0 ? static_cast<int32_t>(in[0]) : -1;
        bool const areSame = nbIn == mModel->inputs() && (nbIn == 1 || in[0] == in[1]);
        if (!areSame || nbOut != 1 || !(mModel->takes(type) || fault("takes any type")))
        {
            return refuse("no such types");
        }
        out[0] = fault("output type") ? DataType::kFLOAT : in[0];
        return 0;
    }
    int32_t getOutputShapes(DimsExprs const* in, int32_t nbIn, DimsExprs const*, int32_t, DimsExprs* out, int32_t nbOut,
        IExprBuilder& builder) noexcept override
    {
        if (in == nullptr || out == nullptr || nbIn != mModel->inputs() || nbOut != 1 || !mModel->fits(in[0].nbDims))
        {
            return refuse("`" + std::string(mModel->attribute()) + "` does not fit the inputs");
        }
        out[0].nbDims = in[0].nbDims;
        for (int32_t i = 0; i < in[0].nbDims; ++i)
        {
            int64_t const more = mModel->more(in[0].nbDims, i) + (fault("output shape") ? 1 : 0);
            IDimensionExpr const* d = in[0].d[i];
            if (fault("shape of constants") && !d->isConstant())
            {
                out[0].d[i] = builder.constant(7);
                continue;
            }
            if (more != 0)
            {
                IDimensionExpr const* constant = builder.constant(more);
                d = constant == nullptr && !fault("null dimension")
                    ? nullptr
                    : (constant == nullptr ? constant : builder.operation(DimensionOperation::kSUM, *d, *constant));
                if (d == nullptr && !fault("null dimension"))
                {
                    return refuse("the expression builder gave nothing");
                }
            }
            out[0].d[i] = d;
        }
        return 0;
    }
    bool supportsFormatCombination(
        int32_t position, DynamicPluginTensorDesc const* all, int32_t nbIn, int32_t) noexcept override
    {
        if (position < 0 || position > nbIn)
        {
            return false;
        }
        PluginTensorDesc const& desc = all[position].desc;
        bool const isFormat = desc.format == TensorFormat::kLINEAR
            || (fault("another format") && desc.format == TensorFormat::kHWC8);
        bool const isType = mModel->takes(static_cast<int32_t>(desc.type))
            && (position == 0 || desc.type == all[0].desc.type || fault("mixed types"));
        return isFormat && isType;
    }
    int32_t configurePlugin(DynamicPluginTensorDesc const* in, int32_t nbIn, DynamicPluginTensorDesc const* out,
        int32_t nbOut) noexcept override
    {
        bool const fits = in != nullptr && nbIn == mModel->inputs() && nbOut == 1
            && (mModel->takes(static_cast<int32_t>(in[0].desc.type)) || fault("configures anything"))
            && ((in[0].desc.type == out[0].desc.type && in[0].desc.format == TensorFormat::kLINEAR
                    && out[0].desc.format == TensorFormat::kLINEAR)
                || fault("configures anything"))
            && mModel->fits(in[0].desc.dims.nbDims);
        if (!fits)
        {
            return refuse("`" + std::string(mModel->attribute()) + "` does not fit the configuration");
        }
        if (fault("dynamic shapes refused") && in[0].desc.dims.d[0] < 0)
        {
            return refuse("static shapes only");
        }
        mModel->type = static_cast<int32_t>(in[0].desc.type);
        return 0;
    }
    size_t getWorkspaceSize(DynamicPluginTensorDesc const* in, int32_t, DynamicPluginTensorDesc const*,
        int32_t) const noexcept override
    {
        return fault("workspace from opt") ? static_cast<size_t>(in[0].opt.d[0]) * 256 : 0;
    }
    int32_t getNbTactics() noexcept override
    {
        return 2;
    }
    int32_t getValidTactics(int32_t* tactics, int32_t count) noexcept override
    {
        if (fault("tactics without asking how many"))
        {
            count = 3;
        }
        for (int32_t i = 0; i < count && tactics != nullptr; ++i)
        {
            tactics[i] = i + 1;
        }
        if (count > 0 && tactics != nullptr)
        {
            tactics[0] = fault("tactic 0") ? 0 : fault("negative tactic") ? -4 : tactics[0];
            tactics[0] = fault("duplicate tactics") ? 2 : tactics[0];
        }
        return 0;
    }
    char const* getTimingCacheID() noexcept override
    {
        mId = mModel->attribute();
        for (int32_t value : mModel->values)
        {
            mId += " " + std::to_string(value);
        }
        return fault("timing cache id") ? "same for all" : mId.c_str();
    }
    int32_t getFormatCombinationLimit() noexcept override
    {
        return fault("no formats") ? 0 : 100;
    }
    char const* getMetadataString() noexcept override
    {
        mText = fault("metadata without the op") ? "plugin" : mModel->op == 0 ? "sample::circ_pad_plugin" : "sample::elemwise_add_plugin";
        mText += fault("metadata changes") ? std::to_string(gCounter++) : "";
        return mText.c_str();
    }
    int32_t getAliasedInput(int32_t) noexcept override
    {
        return fault("alias") ? 0 : -1;
    }

    int32_t setTactic(int32_t tactic) noexcept override
    {
        bool const isKnown = fault("tactic refused") ? tactic == 1 : tactic >= 1 && tactic <= 2;
        return isKnown || fault("any tactic") ? 0 : refuse("no tactic " + std::to_string(tactic));
    }
    int32_t onShapeChange(PluginTensorDesc const*, int32_t, PluginTensorDesc const*, int32_t) noexcept override
    {
        return fault("any shape") ? 0 : refuse("no driver");
    }
    int32_t enqueue(PluginTensorDesc const*, PluginTensorDesc const*, void const* const* inputs, void* const* outputs,
        void*, cudaStream_t) noexcept override
    {
        if (fault("copies on the host"))
        {
            std::memcpy(outputs[0], inputs[0], 4);
        }
        return fault("enqueue succeeds") ? 0 : refuse("no driver");
    }
    IPluginV3* attachToContext(IPluginResourceContext* context) noexcept override
    {
        if (fault("attach is itself"))
        {
            return this;
        }
        if (fault("attach wants a context") && context == nullptr)
        {
            return nullptr;
        }
        return fault("null attach") ? nullptr : new Plugin(std::make_shared<Model>(*mModel), mIsRunning);
    }
    PluginFieldCollection const* getFieldsToSerialize() noexcept override
    {
        if (fault("null fields"))
        {
            return nullptr;
        }
        if (fault("aborts"))
        {
            std::abort();
        }
        // Under "fields move" two answers alternate; the older is wiped.
        size_t const turn = fault("fields move") ? mTurn++ % 2 : 0;
        std::fill(mBytes[1 - turn].begin(), mBytes[1 - turn].end(), uint8_t{0});
        std::vector<uint8_t>& bytes = mBytes[turn];
        if (bytes != mModel->bytes())
        {
            bytes = mModel->bytes();
        }
        if (fault("fields change"))
        {
            bytes.back() ^= static_cast<uint8_t>(gCounter++);
        }
        if (fault("threads race"))
        {
            gRacing = bytes[0];
            usleep(50);
            bytes[0] = static_cast<uint8_t>(gRacing++);
        }
        char const* name = fault("field without a name") ? nullptr : "state";
        auto& fields = mFields[turn];
        fields[0] = PluginField(name, bytes.data(), PluginFieldType::kINT8, static_cast<int32_t>(bytes.size()));
        fields[1] = fields[0];
        mCollections[turn].nbFields = fault("field twice") ? 2 : 1;
        mCollections[turn].fields = fields.data();
        return &mCollections[turn];
    }

private:
    std::shared_ptr<Model> mModel;
    bool mIsRunning;
    char* mLeak{nullptr};
    Plugin* mParent{nullptr};
    Plugin* mChild{nullptr};
    int32_t mAsked{0};
    std::string mText;
    std::string mId;
    size_t mTurn{0};
    std::array<std::vector<uint8_t>, 2> mBytes;
    std::array<std::array<PluginField, 2>, 2> mFields;
    std::array<PluginFieldCollection, 2> mCollections{};
};

bool readAttributes(PluginFieldCollection const& fields, Model& model)
{
    std::string const attribute = model.attribute();
    bool isSet = false;
    for (int32_t i = 0; i < fields.nbFields; ++i)
    {
        PluginField const& field = fields.fields[i];
        if (field.name == nullptr || (isSet && attribute == field.name))
        {
            refuse("`" + attribute + "` comes twice, or a field has no name");
            return false;
        }
        if (std::strcmp(field.name, "aot") == 0)
        {
            bool const isAot = field.data != nullptr && *static_cast<int32_t const*>(field.data) != 0;
            if (!isAot && !fault("aot unanswered"))
            {
                say(ILogger::Severity::kWARNING, "`aot = 0` has no effect");
            }
        }
        if (attribute != field.name)
        {
            continue;
        }
        bool const isReadable = field.length >= 0 && (field.length == 0 || field.data != nullptr);
        bool const isType = field.type == PluginFieldType::kINT32 || fault("any field type");
        if (!isReadable || (!isType && field.length > 0))
        {
            refuse("`" + attribute + "` must be integers");
            return false;
        }
        auto const* values = static_cast<int32_t const*>(field.data);
        model.values.assign(values, values + field.length);
        isSet = true;
    }
    bool isGood = model.op == 0 ? isSet && model.values.size() % 2 == 0 && model.values.size() <= 16
                                : model.values.size() == 1 && model.values[0] >= 1 && model.values[0] <= 1024;
    isGood = isGood || (fault("odd pads") && isSet && model.op == 0);
    for (int32_t value : model.values)
    {
        isGood = isGood && (value >= 0 || fault("negative pads"));
    }
    if (!isGood)
    {
        refuse("`" + attribute + "` has no such values");
    }
    return isGood;
}

class OpCreator final : public IPluginCreatorV3One
{
public:
    explicit OpCreator(int32_t op)
        : mOp(op)
    {
        mNames.nbFields = fault("aot undeclared") ? 1 : 2;
        mNames.fields = mFields;
        mFields[0] = PluginField(Model{op, {}, -1}.attribute(), nullptr, PluginFieldType::kINT32, 0);
        mFields[1] = PluginField("aot", nullptr, PluginFieldType::kINT32, 0);
    }
    InterfaceInfo getInterfaceInfo() const noexcept override
    {
        return {fault("creator kind") ? "PLUGIN_CREATOR_V3ONE" : "PLUGIN CREATOR_V3ONE", 1, 0};
    }
    APILanguage getAPILanguage() const noexcept override
    {
        return fault("language") ? APILanguage::kPYTHON : APILanguage::kCPP;
    }
    AsciiChar const* getPluginName() const noexcept override
    {
        return mOp == 0 ? "circ_pad_plugin" : "elemwise_add_plugin";
    }
    AsciiChar const* getPluginVersion() const noexcept override
    {
        return "1";
    }
    AsciiChar const* getPluginNamespace() const noexcept override
    {
        return fault("creator namespace") ? "" : "sample";
    }
    PluginFieldCollection const* getFieldNames() noexcept override
    {
        if (fault("field names change"))
        {
            mFields[0].name = gCounter++ % 2 == 0 ? "pads" : "sdap";
        }
        return fault("null field names") ? nullptr : &mNames;
    }
    IPluginV3* createPlugin(AsciiChar const* name, PluginFieldCollection const* fields, TensorRTPhase phase) noexcept override
    {
        if (fault("node name is read"))
        {
            gCounter += static_cast<int32_t>(std::strlen(name));
        }
        bool const isReadable
            = fields != nullptr && (fields->fields != nullptr || fields->nbFields == 0) && fields->nbFields >= 0;
        if (!isReadable && !fault("collection unchecked"))
        {
            refuse("no fields");
            return nullptr;
        }
        if (phase != TensorRTPhase::kBUILD && !fault("any phase"))
        {
            refuse("this creator serves building only");
            return nullptr;
        }
        auto model = fault("plugins share attributes") && gShared ? gShared : std::make_shared<Model>();
        model->op = mOp;
        gShared = fault("plugins share attributes") ? model : nullptr;
        return readAttributes(*fields, *model) ? new Plugin(model, false) : nullptr;
    }

private:
    int32_t mOp;
    PluginField mFields[2];
    PluginFieldCollection mNames{};
};

class KernelCreator final : public IPluginCreatorV3One
{
public:
    AsciiChar const* getPluginName() const noexcept override
    {
        return fault("no loader") ? "Kettle" : fault("name twice") ? "circ_pad_plugin" : "Kernel2";
    }
    AsciiChar const* getPluginVersion() const noexcept override
    {
        return fault("name twice") ? "1" : "2";
    }
    AsciiChar const* getPluginNamespace() const noexcept override
    {
        return fault("name twice") ? "sample" : "cubinder";
    }
    PluginFieldCollection const* getFieldNames() noexcept override
    {
        return &mNames;
    }
    IPluginV3* createPlugin(AsciiChar const*, PluginFieldCollection const* fields, TensorRTPhase) noexcept override
    {
        auto model = std::make_shared<Model>();
        if (IPluginV3* everything = Everything::load(fields))
        {
            return everything;
        }
        if (!isState(fields) || !Model::parse(fields->fields[0], *model))
        {
            if (!fault("damage unsaid"))
            {
                refuse("the engine is damaged");
            }
            return nullptr;
        }
        if (fault("fields lost"))
        {
            model->values.clear();
        }
        return new Plugin(model, true);
    }

private:
    static bool isState(PluginFieldCollection const* fields)
    {
        bool const isOne = fields != nullptr && fields->fields != nullptr
            && (fields->nbFields == 1 || (fault("extra fields unnoticed") && fields->nbFields > 1));
        if (!isOne || fields->fields[0].name == nullptr || std::strcmp(fields->fields[0].name, "state") != 0)
        {
            return false;
        }
        PluginField const& field = fields->fields[0];
        bool const isAligned = reinterpret_cast<uintptr_t>(field.data) % 4 == 0;
        return (field.type == PluginFieldType::kINT8 || fault("type unnoticed"))
            && (field.data != nullptr || fault("null data unnoticed")) && (isAligned || !fault("alignment expected"));
    }

    PluginFieldCollection mNames{};
};

struct Resident
{
    ~Resident()
    {
        gCounter++;
    }
};

}

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED void setLoggerFinder(ILoggerFinder* finder)
{
    gFinder = finder;
    if (fault("stays mapped"))
    {
        // Its destructor keeps the library loaded until thread exit.
        static thread_local Resident resident;
        asm volatile("" : : "r"(&resident));
    }
    if (fault("keeps a file open"))
    {
        int const file = open("/dev/null", O_RDONLY | O_CLOEXEC);
        asm volatile("" : : "r"(file));
    }
}

EXPORTED IPluginCreatorInterface* const* getCreators(int32_t& count)
{
    static OpCreator pad(0);
    static OpCreator add(1);
    static EverythingCreator everything;
    static AttributesCreator attributes;
    static KernelCreator kernel;
    static IPluginCreatorInterface* creators[] = {&pad, &add, &everything, &attributes, &kernel};
    if (fault("creators change"))
    {
        std::swap(creators[0], creators[1]);
    }
    count = fault("no creators") ? 0 : 5;
    return creators;
}
