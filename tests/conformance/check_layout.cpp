// Copyright of the Cubinder authors; Apache-2.0.
//
// Compares the headers' layout with the numbers in `runtime-plugin/abi`, measured on TensorRT 10.15 to 11.4 and
// TensorRT-RTX 1.3 to 1.7. If equal, results also apply to releases without headers.
#include "check_library.hpp"
#include "quick.hpp"
#include "versions.hpp"

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

// A virtual method's vtable offset; in the Itanium C++ ABI its pointer is 1 more.
template <class M>
uint64_t slot(M method)
{
    uintptr_t raw = 0;
    static_assert(sizeof method >= sizeof raw);
    std::memcpy(&raw, &method, sizeof raw);
    return (raw - 1) / sizeof(void*);
}

#if ORACLE_HAS_QUICK

template <class Wrapper>
struct Opened final : Wrapper
{
    ~Opened() noexcept override = default;
    uint64_t offset() const
    {
        auto const* implementation = reinterpret_cast<char const*>(&this->mImpl);
        return static_cast<uint64_t>(implementation - reinterpret_cast<char const*>(static_cast<Wrapper const*>(this)));
    }
};

static_assert(sizeof(IKernelLaunchParams) == 16 && sizeof(ISymExprs) == 16 && sizeof(ISymExpr) == 8);
static_assert(sizeof(PluginArgType) == 4 && sizeof(PluginArgDataType) == 4 && sizeof(QuickPluginCreationRequest) == 4);
static_assert(!std::has_virtual_destructor_v<ISymExpr>);
static_assert(static_cast<int32_t>(PluginArgType::kINT) == 0 && static_cast<int32_t>(PluginArgDataType::kINT32) == 2);
static_assert(static_cast<int32_t>(QuickPluginCreationRequest::kSTRICT_JIT) == 3);
static_assert(static_cast<int32_t>(QuickPluginCreationRequest::kSTRICT_AOT) == 4);

void checkQuickLayout(Report& report)
{
    report.run("headers: methods of quick plugins lie in the slots that Cubinder is written to", [](Probe& probe) {
        auto expect = [&](char const* name, uint64_t found, uint64_t expected) { probe.equal(name, found, expected); };
        using Build = IPluginV3QuickAOTBuild;
        using Params = IKernelLaunchParamsImpl;
        expect("createPlugin", slot(&IPluginCreatorV3Quick::createPlugin), 4);
        expect("getFieldNames", slot(&IPluginCreatorV3Quick::getFieldNames), 5);
        expect("getPluginName of creators", slot(&IPluginCreatorV3Quick::getPluginName), 6);
        expect("getPluginVersion of creators", slot(&IPluginCreatorV3Quick::getPluginVersion), 7);
        expect("getPluginNamespace of creators", slot(&IPluginCreatorV3Quick::getPluginNamespace), 8);
        expect("getPluginName", slot(&IPluginV3QuickCore::getPluginName), 4);
        expect("getPluginVersion", slot(&IPluginV3QuickCore::getPluginVersion), 5);
        expect("getPluginNamespace", slot(&IPluginV3QuickCore::getPluginNamespace), 6);
        expect("getOutputDataTypes", slot(&Build::getOutputDataTypes), 4);
        expect("getOutputShapes", slot(&Build::getOutputShapes), 5);
        expect("configurePlugin", slot(&Build::configurePlugin), 6);
        expect("getNbSupportedFormatCombinations", slot(&Build::getNbSupportedFormatCombinations), 7);
        expect("getSupportedFormatCombinations", slot(&Build::getSupportedFormatCombinations), 8);
        expect("getNbOutputs", slot(&Build::getNbOutputs), 9);
        // TensorRT before 10.3 lacks it, so `versions.hpp` declares it.
        expect("getAliasedInput", slot(&Build::getAliasedInput), 10);
        expect("getValidTactics", slot(&Build::getValidTactics), 11);
        expect("getNbTactics", slot(&Build::getNbTactics), 12);
        expect("getTimingCacheID", slot(&Build::getTimingCacheID), 13);
        expect("getMetadataString", slot(&Build::getMetadataString), 14);
        expect("getLaunchParams", slot(&Build::getLaunchParams), 15);
        expect("getKernel", slot(&Build::getKernel), 16);
        expect("setTactic, building", slot(&Build::setTactic), 17);
        expect("setTactic, running", slot(&IPluginV3QuickRuntime::setTactic), 4);
        expect("enqueue", slot(&IPluginV3QuickRuntime::enqueue), 5);
        expect("getFieldsToSerialize", slot(&IPluginV3QuickRuntime::getFieldsToSerialize), 6);
        expect("getType", slot(&ISymExpr::getType), 0);
        expect("getDataType", slot(&ISymExpr::getDataType), 1);
        expect("getExpr", slot(&ISymExpr::getExpr), 2);
        expect("getSymExpr", slot(&ISymExprsImpl::getSymExpr), 0);
        expect("setSymExpr", slot(&ISymExprsImpl::setSymExpr), 1);
        expect("getNbSymExprs", slot(&ISymExprsImpl::getNbSymExprs), 2);
        expect("setNbSymExprs", slot(&ISymExprsImpl::setNbSymExprs), 3);
        expect("getGridX", slot(&Params::getGridX), 0);
        expect("setGridX", slot(&Params::setGridX), 1);
        expect("setGridY", slot(&Params::setGridY), 3);
        expect("setGridZ", slot(&Params::setGridZ), 5);
        expect("setBlockX", slot(&Params::setBlockX), 7);
        expect("setBlockY", slot(&Params::setBlockY), 9);
        expect("setBlockZ", slot(&Params::setBlockZ), 11);
        expect("getSharedMem", slot(&Params::getSharedMem), 12);
        expect("setSharedMem", slot(&Params::setSharedMem), 13);
        expect("offset of the launch parameters", Opened<IKernelLaunchParams>().offset(), 8);
        expect("offset of the symbolic expressions", Opened<ISymExprs>().offset(), 8);
    });
}

#else

void checkQuickLayout(Report&) {}

#endif

}

void checkLayout(Report& report)
{
    checkQuickLayout(report);
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
        expect("configurePlugin", slot(&BuildInterface::configurePlugin), 4);
        expect("getOutputDataTypes", slot(&BuildInterface::getOutputDataTypes), 5);
        expect("getOutputShapes", slot(&BuildInterface::getOutputShapes), 6);
        expect("supportsFormatCombination", slot(&BuildInterface::supportsFormatCombination), 7);
        expect("getNbOutputs", slot(&BuildInterface::getNbOutputs), 8);
        expect("getWorkspaceSize", slot(&BuildInterface::getWorkspaceSize), 9);
        expect("getValidTactics", slot(&BuildInterface::getValidTactics), 10);
        expect("getNbTactics", slot(&BuildInterface::getNbTactics), 11);
        expect("getTimingCacheID", slot(&BuildInterface::getTimingCacheID), 12);
        expect("getFormatCombinationLimit", slot(&BuildInterface::getFormatCombinationLimit), 13);
        expect("getMetadataString", slot(&BuildInterface::getMetadataString), 14);
        expect("getAliasedInput", slot(&BuildInterface::getAliasedInput), 15);
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
        // Loggers have a base class since TensorRT 11 and TensorRT-RTX 1.5.
        bool const hasBase = std::is_base_of_v<IVersionedInterface, ILogger>;
        expect("log", slot(&ILogger::log), hasBase ? 4 : 0);
        expect("findLogger", slot(&ILoggerFinder::findLogger), hasBase ? 4 : 0);
    });
}

}
