// Copyright of the Cubinder authors; Apache-2.0.
#include "subject.hpp"

namespace oracle
{

using nvinfer1::DynamicPluginTensorDesc;
using nvinfer1::IPluginV3;
using nvinfer1::PluginTensorDesc;
using nvinfer1::TensorRTPhase;

namespace
{

PluginTensorDesc described(int32_t dataType, Shape const& shape)
{
    PluginTensorDesc desc{};
    desc.dims = dimsOf(shape);
    desc.type = static_cast<nvinfer1::DataType>(dataType);
    desc.format = nvinfer1::TensorFormat::kLINEAR;
    desc.scale = 1.0F;
    return desc;
}

} // namespace

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

std::vector<DynamicPluginTensorDesc> Tensors::all() const
{
    std::vector<DynamicPluginTensorDesc> descs;
    for (auto const* list : {&in, &out})
    {
        for (PluginTensorDesc const& desc : *list)
        {
            descs.push_back({desc, desc.dims, desc.dims, desc.dims});
        }
    }
    return descs;
}

std::vector<DynamicPluginTensorDesc> Tensors::dynamic() const
{
    std::vector<DynamicPluginTensorDesc> descs = all();
    for (DynamicPluginTensorDesc& desc : descs)
    {
        for (int32_t i = 0; i < desc.desc.dims.nbDims; ++i)
        {
            desc.desc.dims.d[i] = -1;
            desc.min.d[i] = 1;
            desc.max.d[i] *= 2;
        }
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
    Tensors tensors;
    tensors.in.assign(static_cast<size_t>(facts.inputs), described(dataType, shape));
    tensors.out.push_back(described(dataType, facts.output(shape, attribute)));
    return tensors;
}

int32_t Subject::outputShapes(Probe& probe, IPluginV3& plugin, Shape const& shape, Shape* result) const
{
    Expressions expressions;
    nvinfer1::DimsExprs input{};
    input.nbDims = static_cast<int32_t>(shape.size());
    for (size_t i = 0; i < shape.size(); ++i)
    {
        input.d[i] = expressions.IExprBuilder::constant(shape[i]);
    }
    std::vector<nvinfer1::DimsExprs> const inputs(static_cast<size_t>(facts.inputs), input);
    nvinfer1::DimsExprs output{};
    int32_t const code = buildOf(probe, plugin).getOutputShapes(
        inputs.data(), facts.inputs, nullptr, 0, &output, 1, expressions);
    if (code == 0 && result != nullptr)
    {
        result->clear();
        probe.need(output.nbDims >= 0 && output.nbDims <= nvinfer1::Dims::MAX_DIMS, "rank " + show(output.nbDims),
            "0 to 8");
        for (int32_t i = 0; i < output.nbDims; ++i)
        {
            result->push_back(expressions.evaluate(output.d[i], {}));
        }
    }
    return code;
}

int32_t Subject::configure(Probe& probe, IPluginV3& plugin, std::vector<DynamicPluginTensorDesc> const& all) const
{
    auto const outputs = static_cast<int32_t>(all.size()) - facts.inputs;
    return buildOf(probe, plugin).configurePlugin(all.data(), facts.inputs, all.data() + facts.inputs, outputs);
}

Owned Subject::configured(Probe& probe, int32_t dataType) const
{
    Owned plugin = create(probe);
    int32_t const code = configure(probe, *plugin, tensors(dataType).all());
    probe.need(code == 0, "configurePlugin " + show(code), "0");
    return plugin;
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
        probe.need(false, "createPlugin refused its own fields" + (error.empty() ? "" : ": " + show(error)), "a plugin");
    }
    return plugin;
}

void Subject::expectError(Probe& probe, std::string const& naming) const
{
    std::vector<Line> const lines = logger.take();
    std::string const error = firstError(lines);
    if (probe.that(!error.empty(), "a refusal without an error in the log", "the plugin's own message") && !naming.empty())
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
        // Device addresses are aligned to 512. These lie in no mapping: reading one on the host is a crash.
        pointers.push_back(reinterpret_cast<void*>(0x0000'7A00'0000'0000ULL + i * 0x1000'0000ULL));
    }
    return pointers;
}

Fields Subject::life(Probe& probe, int32_t dataType) const
{
    Owned built = [&] {
        Owned parsed = create(probe);
        probe.equal("outputs", buildOf(probe, *parsed).getNbOutputs(), 1);
        return cloneOf(probe, *parsed);
    }();
    Tensors const node = tensors(dataType);
    std::vector<nvinfer1::DataType> const types(node.in.size(), node.in[0].type);
    nvinfer1::DataType outputType{};
    nvinfer1::IPluginV3OneBuild& build = buildOf(probe, *built);
    probe.equal("getOutputDataTypes", build.getOutputDataTypes(&outputType, 1, types.data(), facts.inputs), 0);
    Shape shape;
    probe.equal("getOutputShapes", outputShapes(probe, *built, facts.shape, &shape), 0);
    probe.equal("output shape", shape, facts.output(facts.shape, facts.attributeValue));
    auto const all = node.all();
    for (int32_t i = 0; i < static_cast<int32_t>(all.size()); ++i)
    {
        probe.that(build.supportsFormatCombination(i, all.data(), facts.inputs, 1), "linear refused", "accepted");
    }
    probe.equal("configurePlugin", configure(probe, *built, all), 0);
    build.getWorkspaceSize(all.data(), facts.inputs, all.data() + facts.inputs, 1);
    int32_t tactic = 0;
    std::vector<int32_t> tactics(static_cast<size_t>(build.getNbTactics()));
    if (!tactics.empty())
    {
        probe.equal("getValidTactics", build.getValidTactics(tactics.data(), static_cast<int32_t>(tactics.size())), 0);
        tactic = tactics[0];
    }
    Fields fields = serialize(probe, *built);
    Creator& creator = loader(probe, *built);
    built.reset();

    Owned running = loaded(probe, creator, fields);
    Context context;
    Owned attached = attachedOf(probe, *running, &context);
    nvinfer1::IPluginV3OneRuntime& runtime = runtimeOf(probe, *attached);
    probe.equal("setTactic", runtime.setTactic(tactic), 0);
    if (!driverPresent())
    {
        runtime.onShapeChange(node.in.data(), facts.inputs, node.out.data(), 1);
        std::vector<void*> const pointers = devicePointers(node.in.size() + 1);
        int32_t const code = runtime.enqueue(
            node.in.data(), node.out.data(), pointers.data(), pointers.data() + node.in.size(), nullptr, nullptr);
        probe.that(code != 0, "0 from enqueue without a driver", "a failure");
    }
    return fields;
}

} // namespace oracle
