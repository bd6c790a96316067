// Copyright of the Cubinder authors; Apache-2.0.
//
// Full TensorRT loads plugin libraries and parses ONNX models; compares with a list (`README.md`). Never: knows a
// plugin or the expected results.
#include "list.hpp"
#include "report.hpp"

#include <NvInfer.h>
#include <NvOnnxParser.h>
#include <impl/NvInferPythonPlugin.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <utility>

using namespace nvinfer1;

namespace
{

using Clock = std::chrono::steady_clock;

double millisecondsSince(Clock::time_point start)
{
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

class Log : public ILogger
{
public:
    struct Line
    {
        Severity severity;
        std::string text;
    };

    void log(Severity severity, AsciiChar const* text) noexcept override
    {
        mLines.push_back({severity, text == nullptr ? "" : text});
    }

    std::vector<Line> take()
    {
        return std::exchange(mLines, {});
    }

private:
    std::vector<Line> mLines;
};

bool isError(Log::Line const& line)
{
    return line.severity <= ILogger::Severity::kERROR;
}

bool holds(Log::Line const& line, std::string const& text)
{
    return line.text.find(text) != std::string::npos;
}

// Drops TensorRT's internal debug lines.
bool isKept(Log::Line const& line)
{
    return line.severity <= ILogger::Severity::kINFO || holds(line, "plugin") || holds(line, "Plugin");
}

std::vector<std::string> keptOf(std::vector<Log::Line> const& lines)
{
    char const* const names[] = {"INTERNAL_ERROR", "ERROR", "WARNING", "INFO", "VERBOSE"};
    std::vector<std::string> kept;
    for (auto const& line : lines)
        if (isKept(line))
            kept.push_back(std::string(names[static_cast<int32_t>(line.severity)]) + " " + line.text);
    return kept;
}

// Other kinds are listed without names.
proof::Creator described(IPluginCreatorInterface& creator)
{
    proof::Creator found;
    found.kind = creator.getInterfaceInfo().kind;
    auto const fill = [&found](auto& known) {
        found.plugin = {known.getPluginName(), known.getPluginVersion(), known.getPluginNamespace()};
        if (auto const* fields = known.getFieldNames())
            for (int32_t i = 0; i < fields->nbFields; ++i)
                found.fields.emplace_back(fields->fields[i].name);
    };
    if (found.kind == "PLUGIN CREATOR_V3QUICK")
        fill(static_cast<IPluginCreatorV3Quick&>(creator));
    else if (found.kind == "PLUGIN CREATOR_V3ONE")
        fill(static_cast<IPluginCreatorV3One&>(creator));
    return found;
}

std::set<IPluginCreatorInterface*> creators(IPluginRegistry& registry)
{
    int32_t count = 0;
    auto* const* const all = registry.getAllCreators(&count);
    return {all, all + count};
}

proof::Loaded load(IPluginRegistry& registry, proof::Library const& library, std::string const& path, std::string const& kind)
{
    proof::Loaded loaded;
    loaded.library = library.file;
    auto const before = creators(registry);
    auto const start = Clock::now();
    loaded.isLoaded = registry.loadLibrary(path.c_str()) != nullptr;
    loaded.milliseconds = millisecondsSince(start);
    loaded.differences.expect(loaded.isLoaded, "the registry rejected the library");
    for (auto* creator : creators(registry))
        if (before.count(creator) == 0)
            loaded.creators.push_back(described(*creator));
    loaded.differences.expect(loaded.creators.size() == library.plugins.size(),
        std::to_string(loaded.creators.size()) + " creators, expected " + std::to_string(library.plugins.size()));
    for (auto const& plugin : library.plugins)
    {
        auto* const found = registry.getCreator(plugin.name.c_str(), plugin.version.c_str(), plugin.nameSpace.c_str());
        loaded.differences.expect(found != nullptr, "no creator for " + plugin.text());
        if (found == nullptr)
            continue;
        std::string const foundKind = found->getInterfaceInfo().kind;
        loaded.differences.expect(foundKind == kind, plugin.text() + " is of the kind " + foundKind);
    }
    return loaded;
}

std::string typeName(DataType type)
{
    char const* const names[] = {"f32", "f16", "i8", "i32", "bool", "u8", "f8", "bf16", "i64", "i4", "f4", "e8m0"};
    auto const index = static_cast<size_t>(type);
    return index < std::size(names) ? names[index] : std::to_string(index);
}

proof::Tensor described(ITensor& tensor)
{
    proof::Tensor found{tensor.getName(), typeName(tensor.getType()), {}};
    auto const dims = tensor.getDimensions();
    // -1 means an unknown rank.
    found.shape.isKnown = dims.nbDims >= 0;
    found.shape.extents.assign(dims.d, dims.d + std::max(dims.nbDims, 0));
    return found;
}

proof::Layer described(IPluginV3Layer& layer)
{
    proof::Layer found;
    found.name = layer.getName();
    auto& plugin = layer.getPlugin();
    auto const kindOf = [&plugin](PluginCapabilityType type) {
        auto* const capability = plugin.getCapabilityInterface(type);
        return std::string(capability == nullptr ? "none" : capability->getInterfaceInfo().kind);
    };
    found.core = kindOf(PluginCapabilityType::kCORE);
    found.build = kindOf(PluginCapabilityType::kBUILD);
    auto* const core = plugin.getCapabilityInterface(PluginCapabilityType::kCORE);
    auto const fill = [&found](auto& known) {
        found.plugin = {known.getPluginName(), known.getPluginVersion(), known.getPluginNamespace()};
    };
    if (found.core == "PLUGIN_V3QUICK_CORE")
        fill(*static_cast<IPluginV3QuickCore*>(core));
    else if (found.core == "PLUGIN_V3ONE_CORE")
        fill(*static_cast<IPluginV3OneCore*>(core));
    return found;
}

struct Parsed
{
    std::unique_ptr<INetworkDefinition> network;
    std::unique_ptr<nvonnxparser::IParser> parser;
};

Parsed parse(IBuilder& builder, Log& log, proof::Model const& model, std::string const& path, proof::Outcome& outcome)
{
    Parsed parsed;
    parsed.network.reset(builder.createNetworkV2(model.flags));
    if (parsed.network == nullptr)
        return parsed;
    parsed.parser.reset(nvonnxparser::createParser(*parsed.network, log));
    if (parsed.parser == nullptr)
        return parsed;
    auto const start = Clock::now();
    outcome.isParsed = parsed.parser->parseFromFile(path.c_str(), static_cast<int32_t>(ILogger::Severity::kVERBOSE));
    outcome.parseMilliseconds = millisecondsSince(start);
    for (int32_t i = 0; i < parsed.parser->getNbErrors(); ++i)
        outcome.parserErrors.emplace_back(parsed.parser->getError(i)->desc());
    return parsed;
}

void describe(INetworkDefinition& network, proof::Outcome& outcome)
{
    for (int32_t i = 0; i < network.getNbInputs(); ++i)
        outcome.tensors.push_back(described(*network.getInput(i)));
    for (int32_t i = 0; i < network.getNbLayers(); ++i)
    {
        auto& layer = *network.getLayer(i);
        outcome.layers.push_back(std::to_string(static_cast<int32_t>(layer.getType())) + " " + layer.getName());
        if (layer.getType() == LayerType::kPLUGIN_V3)
            outcome.plugins.push_back(described(static_cast<IPluginV3Layer&>(layer)));
        for (int32_t j = 0; j < layer.getNbOutputs(); ++j)
            if (auto* const output = layer.getOutput(j))
                outcome.tensors.push_back(described(*output));
    }
}

void holdPlugins(proof::Model const& model, std::string const& kind, proof::Outcome& outcome)
{
    auto& differences = outcome.differences;
    bool const isQuick = kind == "PLUGIN CREATOR_V3QUICK";
    differences.expect(outcome.plugins.size() == model.nodes.size(),
        std::to_string(outcome.plugins.size()) + " plugin layers, expected " + std::to_string(model.nodes.size()));
    for (auto const& node : model.nodes)
    {
        auto const isIt = [&node](proof::Layer const& layer) { return layer.name == node.name; };
        auto const layer = std::find_if(outcome.plugins.begin(), outcome.plugins.end(), isIt);
        differences.expect(layer != outcome.plugins.end(), "no plugin layer " + node.name);
        if (layer == outcome.plugins.end())
            continue;
        std::string const core = isQuick ? "PLUGIN_V3QUICK_CORE" : "PLUGIN_V3ONE_CORE";
        std::string const build = isQuick ? "PLUGIN_V3QUICKAOT_BUILD" : "PLUGIN_V3ONE_BUILD";
        differences.expect(layer->core == core, node.name + " has the core " + layer->core);
        differences.expect(layer->build == build, node.name + " has the build interface " + layer->build);
        // On the plugin route the core names the runtime library.
        if (isQuick)
            differences.expect(layer->plugin == node.plugin, node.name + " calls itself " + layer->plugin.text());
    }
    differences.expect(outcome.created >= model.nodes.size(),
        std::to_string(outcome.created) + " times `Successfully created plugin`, expected " + std::to_string(model.nodes.size()));
}

void holdTensors(proof::Model const& model, proof::Outcome& outcome)
{
    for (auto const& expected : model.tensors)
    {
        auto const isIt = [&expected](proof::Tensor const& tensor) { return tensor.name == expected.name; };
        auto const found = std::find_if(outcome.tensors.begin(), outcome.tensors.end(), isIt);
        if (found == outcome.tensors.end())
            outcome.differences.expect(false, "no tensor " + expected.name);
        else
            outcome.differences.expect(found->text() == expected.text(), "found " + found->text() + ", expected " + expected.text());
    }
}

// The first error is often only the place of the next.
std::string errorsOf(std::vector<Log::Line> const& lines)
{
    std::set<std::string> known;
    std::string found;
    for (auto const& line : lines)
        if (isError(line) && !holds(line, " node ---") && known.insert(line.text).second)
            found += (found.empty() ? "" : " | ") + line.text;
    return found;
}

void hold(proof::Model const& model, std::string const& kind, std::vector<Log::Line> const& lines, proof::Outcome& outcome)
{
    auto const errors = errorsOf(lines);
    if (!model.refused.empty())
    {
        auto const says = [&model](Log::Line const& line) { return isError(line) && holds(line, model.refused); };
        outcome.differences.expect(!outcome.isParsed, "it was parsed, expected a rejection");
        outcome.differences.expect(
            std::any_of(lines.begin(), lines.end(), says), "no error says `" + model.refused + "`: " + errors);
        return;
    }
    outcome.differences.expect(outcome.isParsed && errors.empty(), (outcome.isParsed ? "parsed, with errors: " : "not parsed: ") + errors);
    if (!outcome.isParsed)
        return;
    holdPlugins(model, kind, outcome);
    holdTensors(model, outcome);
}

Dims dimsOf(std::vector<int64_t> const& extents)
{
    Dims dims{};
    dims.nbDims = static_cast<int32_t>(extents.size());
    std::copy(extents.begin(), extents.end(), dims.d);
    return dims;
}

void build(IBuilder& builder, INetworkDefinition& network, proof::Model const& model, proof::Outcome& outcome)
{
    std::unique_ptr<IBuilderConfig> const config(builder.createBuilderConfig());
    config->setPreviewFeature(PreviewFeature::kALIASED_PLUGIN_IO_10_03, true);
    if (!model.profile.empty())
    {
        auto* const profile = builder.createOptimizationProfile();
        for (auto const& [name, shapes] : model.profile)
        {
            auto const set = [&](OptProfileSelector which, int32_t at) {
                bool const isTaken = profile->setDimensions(name.c_str(), which, dimsOf(shapes[at]));
                outcome.differences.expect(isTaken, "the profile of " + name + " is refused");
            };
            set(OptProfileSelector::kMIN, 0);
            set(OptProfileSelector::kOPT, 1);
            set(OptProfileSelector::kMAX, 2);
        }
        outcome.differences.expect(config->addOptimizationProfile(profile) >= 0, "the profile is rejected");
    }
    auto const start = Clock::now();
    std::unique_ptr<IHostMemory> const plan(builder.buildSerializedNetwork(network, *config));
    outcome.buildMilliseconds = millisecondsSince(start);
    outcome.isBuildTried = true;
    outcome.planBytes = plan == nullptr ? 0 : plan->size();
}

void holdBuild(std::string const& stopsAt, std::vector<Log::Line> const& lines, proof::Outcome& outcome)
{
    auto const firstError = std::find_if(lines.begin(), lines.end(), isError);
    outcome.buildError = firstError == lines.end() ? "" : firstError->text;
    if (stopsAt.empty())
        return outcome.differences.expect(outcome.planBytes > 0, "no engine: " + outcome.buildError);
    if (outcome.planBytes > 0)
        return outcome.differences.expect(false, "an engine was built");
    auto const says = [&stopsAt](Log::Line const& line) { return isError(line) && holds(line, stopsAt); };
    outcome.differences.expect(std::any_of(lines.begin(), lines.end(), says), "the build fails elsewhere: " + errorsOf(lines));
}

proof::Outcome tried(IBuilder& builder, Log& log, proof::Model const& model, proof::Options const& options, bool isTimeLeft)
{
    proof::Outcome outcome;
    log.take();
    auto const parsed = parse(builder, log, model, options.models + "/" + model.file, outcome);
    if (outcome.isParsed)
        describe(*parsed.network, outcome);
    auto const lines = log.take();
    auto const isCreated = [](Log::Line const& line) { return holds(line, "Successfully created plugin"); };
    outcome.created = static_cast<size_t>(std::count_if(lines.begin(), lines.end(), isCreated));
    outcome.log = keptOf(lines);
    hold(model, options.kind, lines, outcome);
    if (!options.isBuilding || !outcome.isParsed || !model.refused.empty())
        return outcome;
    if (!isTimeLeft)
    {
        outcome.differences.expect(false, "not enough time left to build it");
        return outcome;
    }
    build(builder, *parsed.network, model, outcome);
    auto const said = log.take();
    outcome.buildLog = keptOf(said);
    holdBuild(options.stopsAt, said, outcome);
    return outcome;
}

int32_t run(proof::Options const& options)
{
    auto const start = Clock::now();
    auto const list = proof::read(options.list);
    proof::Report report(options);
    Log log;
    report.versions(getInferLibVersion(), getNvOnnxParserVersion());
    // Registry and plugin libraries use the first builder's logger; null without a GPU.
    std::unique_ptr<IBuilder> const builder(createInferBuilder(log));
    report.said("builder", keptOf(log.take()));
    auto& registry = *getPluginRegistry();
    for (auto const& library : list.libraries)
        report.loaded(load(registry, library, options.libraries + "/" + library.file, options.kind));
    report.said("libraries", keptOf(log.take()));
    if (builder == nullptr)
    {
        report.noBuilder();
        return report.end();
    }
    for (auto const& model : list.models)
    {
        if (options.isBuilding && !model.isBuilt)
            continue;
        report.begin(model);
        bool const isTimeLeft = millisecondsSince(start) < 1000.0 * options.seconds;
        report.tried(model, tried(*builder, log, model, options, isTimeLeft));
    }
    return report.end();
}

}

int main(int argc, char** argv)
{
    try
    {
        return run(proof::options(argc, argv));
    }
    catch (std::exception const& error)
    {
        std::cerr << "parser-proof: " << error.what() << "\n";
        return 2;
    }
}
