// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: differences between the supported headers, except loggers (`host.hpp`) and quick plugins (`quick.hpp`).
#pragma once

#include <NvInferRuntime.h>
#include <NvInferVersion.h>

namespace oracle
{

// TensorRT 10.3 added `IPluginV3OneBuildV2` with `getAliasedInput`.
#if NV_TENSORRT_MAJOR == 10 && NV_TENSORRT_MINOR < 3
constexpr int32_t kBUILD_VERSION = 1;
struct BuildInterface : nvinfer1::IPluginV3OneBuild
{
    // Lets plugins declare it for every release.
    virtual int32_t getAliasedInput(int32_t) noexcept
    {
        return -1;
    }
};
#else
constexpr int32_t kBUILD_VERSION = 2;
using BuildInterface = nvinfer1::IPluginV3OneBuildV2;
#endif

}
