// Copyright of the Cubinder authors; Apache-2.0.
#include "subject.hpp"

#include <algorithm>

namespace oracle
{

using nvinfer1::DynamicPluginTensorDesc;
using nvinfer1::IPluginV3;
using nvinfer1::PluginTensorDesc;
using nvinfer1::TensorRTPhase;

namespace
{

PluginTensorDesc described(int32_t dataType, int32_t format, Shape const& shape)
{
    PluginTensorDesc desc{};
    desc.dims = dimsOf(shape);
    desc.type = static_cast<nvinfer1::DataType>(dataType);
    desc.format = static_cast<nvinfer1::TensorFormat>(format);
    desc.scale = 1.0F;
    return desc;
}

Shape assumed(Facts const& facts, Given const& given, Shape shape, bool upper)
{
    for (int64_t& extent : shape)
    {
        for (SizeBound const& bound : facts.sizes ? facts.sizes(given) : std::vector<SizeBound>{})
        {
            extent = extent == sizeIn(bound.output) ? (upper ? bound.upper : bound.opt) : extent;
        }
    }
    return shape;
}

constexpr int32_t kINT64 = 8;

}

nvinfer1::Dims dimsOf(Shape const& shape)
{
    nvinfer1::Dims dims{};
    dims.nbDims = static_cast<int32_t>(shape.size());
    for (size_t i = 0; i < shape.size(); ++i)
    {
        dims.d[i] = static_cast<decltype(dims.d[0] + 0)>(shape[i]);
    }
    return dims;
}

Described Tensors::all() const
{
    Described descs;
    for (PluginTensorDesc const& desc : in)
    {
        descs.push_back({desc, desc.dims, desc.dims, desc.dims});
    }
    for (size_t i = 0; i < out.size(); ++i)
    {
        nvinfer1::Dims least = out[i].dims;
        for (int32_t d = 0; d < least.nbDims; ++d)
        {
            least.d[d] = least.d[d] < 0 ? 0 : least.d[d];
        }
        descs.push_back({out[i], least, i < max.size() ? max[i] : out[i].dims, i < opt.size() ? opt[i] : out[i].dims});
    }
    return descs;
}

void Subject::check(std::string const& name, std::function<void(Probe&)> const& body) const
{
    report.run(facts.op.name + ": " + name, [&](Probe& probe) {
        logger.take();
        body(probe);
    });
}

Owned Subject::create(Probe& probe, Fields const& attributes) const
{
    Collection const collection(attributes);
    Owned plugin(op.createPlugin("node", collection.get(), TensorRTPhase::kBUILD));
    if (plugin == nullptr)
    {
        std::string const error = firstError(logger.take());
        probe.need(false, "createPlugin refused" + (error.empty() ? std::string() : ": " + show(error)), "a plugin");
    }
    return plugin;
}

Tensors Subject::tensors(int32_t dataType, Shape const& shape, std::vector<int32_t> const& attribute) const
{
    auto const inputs = static_cast<size_t>(facts.inputs);
    std::vector<int32_t> const types(inputs + 1, dataType);
    return tensors({types, std::vector<int32_t>(inputs + 1, 0)}, {std::vector<Shape>(inputs, shape), attribute, {}});
}

Tensors Subject::tensors(Combination const& combination, Given const& given) const
{
    Tensors tensors;
    for (Shape const& shape : given.inputs)
    {
        size_t const at = tensors.in.size();
        tensors.in.push_back(described(combination.types[at], combination.formats[at], shape));
    }
    for (Shape const& shape : facts.outputShapes(given))
    {
        size_t const at = given.inputs.size() + tensors.out.size();
        Shape known = shape;
        for (int64_t& extent : known)
        {
            extent = isSize(extent) ? -1 : extent;
        }
        tensors.out.push_back(described(combination.types[at], combination.formats[at], known));
        tensors.opt.push_back(dimsOf(assumed(facts, given, shape, false)));
        tensors.max.push_back(dimsOf(assumed(facts, given, shape, true)));
    }
    return tensors;
}

Given Subject::greatest(Given const& given) const
{
    Given most = given;
    for (Shape& shape : most.inputs)
    {
        for (int64_t& extent : shape)
        {
            extent *= 2;
        }
    }
    return most;
}

Described Subject::profile(Combination const& combination, Given const& given) const
{
    Given least = given;
    for (Shape& shape : least.inputs)
    {
        std::fill(shape.begin(), shape.end(), 1);
    }
    Described all = tensors(combination, given).all();
    Described const low = tensors(combination, least).all();
    Described const high = tensors(combination, greatest(given)).all();
    for (size_t i = 0; i < all.size(); ++i)
    {
        all[i].min = low[i].min;
        all[i].max = high[i].max;
        std::fill_n(all[i].desc.dims.d, all[i].desc.dims.nbDims, -1);
    }
    return all;
}

int32_t Subject::outputShapes(
    Probe& probe, IPluginV3& plugin, Given const& given, std::vector<Shape>* result) const
{
    Expressions expressions(facts.outputs);
    std::vector<nvinfer1::DimsExprs> const inputs = expressions.constants(given.inputs);
    std::vector<nvinfer1::DimsExprs> const values = expressions.constants(given.values);
    std::vector<nvinfer1::DimsExprs> outputs(static_cast<size_t>(facts.outputs));
    int32_t const code = buildOf(probe, plugin).getOutputShapes(inputs.data(), facts.inputs,
        values.empty() ? nullptr : values.data(), facts.shapeInputs, outputs.data(), facts.outputs, expressions);
    if (code == 0 && result != nullptr)
    {
        *result = expressions.evaluate(probe, outputs, {});
    }
    return code;
}

int32_t Subject::configure(Probe& probe, IPluginV3& plugin, Described const& all) const
{
    auto const outputs = static_cast<int32_t>(all.size()) - facts.inputs;
    return buildOf(probe, plugin).configurePlugin(all.data(), facts.inputs, all.data() + facts.inputs, outputs);
}

Owned Subject::configured(Probe& probe, int32_t combination) const
{
    Owned plugin = create(probe);
    int32_t const shaped = outputShapes(probe, *plugin, facts.given());
    probe.need(shaped == 0, "getOutputShapes " + show(shaped), "0");
    int32_t const code = configure(probe, *plugin, tensors(combination).all());
    probe.need(code == 0, "configurePlugin " + show(code), "0");
    return plugin;
}

size_t Subject::workspaceSize(Probe& probe, IPluginV3& plugin, Described const& all) const
{
    return buildOf(probe, plugin)
        .getWorkspaceSize(all.data(), facts.inputs, all.data() + facts.inputs, static_cast<int32_t>(all.size()) - facts.inputs);
}

std::vector<int32_t> Subject::tacticsOf(Probe& probe, IPluginV3& plugin) const
{
    auto& build = buildOf(probe, plugin);
    int32_t const count = build.getNbTactics();
    probe.need(count >= 0 && count <= 1024, show(count) + " tactics", "0 to 1024");
    std::vector<int32_t> tactics(static_cast<size_t>(count));
    probe.equal("getValidTactics", build.getValidTactics(tactics.data(), count), 0);
    return tactics;
}

Fields Subject::serialize(Probe& probe, IPluginV3& plugin) const
{
    return copy(probe, runtimeOf(probe, plugin).getFieldsToSerialize());
}

Creator& Subject::loader(Probe& probe, IPluginV3& plugin) const
{
    Identity const core = coreIdentityOf(probe, plugin);
    Creator* found = nullptr;
    for (Library const* library : mLibraries)
    {
        Creator* creator = library->find(probe, core);
        found = creator != nullptr ? creator : found;
    }
    probe.need(found != nullptr, "no creator for the core name " + show(core.text()),
        "one in the libraries given (`--runtime-library` names the one that runs engines)");
    return *found;
}

Owned Subject::load(Creator& loader, Fields const& fields, size_t shift) const
{
    Collection const collection(fields, shift);
    return Owned(loader.createPlugin("node", collection.get(), TensorRTPhase::kRUNTIME));
}

Owned Subject::loaded(Probe& probe, Creator& loader, Fields const& fields) const
{
    Owned plugin = load(loader, fields);
    if (plugin == nullptr)
    {
        std::string const error = firstError(logger.take());
        probe.need(false, "createPlugin rejected its own fields" + (error.empty() ? "" : ": " + show(error)), "a plugin");
    }
    return plugin;
}

void Subject::expectError(Probe& probe, std::string const& naming) const
{
    std::vector<Line> const lines = logger.take();
    std::string const error = firstError(lines);
    if (probe.that(!error.empty(), "a rejection without an error in the log", "the plugin's own message") && !naming.empty())
    {
        bool named = false;
        for (Line const& line : lines)
        {
            named = named || line.text.find(naming) != std::string::npos;
        }
        probe.that(named, "the message " + show(error), "one that names " + show(naming));
    }
}

std::vector<void*> devicePointers(size_t count)
{
    std::vector<void*> pointers;
    for (size_t i = 0; i < count; ++i)
    {
        // Aligned to 512 bytes like device addresses; unmapped: host reads crash.
        pointers.push_back(reinterpret_cast<void*>(0x0000'7A00'0000'0000ULL + i * 0x1000'0000ULL));
    }
    return pointers;
}

Places::Places(Facts const& facts)
{
    std::vector<void*> const all = devicePointers(static_cast<size_t>(facts.inputs + facts.outputs) + 1);
    mWorkspace = all.back();
    mInputs.assign(all.begin(), all.begin() + facts.inputs);
    mOutputs.assign(all.begin() + facts.inputs, all.end() - 1);
    for (size_t i = 0; i < facts.aliases.size(); ++i)
    {
        if (facts.aliases[i] >= 0)
        {
            mOutputs[i] = all[static_cast<size_t>(facts.aliases[i])];
        }
    }
}

Fields Subject::life(Probe& probe, int32_t combination) const
{
    Given const given = facts.given();
    Tensors const node = tensors(combination);
    Owned built = [&] {
        Owned parsed = create(probe);
        probe.equal("outputs", buildOf(probe, *parsed).getNbOutputs(), facts.outputs);
        return cloneOf(probe, *parsed);
    }();
    std::vector<nvinfer1::DataType> types;
    for (PluginTensorDesc const& desc : node.in)
    {
        types.push_back(desc.type);
    }
    std::vector<nvinfer1::DataType> outputTypes(static_cast<size_t>(facts.outputs));
    nvinfer1::IPluginV3OneBuild& build = buildOf(probe, *built);
    probe.equal("getOutputDataTypes",
        build.getOutputDataTypes(outputTypes.data(), facts.outputs, types.data(), facts.inputs), 0);
    std::vector<Shape> shapes;
    probe.equal("getOutputShapes", outputShapes(probe, *built, given, &shapes), 0);
    probe.that(shapes == facts.outputShapes(given), "other output shapes", "those of the formula");
    built = cloneOf(probe, *built);
    nvinfer1::IPluginV3OneBuild& own = buildOf(probe, *built);
    auto const all = node.all();
    for (int32_t i = 0; i < static_cast<int32_t>(all.size()); ++i)
    {
        probe.that(own.supportsFormatCombination(i, all.data(), facts.inputs, facts.outputs), "the combination rejected", "accepted");
    }
    own.getFormatCombinationLimit();
    probe.equal("configurePlugin", configure(probe, *built, all), 0);
    workspaceSize(probe, *built, all);
    std::vector<int32_t> const tactics = tacticsOf(probe, *built);
    Fields fields = serialize(probe, *built);
    Creator& creator = loader(probe, *built);
    built.reset();

    Owned running = loaded(probe, creator, fields);
    Context context;
    Owned attached = attachedOf(probe, *running, &context);
    nvinfer1::IPluginV3OneRuntime& runtime = runtimeOf(probe, *attached);
    probe.equal("setTactic", runtime.setTactic(tactics.empty() ? 0 : tactics[0]), 0);
    if (!driverPresent())
    {
        Tensors const announcedNode = tensors(combination);
        Places const places(facts);
        runtime.onShapeChange(announcedNode.in.data(), static_cast<int32_t>(announcedNode.in.size()),
            announcedNode.out.data(), facts.outputs);
        int32_t const code = runtime.enqueue(announcedNode.in.data(), announcedNode.out.data(), places.inputs(),
            places.outputs(), places.workspace(), nullptr);
        probe.that(code != 0, "0 from enqueue without a driver", "a failure");
    }
    return fields;
}

}
