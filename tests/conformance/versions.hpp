// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: what differs between the releases whose headers are compiled, beside loggers (`host.hpp`) and quick plugins (`quick.hpp`).
#pragma once

#include <NvInferRuntime.h>
#include <NvInferVersion.h>

namespace oracle
{

// `IPluginV3OneBuildV2`, which has `getAliasedInput`, came with TensorRT 10.3.
#if NV_TENSORRT_MAJOR == 10 && NV_TENSORRT_MINOR < 3
constexpr int32_t kBUILD_VERSION = 1;
struct BuildInterface : nvinfer1::IPluginV3OneBuild
{
    // So that plugins can be written once. Nothing calls it.
    virtual int32_t getAliasedInput(int32_t) noexcept
    {
        return -1;
    }
};
#else
constexpr int32_t kBUILD_VERSION = 2;
using BuildInterface = nvinfer1::IPluginV3OneBuildV2;
#endif

} // namespace oracle
