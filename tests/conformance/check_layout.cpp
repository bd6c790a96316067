// Copyright of the Cubinder authors; Apache-2.0.
//
// The headers that the oracle is compiled against: sizes, offsets and slots are the numbers that Cubinder is written to (`runtime-plugin/abi`,
// measured on NVIDIA's binaries of TensorRT 10.15 to 11.4 and TensorRT-RTX 1.3 to 1.7). So what passes with these headers holds for
// releases whose headers are not at hand, as long as they keep the numbers.
#include "check_library.hpp"

#include <cstddef>
#include <cstring>

namespace oracle
{

namespace
{

using namespace nvinfer1;

static_assert(sizeof(Dims) == 72 && offsetof(Dims, d) == 8);
static_assert(sizeof(PluginTensorDesc) == 88 && offsetof(PluginTensorDesc, type) == 72);
static_assert(offsetof(PluginTensorDesc, format) == 76 && offsetof(PluginTensorDesc, scale) == 80);
static_assert(sizeof(DynamicPluginTensorDesc) == 304 && offsetof(DynamicPluginTensorDesc, min) == 88);
static_assert(offsetof(DynamicPluginTensorDesc, max) == 160 && offsetof(DynamicPluginTensorDesc, opt) == 232);
static_assert(sizeof(DimsExprs) == 72 && sizeof(PluginField) == 24 && sizeof(PluginFieldCollection) == 16);
static_assert(sizeof(InterfaceInfo) == 16 && std::is_trivially_copyable_v<InterfaceInfo>);

// Where a virtual method lies in its vtable: in the Itanium C++ ABI a pointer to it is the offset plus 1.
template <class M>
uint64_t slot(M method)
{
    uintptr_t raw = 0;
    static_assert(sizeof method >= sizeof raw);
    std::memcpy(&raw, &method, sizeof raw);
    return (raw - 1) / sizeof(void*);
}

} // namespace

void checkLayout(Report& report)
{
    report.run("headers: methods lie in the slots that Cubinder is written to", [](Probe& probe) {
        auto expect = [&](char const* name, uint64_t found, uint64_t expected) { probe.equal(name, found, expected); };
        expect("getAPILanguage", slot(&IVersionedInterface::getAPILanguage), 0);
        expect("getInterfaceInfo", slot(&IVersionedInterface::getInterfaceInfo), 1);
        expect("createPlugin", slot(&IPluginCreatorV3One::createPlugin), 4);
        expect("getFieldNames", slot(&IPluginCreatorV3One::getFieldNames), 5);
        expect("getPluginNamespace of creators", slot(&IPluginCreatorV3One::getPluginNamespace), 8);
        expect("getCapabilityInterface", slot(&IPluginV3::getCapabilityInterface), 4);
        expect("clone", slot(&IPluginV3::clone), 5);
        expect("getPluginName", slot(&IPluginV3OneCore::getPluginName), 4);
        expect("getPluginNamespace", slot(&IPluginV3OneCore::getPluginNamespace), 6);
        expect("configurePlugin", slot(&IPluginV3OneBuildV2::configurePlugin), 4);
        expect("getOutputDataTypes", slot(&IPluginV3OneBuildV2::getOutputDataTypes), 5);
        expect("getOutputShapes", slot(&IPluginV3OneBuildV2::getOutputShapes), 6);
        expect("supportsFormatCombination", slot(&IPluginV3OneBuildV2::supportsFormatCombination), 7);
        expect("getNbOutputs", slot(&IPluginV3OneBuildV2::getNbOutputs), 8);
        expect("getWorkspaceSize", slot(&IPluginV3OneBuildV2::getWorkspaceSize), 9);
        expect("getValidTactics", slot(&IPluginV3OneBuildV2::getValidTactics), 10);
        expect("getNbTactics", slot(&IPluginV3OneBuildV2::getNbTactics), 11);
        expect("getTimingCacheID", slot(&IPluginV3OneBuildV2::getTimingCacheID), 12);
        expect("getFormatCombinationLimit", slot(&IPluginV3OneBuildV2::getFormatCombinationLimit), 13);
        expect("getMetadataString", slot(&IPluginV3OneBuildV2::getMetadataString), 14);
        expect("getAliasedInput", slot(&IPluginV3OneBuildV2::getAliasedInput), 15);
        expect("setTactic", slot(&IPluginV3OneRuntime::setTactic), 4);
        expect("onShapeChange", slot(&IPluginV3OneRuntime::onShapeChange), 5);
        expect("enqueue", slot(&IPluginV3OneRuntime::enqueue), 6);
        expect("attachToContext", slot(&IPluginV3OneRuntime::attachToContext), 7);
        expect("getFieldsToSerialize", slot(&IPluginV3OneRuntime::getFieldsToSerialize), 8);
        expect("constant", slot(&apiv::VExprBuilder::constant), 2);
        expect("operation", slot(&apiv::VExprBuilder::operation), 3);
        expect("declareSizeTensor", slot(&apiv::VExprBuilder::declareSizeTensor), 4);
        expect("isConstant", slot(&apiv::VDimensionExpr::isConstant), 2);
        expect("getConstantValue", slot(&apiv::VDimensionExpr::getConstantValue), 3);
        expect("isSizeTensor", slot(&apiv::VDimensionExpr::isSizeTensor), 4);
        // The loggers got a base class with TensorRT 11 and TensorRT-RTX 1.5.
        bool const hasBase = std::is_base_of_v<IVersionedInterface, ILogger>;
        expect("log", slot(&ILogger::log), hasBase ? 4 : 0);
        expect("findLogger", slot(&ILoggerFinder::findLogger), hasBase ? 4 : 0);
    });
}

} // namespace oracle
