// A plugin without work, to measure TensorRT's cost of a node. Field `tactics`: their number.
#include "NvInferRuntime.h"

#include <cstring>
#include <numeric>

using namespace nvinfer1;

namespace {

class Empty : public IPluginV3, public IPluginV3OneCore, public IPluginV3OneBuild, public IPluginV3OneRuntime {
public:
    explicit Empty(int32_t tactics) : mTactics(tactics) {}

    IPluginCapability* getCapabilityInterface(PluginCapabilityType type) noexcept override {
        switch (type) {
        case PluginCapabilityType::kBUILD: return static_cast<IPluginV3OneBuild*>(this);
        case PluginCapabilityType::kRUNTIME: return static_cast<IPluginV3OneRuntime*>(this);
        case PluginCapabilityType::kCORE: return static_cast<IPluginV3OneCore*>(this);
        }
        return nullptr;
    }
    IPluginV3* clone() noexcept override { return new Empty{mTactics}; }
    IPluginV3* attachToContext(IPluginResourceContext*) noexcept override { return new Empty{mTactics}; }

    AsciiChar const* getPluginName() const noexcept override { return "empty"; }
    AsciiChar const* getPluginVersion() const noexcept override { return "1"; }
    AsciiChar const* getPluginNamespace() const noexcept override { return "sample"; }

    int32_t getNbOutputs() const noexcept override { return 1; }
    int32_t getOutputDataTypes(DataType* outputs, int32_t, DataType const* inputs, int32_t) const noexcept override {
        outputs[0] = inputs[0];
        return 0;
    }
    int32_t getOutputShapes(DimsExprs const* inputs, int32_t, DimsExprs const*, int32_t, DimsExprs* outputs, int32_t,
        IExprBuilder&) noexcept override {
        outputs[0] = inputs[0];
        return 0;
    }
    bool supportsFormatCombination(
        int32_t position, DynamicPluginTensorDesc const* tensors, int32_t, int32_t) noexcept override {
        return tensors[position].desc.format == TensorFormat::kLINEAR;
    }
    int32_t configurePlugin(DynamicPluginTensorDesc const*, int32_t, DynamicPluginTensorDesc const*, int32_t) noexcept
        override {
        return 0;
    }
    int32_t onShapeChange(PluginTensorDesc const*, int32_t, PluginTensorDesc const*, int32_t) noexcept override {
        return 0;
    }
    int32_t enqueue(PluginTensorDesc const*, PluginTensorDesc const*, void const* const*, void* const*, void*,
        cudaStream_t) noexcept override {
        return 0;
    }
    PluginFieldCollection const* getFieldsToSerialize() noexcept override { return &mNone; }

    int32_t getNbTactics() noexcept override { return mTactics; }
    int32_t getValidTactics(int32_t* tactics, int32_t count) noexcept override {
        std::iota(tactics, tactics + count, 1);
        return 0;
    }

private:
    int32_t mTactics;
    PluginFieldCollection mNone{0, nullptr};
};

class EmptyCreator : public IPluginCreatorV3One {
public:
    IPluginV3* createPlugin(AsciiChar const*, PluginFieldCollection const* fields, TensorRTPhase) noexcept override {
        int32_t tactics = 0;
        for (int32_t i = 0; i < fields->nbFields; ++i)
            if (std::strcmp(fields->fields[i].name, "tactics") == 0)
                tactics = *static_cast<int32_t const*>(fields->fields[i].data);
        return new Empty{tactics};
    }
    PluginFieldCollection const* getFieldNames() noexcept override { return &mNames; }
    AsciiChar const* getPluginName() const noexcept override { return "empty"; }
    AsciiChar const* getPluginVersion() const noexcept override { return "1"; }
    AsciiChar const* getPluginNamespace() const noexcept override { return "sample"; }

private:
    PluginField mTactics{"tactics", nullptr, PluginFieldType::kINT32, 1};
    PluginFieldCollection mNames{1, &mTactics};
};

}

extern "C" __attribute__((visibility("default"))) void setLoggerFinder(ILoggerFinder*) {}

extern "C" __attribute__((visibility("default"))) IPluginCreatorInterface* const* getCreators(int32_t& count) {
    static EmptyCreator creator;
    static IPluginCreatorInterface* const creators[] = {&creator};
    count = 1;
    return creators;
}
