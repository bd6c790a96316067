// Copyright of the Cubinder authors; Apache-2.0.
//
// Compares the time of a plugin's `enqueue` with a bare launch of the same arguments, and times `onShapeChange` with
// unchanged shapes. Needs a GPU.
//
//     own_time LIBRARY.so libcubinder.so
//
// LIBRARY has `elemwise_add_plugin` and `circ_pad_plugin`. Replaces `dlsym` to observe the launch. Prints a JSON
// object per case; the ratio is taken per round, with Student's one-sided 95 % bound.
//
// Reads one parameter more than each kernel has, to find their number: compute-sanitizer reports that.
#include <NvInferRuntime.h>

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

using namespace nvinfer1;

namespace
{

using Result = int;
using Launch = Result (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
using ParamInfo = Result (*)(void*, size_t, size_t*, size_t*);

Launch realLaunch{nullptr};
ParamInfo paramInfo{nullptr};

struct Seen
{
    void* kernel{nullptr};
    unsigned grid[3]{}, block[3]{}, sharedBytes{0};
    void* stream{nullptr};
    std::vector<std::vector<char>> values;
    std::vector<void*> params;

    void take(void** given)
    {
        values.clear();
        params.clear();
        size_t offset = 0;
        size_t size = 0;
        for (size_t i = 0; paramInfo(kernel, i, &offset, &size) == 0; ++i)
        {
            auto const* bytes = static_cast<char const*>(given[i]);
            values.emplace_back(bytes, bytes + size);
        }
        for (std::vector<char>& value : values)
        {
            params.push_back(value.data());
        }
    }
    Result again()
    {
        return realLaunch(kernel, grid[0], grid[1], grid[2], block[0], block[1], block[2], sharedBytes, stream, params.data(), nullptr);
    }
};

bool isSeeing{false};
std::vector<Seen> seen;

Result launch(void* kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned sharedBytes, void* stream,
    void** params, void** extra)
{
    if (isSeeing)
    {
        Seen call;
        call.kernel = kernel;
        unsigned const extents[2][3]{{gx, gy, gz}, {bx, by, bz}};
        std::memcpy(call.grid, extents[0], sizeof(call.grid));
        std::memcpy(call.block, extents[1], sizeof(call.block));
        call.sharedBytes = sharedBytes;
        call.stream = stream;
        call.take(params);
        // Moving a vector keeps its elements' addresses.
        seen.push_back(std::move(call));
    }
    return realLaunch(kernel, gx, gy, gz, bx, by, bz, sharedBytes, stream, params, extra);
}

[[noreturn]] void fail(std::string const& what)
{
    throw std::runtime_error(what);
}

void need(Result code, char const* call)
{
    if (code != 0)
    {
        fail(std::string(call) + " returned " + std::to_string(code));
    }
}

void* realSymbol(void* library, char const* name)
{
    using Lookup = void* (*)(void*, char const*);
    static Lookup const lookup = [] {
        // libc has it since glibc 2.34; before, with the version of the architecture's first glibc.
        for (char const* const version : {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"})
        {
            if (void* const found = dlvsym(RTLD_NEXT, "dlsym", version))
            {
                return reinterpret_cast<Lookup>(found);
            }
        }
        fail("the dlsym version of glibc is unknown for this architecture");
    }();
    return lookup(library, name);
}

}

extern "C" __attribute__((visibility("default"))) void* dlsym(void* library, char const* name)
{
    void* const found = realSymbol(library, name);
    if (found != nullptr && std::strcmp(name, "cuLaunchKernel") == 0)
    {
        realLaunch = reinterpret_cast<Launch>(found);
        return reinterpret_cast<void*>(&launch);
    }
    return found;
}

namespace
{

struct Driver
{
    void* library{dlopen("libcuda.so.1", RTLD_NOW)};

    template <typename Function>
    Function get(char const* name) const
    {
        if (library == nullptr)
        {
            throw std::runtime_error("cannot load libcuda.so.1: this needs a GPU and its driver");
        }
        void* const found = realSymbol(library, name);
        return found != nullptr ? reinterpret_cast<Function>(found) : throw std::runtime_error(std::string(name) + " does not exist");
    }
};

struct Network
{
    char const* op;
    PluginField field;
    std::vector<Dims> inputs;
    Dims output;
};

Dims dimsOf(std::initializer_list<int64_t> extents)
{
    Dims dims{};
    dims.nbDims = static_cast<int32_t>(extents.size());
    std::copy(extents.begin(), extents.end(), dims.d);
    return dims;
}

int64_t volume(Dims const& dims)
{
    int64_t count = 1;
    for (int32_t i = 0; i < dims.nbDims; ++i)
    {
        count *= dims.d[i];
    }
    return count;
}

PluginTensorDesc described(Dims const& dims)
{
    PluginTensorDesc desc{};
    desc.dims = dims;
    desc.type = DataType::kFLOAT;
    desc.format = TensorFormat::kLINEAR;
    desc.scale = 1.0F;
    return desc;
}

template <typename Interface>
Interface& capability(IPluginV3& plugin, PluginCapabilityType type)
{
    auto* const found = static_cast<Interface*>(plugin.getCapabilityInterface(type));
    return found != nullptr ? *found : throw std::runtime_error("a capability is missing");
}

class Loaded
{
public:
    Loaded(std::vector<void*> const& libraries, Network const& network)
    {
        using GetCreators = IPluginCreatorInterface* const* (*) (int32_t&);
        auto const creator = [&](char const* name) -> IPluginCreatorV3One& {
            for (void* const library : libraries)
            {
                auto const getCreators = reinterpret_cast<GetCreators>(realSymbol(library, "getCreators"));
                int32_t count = 0;
                auto* const* const creators = getCreators != nullptr ? getCreators(count) : nullptr;
                for (int32_t i = 0; i < count; ++i)
                {
                    auto* const one = static_cast<IPluginCreatorV3One*>(creators[i]);
                    if (std::strcmp(one->getPluginName(), name) == 0)
                    {
                        return *one;
                    }
                }
            }
            fail(std::string("no library has a creator for ") + name);
        };
        PluginFieldCollection attributes{network.field.name == nullptr ? 0 : 1, &network.field};
        IPluginV3* const built = creator(network.op).createPlugin("node", &attributes, TensorRTPhase::kBUILD);
        if (built == nullptr)
        {
            fail("createPlugin rejected the node");
        }
        auto& build = capability<IPluginV3OneBuild>(*built, PluginCapabilityType::kBUILD);
        std::vector<DynamicPluginTensorDesc> in;
        for (Dims const& dims : network.inputs)
        {
            in.push_back({described(dims), dims, dims, dims});
            mIn.push_back(described(dims));
        }
        DynamicPluginTensorDesc const out{described(network.output), network.output, network.output, network.output};
        mOut = described(network.output);
        need(build.configurePlugin(in.data(), static_cast<int32_t>(in.size()), &out, 1), "configurePlugin");
        std::vector<int32_t> tactics(static_cast<size_t>(std::max(build.getNbTactics(), 0)));
        need(build.getValidTactics(tactics.data(), static_cast<int32_t>(tactics.size())), "getValidTactics");
        auto& core = capability<IPluginV3OneCore>(*built, PluginCapabilityType::kCORE);
        auto& runtime = capability<IPluginV3OneRuntime>(*built, PluginCapabilityType::kRUNTIME);
        IPluginV3* const loaded
            = creator(core.getPluginName()).createPlugin("node", runtime.getFieldsToSerialize(), TensorRTPhase::kRUNTIME);
        IPluginV3* const attached
            = loaded == nullptr ? nullptr : capability<IPluginV3OneRuntime>(*loaded, PluginCapabilityType::kRUNTIME).attachToContext(nullptr);
        if (attached == nullptr)
        {
            fail("the engine's fields were rejected");
        }
        mRuntime = &capability<IPluginV3OneRuntime>(*attached, PluginCapabilityType::kRUNTIME);
        if (!tactics.empty())
        {
            need(mRuntime->setTactic(tactics[0]), "setTactic");
        }
    }

    Result shapes() const
    {
        return mRuntime->onShapeChange(mIn.data(), static_cast<int32_t>(mIn.size()), &mOut, 1);
    }
    Result enqueue(void const* const* inputs, void* const* outputs, void* stream) const
    {
        return mRuntime->enqueue(mIn.data(), &mOut, inputs, outputs, nullptr, static_cast<cudaStream_t>(stream));
    }

private:
    std::vector<PluginTensorDesc> mIn;
    PluginTensorDesc mOut{};
    IPluginV3OneRuntime* mRuntime{nullptr};
};

constexpr int32_t kROUNDS = 20;
constexpr int32_t kBURSTS = 25;
constexpr int32_t kCALLS = 100;
// Student's t, one-sided 95 %, for 19 degrees of freedom.
constexpr double kT95 = 1.729;

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

// Median nanoseconds per call over bursts; `drain` empties the stream first.
template <typename Call, typename Drain>
double timed(Call const& call, Drain const& drain)
{
    std::vector<double> bursts;
    for (int32_t burst = 0; burst < kBURSTS; ++burst)
    {
        drain();
        auto const start = std::chrono::steady_clock::now();
        Result code = 0;
        for (int32_t i = 0; i < kCALLS; ++i)
        {
            code |= call();
        }
        auto const end = std::chrono::steady_clock::now();
        need(code, "a call that is measured");
        bursts.push_back(std::chrono::duration<double, std::nano>(end - start).count() / kCALLS);
    }
    drain();
    return median(bursts);
}

void measure(Driver const& driver, std::vector<void*> const& libraries, Network const& network)
{
    auto const synchronize = driver.get<Result (*)()>("cuCtxSynchronize");
    auto const allocate = driver.get<Result (*)(void**, size_t)>("cuMemAlloc_v2");
    void* stream = nullptr;
    need(driver.get<Result (*)(void**, unsigned)>("cuStreamCreate")(&stream, 1), "cuStreamCreate");
    std::vector<void const*> inputs;
    for (Dims const& dims : network.inputs)
    {
        void* memory = nullptr;
        need(allocate(&memory, static_cast<size_t>(volume(dims)) * 4), "cuMemAlloc");
        inputs.push_back(memory);
    }
    void* output = nullptr;
    need(allocate(&output, static_cast<size_t>(volume(network.output)) * 4), "cuMemAlloc");
    Loaded const plugin(libraries, network);
    need(plugin.shapes(), "onShapeChange");
    seen.clear();
    isSeeing = true;
    need(plugin.enqueue(inputs.data(), &output, stream), "enqueue");
    isSeeing = false;
    need(synchronize(), "cuCtxSynchronize");
    if (seen.empty())
    {
        fail("no launch was recorded");
    }
    auto const enqueue = [&] { return plugin.enqueue(inputs.data(), &output, stream); };
    auto const bare = [&] {
        Result code = 0;
        for (Seen& call : seen)
        {
            code |= call.again();
        }
        return code;
    };
    // The current context's handles save a lookup.
    std::vector<Seen> resolved = seen;
    for (Seen& call : resolved)
    {
        need(driver.get<Result (*)(void**, void*)>("cuKernelGetFunction")(&call.kernel, call.kernel), "cuKernelGetFunction");
    }
    auto const bareFunction = [&] {
        Result code = 0;
        for (Seen& call : resolved)
        {
            code |= call.again();
        }
        return code;
    };
    auto const drain = [&] { need(synchronize(), "cuCtxSynchronize"); };
    timed(enqueue, drain);
    timed(bare, drain);
    std::vector<double> ratios;
    std::vector<double> own;
    std::vector<double> launches;
    std::vector<double> functions;
    for (int32_t round = 0; round < kROUNDS; ++round)
    {
        own.push_back(timed(enqueue, drain));
        launches.push_back(timed(bare, drain));
        functions.push_back(timed(bareFunction, drain));
        ratios.push_back(own.back() / launches.back());
    }
    double const shapes = timed([&] { return plugin.shapes(); }, drain);
    double mean = 0;
    for (double ratio : ratios)
    {
        mean += ratio / kROUNDS;
    }
    double variance = 0;
    for (double ratio : ratios)
    {
        variance += (ratio - mean) * (ratio - mean) / (kROUNDS - 1);
    }
    std::printf("{\"op\": \"%s\", \"launches\": %zu, \"enqueue_ns\": %.0f, \"bare_ns\": %.0f, \"bare_function_ns\": %.0f, \"ratio_mean\": %.4f, \"ratio_upper_95\": %.4f, "
                "\"unchanged_shapes_ns\": %.1f}\n",
        network.op, seen.size(), median(own), median(launches), median(functions), mean, mean + kT95 * std::sqrt(variance / kROUNDS), shapes);
}

int run(std::vector<char const*> const& paths)
{
    Driver const driver;
    paramInfo = driver.get<ParamInfo>("cuKernelGetParamInfo");
    void* context = nullptr;
    need(driver.get<Result (*)(unsigned)>("cuInit")(0), "cuInit");
    need(driver.get<Result (*)(void**, int)>("cuDevicePrimaryCtxRetain")(&context, 0), "cuDevicePrimaryCtxRetain");
    need(driver.get<Result (*)(void*)>("cuCtxSetCurrent")(context), "cuCtxSetCurrent");
    std::vector<void*> libraries;
    for (char const* const path : paths)
    {
        libraries.push_back(dlopen(path, RTLD_NOW));
        if (libraries.back() == nullptr)
        {
            fail(dlerror());
        }
    }
    static int32_t const pads[]{1, 1, 1, 1};
    static int32_t const blockSize{256};
    Dims const rows = dimsOf({10, 3, 32, 32});
    measure(driver, libraries, {"elemwise_add_plugin", {"block_size", &blockSize, PluginFieldType::kINT32, 1}, {rows}, rows});
    measure(driver, libraries, {"circ_pad_plugin", {"pads", pads, PluginFieldType::kINT32, 4}, {rows}, dimsOf({10, 3, 34, 34})});
    return 0;
}

}

int main(int argc, char** argv)
{
    if (argc < 2)
    {
        std::fprintf(stderr, "usage: own_time LIBRARY.so libcubinder.so\n");
        return 2;
    }
    try
    {
        return run(std::vector<char const*>(argv + 1, argv + argc));
    }
    catch (std::exception const& error)
    {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 1;
    }
}
