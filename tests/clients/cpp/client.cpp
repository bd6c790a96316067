// A TensorRT-RTX application: loads a plugin library and builds an engine of a model that uses it, without a GPU.
//
// Knows only its two arguments. Prints one line and exits with 0, or a message and exits with 1.

#include <NvInfer.h>
#include <NvOnnxParser.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

namespace {

class Log final : public nvinfer1::ILogger {
public:
    void log(Severity severity, const char* text) noexcept override
    {
        if (severity <= Severity::kWARNING)
            std::fprintf(stderr, "%s\n", text);
    }
};

[[noreturn]] void fail(const char* what)
{
    std::fprintf(stderr, "error: %s\n", what);
    std::exit(1);
}

template <typename T>
T& check(T* found, const char* what)
{
    if (found == nullptr)
        fail(what);
    return *found;
}

}

int main(int count, char** arguments)
{
    if (count != 2)
        fail("expected the path of an ONNX model");
    Log log;
    const std::unique_ptr<nvinfer1::IBuilder> owner{nvinfer1::createInferBuilder(log)};
    auto& builder = check(owner.get(), "TensorRT returned no builder");
    nvinfer1::IPluginRegistry& registry = builder.getPluginRegistry();
    if (registry.loadLibrary(PLUGIN_LIBRARY) == nullptr)
        fail("TensorRT rejected the plugin library");
    if (registry.loadLibrary(RUNTIME_LIBRARY) == nullptr)
        fail("TensorRT rejected the runtime library");

    const std::unique_ptr<nvinfer1::INetworkDefinition> network{builder.createNetworkV2(0)};
    auto& graph = check(network.get(), "TensorRT returned no network");
    const std::unique_ptr<nvonnxparser::IParser> parser{nvonnxparser::createParser(graph, log)};
    if (!check(parser.get(), "TensorRT returned no parser").parseFromFile(arguments[1], 0))
        fail("TensorRT's parser rejected the model");

    const std::unique_ptr<nvinfer1::IBuilderConfig> config{builder.createBuilderConfig()};
    config->setNbComputeCapabilities(1);
    config->setComputeCapability(nvinfer1::ComputeCapability::kSM89, 0);
    const std::unique_ptr<nvinfer1::IHostMemory> plan{builder.buildSerializedNetwork(graph, *config)};
    std::printf("built an engine of %zu bytes\n", check(plan.get(), "TensorRT built no engine").size());
    std::fflush(stdout);
    // TensorRT-RTX may have running threads.
    std::_Exit(0);
}
