// A plugin that does nothing: what TensorRT itself needs for a node of one input and one output.
#include "NvInferRuntime.h"

using namespace nvinfer1;

namespace {

class Empty : public IPluginV3, public IPluginV3OneCore, public IPluginV3OneBuild, public IPluginV3OneRuntime {
public:
    IPluginCapability* getCapabilityInterface(PluginCapabilityType type) noexcept override {
        switch (type) {
        case PluginCapabilityType::kBUILD: return static_cast<IPluginV3OneBuild*>(this);
        case PluginCapabilityType::kRUNTIME: return static_cast<IPluginV3OneRuntime*>(this);
        case PluginCapabilityType::kCORE: return static_cast<IPluginV3OneCore*>(this);
        }
        return nullptr;
    }
    IPluginV3* clone() noexcept override { return new Empty; }
    IPluginV3* attachToContext(IPluginResourceContext*) noexcept override { return new Empty; }

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

private:
    PluginFieldCollection mNone{0, nullptr};
};

class EmptyCreator : public IPluginCreatorV3One {
public:
    IPluginV3* createPlugin(AsciiChar const*, PluginFieldCollection const*, TensorRTPhase) noexcept override {
        return new Empty;
    }
    PluginFieldCollection const* getFieldNames() noexcept override { return &mNone; }
    AsciiChar const* getPluginName() const noexcept override { return "empty"; }
    AsciiChar const* getPluginVersion() const noexcept override { return "1"; }
    AsciiChar const* getPluginNamespace() const noexcept override { return "sample"; }

private:
    PluginFieldCollection mNone{0, nullptr};
};

} // namespace

extern "C" __attribute__((visibility("default"))) void setLoggerFinder(ILoggerFinder*) {}

extern "C" __attribute__((visibility("default"))) IPluginCreatorInterface* const* getCreators(int32_t& count) {
    static EmptyCreator creator;
    static IPluginCreatorInterface* const creators[] = {&creator};
    count = 1;
    return creators;
}
