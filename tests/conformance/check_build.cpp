// Copyright of the Cubinder authors; Apache-2.0.
//
// Creation and the build capability.
#include "subject.hpp"

#include <algorithm>
#include <set>

namespace oracle
{

using nvinfer1::DataType;
using nvinfer1::DynamicPluginTensorDesc;
using nvinfer1::IPluginCapability;
using nvinfer1::IPluginV3;
using nvinfer1::InterfaceInfo;
using nvinfer1::PluginCapabilityType;
using nvinfer1::TensorRTPhase;

namespace
{

// More than any data type and any format of the headers, so that values of later releases are tried as well.
constexpr int32_t kDATA_TYPES = 16;
constexpr int32_t kFORMATS = 18;
constexpr int32_t kUNKNOWN = 99;
constexpr uint64_t kMOST_WORKSPACE = 64ULL << 30;

void expectInterface(Probe& probe, nvinfer1::IVersionedInterface& interface, char const* kind, int32_t newest)
{
    InterfaceInfo const info = interface.getInterfaceInfo();
    probe.text("kind", info.kind, kind);
    probe.that(info.major >= 1 && info.major <= newest, "major version " + show(info.major), "1 to " + show(newest));
    probe.equal("minor version", info.minor, 0);
    probe.equal("language", static_cast<int32_t>(interface.getAPILanguage()), 0);
}

void checkInterfaces(Subject const& subject)
{
    subject.check("plugin interface", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        expectInterface(probe, *plugin, "PLUGIN", 1);
    });
    subject.check("capability interfaces", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        expectInterface(probe, coreOf(probe, *plugin), "PLUGIN_V3ONE_CORE", 1);
        expectInterface(probe, buildOf(probe, *plugin), "PLUGIN_V3ONE_BUILD", 2);
        expectInterface(probe, runtimeOf(probe, *plugin), "PLUGIN_V3ONE_RUNTIME", 1);
    });
    subject.check("capability pointers are stable", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        for (int32_t type = 0; type < 3; ++type)
        {
            auto const capability = static_cast<PluginCapabilityType>(type);
            IPluginCapability* first = plugin->getCapabilityInterface(capability);
            for (int32_t i = 0; i < 40; ++i)
            {
                probe.at("capability " + show(type));
                probe.equal("pointer", static_cast<void const*>(plugin->getCapabilityInterface(capability)),
                    static_cast<void const*>(first));
            }
        }
    });
    subject.check("an unknown capability is null", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        for (int32_t type : {3, 4, kUNKNOWN, -1, INT32_MIN, INT32_MAX})
        {
            probe.at("capability " + show(type));
            auto* found = plugin->getCapabilityInterface(static_cast<PluginCapabilityType>(type));
            probe.equal("pointer", static_cast<void const*>(found), static_cast<void const*>(nullptr));
        }
    });
    subject.check("dynamic_cast is answered", [&](Probe& probe) {
        // With a null type_info pointer in the vtable this crashes. Null is a good answer, the object itself too.
        Owned plugin = subject.create(probe);
        IPluginCapability* build = plugin->getCapabilityInterface(PluginCapabilityType::kBUILD);
        auto* cast = dynamic_cast<nvinfer1::IPluginV3OneBuild*>(build);
        probe.that(cast == nullptr || cast == static_cast<nvinfer1::IPluginV3OneBuild*>(build), "another object",
            "null or the same");
        dynamic_cast<nvinfer1::IPluginV3OneCore*>(build);
    });
    subject.check("core name", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        Identity const core = coreIdentityOf(probe, *plugin);
        std::string const fault = subject.facts.coreFault(core);
        probe.that(fault.empty(), "core name " + show(core.text()), fault);
        probe.that(coreIdentityOf(probe, *cloneOf(probe, *plugin)) == core, "another core name on a clone", core.text());
    });
}

// Refused by createPlugin, or, where the rule needs the rank, by what asks for types, shapes or the configuration.
bool isRefused(Subject const& subject, Probe& probe, Refusal const& refusal)
{
    Collection const collection(refusal.fields);
    Owned plugin(subject.op.createPlugin("node", collection.get(), TensorRTPhase::kBUILD));
    if (plugin == nullptr)
    {
        return true;
    }
    if (!refusal.mayBeLate)
    {
        return false;
    }
    // Late refusals are about the rank: it is the case's own, 4.
    return subject.outputShapes(probe, *plugin, subject.facts.shape) != 0
        || subject.configure(probe, *plugin, subject.tensors().all()) != 0;
}

void checkCreation(Subject const& subject)
{
    Facts const& facts = subject.facts;
    subject.check("createPlugin takes good attributes without a word", [&](Probe& probe) {
        subject.create(probe);
        probe.equal("error", firstError(subject.logger.take()), std::string());
    });
    for (Refusal const& refusal : facts.refusals)
    {
        subject.check("refuses " + refusal.label, [&](Probe& probe) {
            probe.need(isRefused(subject, probe, refusal), "a plugin", "a refusal");
            subject.expectError(probe, refusal.namesAttribute ? facts.attribute : "");
        });
    }
    subject.check("an empty list has null data", [&](Probe& probe) {
        // What the ONNX parser passes for `[]`: length 0, null. A scalar attribute must refuse it, a list may take it.
        Collection const collection({ints(facts.attribute, {})});
        Owned plugin(subject.op.createPlugin("node", collection.get(), TensorRTPhase::kBUILD));
        bool const isList = facts.attributesFor(1).front().empty();
        probe.that((plugin != nullptr) == isList, plugin ? "a plugin" : "a refusal", isList ? "a plugin" : "a refusal");
    });
    subject.check("a field of another name is refused or left out", [&](Probe& probe) {
        Fields fields = facts.attributes();
        fields.push_back(ints("no_such_attribute", {1}));
        Collection const collection(fields);
        Owned plugin(subject.op.createPlugin("node", collection.get(), TensorRTPhase::kBUILD));
        if (plugin == nullptr)
        {
            subject.expectError(probe, "no_such_attribute");
        }
    });
    subject.check("a field without a name does no harm", [&](Probe& probe) {
        Fields fields = facts.attributes();
        fields.push_back(ints("", {1}));
        fields.back().name.reset();
        Collection const collection(fields);
        Owned plugin(subject.op.createPlugin("node", collection.get(), TensorRTPhase::kBUILD));
        if (plugin == nullptr)
        {
            subject.expectError(probe);
        }
    });
    subject.check("a null node name does no harm", [&](Probe& probe) {
        Collection const collection(facts.attributes());
        Owned plugin(subject.op.createPlugin(nullptr, collection.get(), TensorRTPhase::kBUILD));
        probe.need(plugin != nullptr, "a refusal", "a plugin");
    });
    for (bool const isRuntime : {false, true})
    {
        auto const phase = isRuntime ? TensorRTPhase::kRUNTIME : TensorRTPhase::kBUILD;
        subject.check(std::string("impossible collections are refused, ") + (isRuntime ? "running" : "building"),
            [&](Probe& probe) {
                probe.at("a null collection");
                probe.that(Owned(subject.op.createPlugin("node", nullptr, phase)) == nullptr, "a plugin", "null");
                subject.expectError(probe);
                for (int32_t count : {1, -1, INT32_MIN, INT32_MAX})
                {
                    probe.at(show(count) + " fields at null");
                    Collection collection({});
                    collection.raw().nbFields = count;
                    Owned plugin(subject.op.createPlugin("node", collection.get(), phase));
                    probe.that(plugin == nullptr, "a plugin", "null");
                    subject.expectError(probe);
                }
            });
    }
    subject.check("an unknown phase is refused", [&](Probe& probe) {
        Collection const collection(facts.attributes());
        for (int32_t phase : {2, kUNKNOWN, -1})
        {
            probe.at("phase " + show(phase));
            Owned plugin(subject.op.createPlugin("node", collection.get(), static_cast<TensorRTPhase>(phase)));
            probe.that(plugin == nullptr, "a plugin", "null");
            subject.expectError(probe);
        }
    });
    if (facts.aot)
    {
        subject.check("aot = 1 is what the plugin is", [&](Probe& probe) {
            Fields fields = facts.attributes();
            fields.push_back(ints("aot", {1}));
            subject.create(probe, fields);
            probe.that(subject.logger.take().empty(), "words in the log", "none");
        });
        subject.check("aot = 0 is answered in the log", [&](Probe& probe) {
            Fields fields = facts.attributes();
            fields.push_back(ints("aot", {0}));
            subject.create(probe, fields);
            probe.that(!subject.logger.take().empty(), "an empty log", "a line that says what the plugin does");
        });
    }
}

void checkTypes(Subject const& subject)
{
    Facts const& facts = subject.facts;
    subject.check("one output, with the type of the input", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        auto& build = buildOf(probe, *plugin);
        probe.equal("getNbOutputs", build.getNbOutputs(), 1);
        for (int32_t type = 0; type < kDATA_TYPES; ++type)
        {
            probe.at("data type " + show(type));
            std::vector<DataType> const in(static_cast<size_t>(facts.inputs), static_cast<DataType>(type));
            DataType out = static_cast<DataType>(kUNKNOWN);
            int32_t const code = build.getOutputDataTypes(&out, 1, in.data(), facts.inputs);
            probe.equal("accepted", code == 0, facts.takes(type));
            if (code == 0)
            {
                probe.equal("output type", static_cast<int32_t>(out), type);
            }
            else
            {
                subject.expectError(probe);
            }
        }
    });
    subject.check("getOutputDataTypes refuses other counts", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        auto& build = buildOf(probe, *plugin);
        std::vector<DataType> const in(8, DataType::kFLOAT);
        std::vector<DataType> out(8, DataType::kFLOAT);
        for (int32_t inputs : {0, facts.inputs - 1, facts.inputs + 1, -1})
        {
            probe.at(show(inputs) + " inputs");
            probe.that(build.getOutputDataTypes(out.data(), 1, in.data(), inputs) != 0, "0", "a failure");
        }
        for (int32_t outputs : {0, 2, -1})
        {
            probe.at(show(outputs) + " outputs");
            probe.that(build.getOutputDataTypes(out.data(), outputs, in.data(), facts.inputs) != 0, "0", "a failure");
        }
    });
    subject.check("supportsFormatCombination at every position, type and format", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        auto& build = buildOf(probe, *plugin);
        int32_t const count = facts.inputs + 1;
        for (int32_t first : {0, 1})
        {
            if (!facts.takes(first))
            {
                continue;
            }
            for (int32_t position = 0; position < count; ++position)
            {
                for (int32_t type = 0; type < kDATA_TYPES; ++type)
                {
                    for (int32_t format = 0; format < kFORMATS; ++format)
                    {
                        auto all = subject.tensors(first).all();
                        all[static_cast<size_t>(position)].desc.type = static_cast<DataType>(type);
                        all[static_cast<size_t>(position)].desc.format = static_cast<nvinfer1::TensorFormat>(format);
                        // TensorRT fills in what comes before the position; what follows is not to be read.
                        for (size_t i = static_cast<size_t>(position) + 1; i < all.size(); ++i)
                        {
                            all[i].desc.type = static_cast<DataType>(kUNKNOWN);
                            all[i].desc.format = static_cast<nvinfer1::TensorFormat>(kUNKNOWN);
                        }
                        bool const expected
                            = format == 0 && (position == 0 ? facts.takes(type) : type == first);
                        probe.at("position " + show(position) + ", type " + show(type) + ", format " + show(format));
                        probe.equal("supported",
                            build.supportsFormatCombination(position, all.data(), facts.inputs, 1), expected);
                    }
                }
            }
        }
        auto const all = subject.tensors().all();
        for (int32_t position : {-1, count, INT32_MAX, INT32_MIN})
        {
            probe.at("position " + show(position));
            probe.equal("supported", build.supportsFormatCombination(position, all.data(), facts.inputs, 1), false);
        }
    });
    subject.check("getFormatCombinationLimit is positive", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        int32_t const limit = buildOf(probe, *plugin).getFormatCombinationLimit();
        probe.that(limit > 0, show(limit), "more than 0");
    });
}

void checkConfiguration(Subject const& subject)
{
    Facts const& facts = subject.facts;
    subject.check("configurePlugin takes static and dynamic shapes", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        for (int32_t type : {0, 1})
        {
            if (facts.takes(type))
            {
                probe.at("data type " + show(type));
                probe.equal("static", subject.configure(probe, *plugin, subject.tensors(type).all()), 0);
                probe.equal("dynamic", subject.configure(probe, *plugin, subject.tensors(type).dynamic()), 0);
            }
        }
    });
    subject.check("configurePlugin refuses what was never offered", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        auto const node = subject.tensors();
        auto all = node.all();
        all[0].desc.type = static_cast<DataType>(3);
        probe.at("an input of type kINT32");
        probe.that(subject.configure(probe, *plugin, all) != 0, "0", "a failure");
        subject.expectError(probe);
        auto const good = node.all();
        probe.at("one input too few");
        int32_t const code
            = buildOf(probe, *plugin).configurePlugin(good.data(), facts.inputs - 1, good.data() + facts.inputs, 1);
        probe.that(code != 0, "0", "a failure");
        subject.expectError(probe);
        probe.at("no output");
        probe.that(
            buildOf(probe, *plugin).configurePlugin(good.data(), facts.inputs, good.data() + facts.inputs, 0) != 0, "0",
            "a failure");
        subject.expectError(probe);
    });
    subject.check("getWorkspaceSize is bounded and repeatable", [&](Probe& probe) {
        Owned plugin = subject.configured(probe);
        auto& build = buildOf(probe, *plugin);
        auto size = [&](std::vector<DynamicPluginTensorDesc> const& all) {
            return static_cast<uint64_t>(
                build.getWorkspaceSize(all.data(), facts.inputs, all.data() + facts.inputs, 1));
        };
        auto all = subject.tensors().dynamic();
        uint64_t const first = size(all);
        probe.that(first <= kMOST_WORKSPACE, show(first) + " bytes", "at most 64 GiB");
        probe.equal("size", size(all), first);
        // With a data-dependent or aliased node the opt dimensions are -1.
        for (auto& desc : all)
        {
            std::fill_n(desc.opt.d, desc.opt.nbDims, -1);
        }
        uint64_t const unknown = size(all);
        probe.that(unknown <= kMOST_WORKSPACE, show(unknown) + " bytes with unknown opt", "at most 64 GiB");
    });
    subject.check("tactics are positive, distinct and as many as announced", [&](Probe& probe) {
        for (bool const isDynamic : {false, true})
        {
            probe.at(isDynamic ? "dynamic shapes" : "static shapes");
            Owned plugin = subject.create(probe);
            Tensors const node = subject.tensors();
            subject.configure(probe, *plugin, isDynamic ? node.dynamic() : node.all());
            auto& build = buildOf(probe, *plugin);
            probe.equal("getValidTactics of none", build.getValidTactics(nullptr, 0), 0);
            int32_t const count = build.getNbTactics();
            probe.need(count >= 0 && count <= 1024, show(count) + " tactics", "0 to 1024");
            probe.equal("getNbTactics", build.getNbTactics(), count);
            constexpr int32_t kCANARY = -0x5EED;
            std::vector<int32_t> tactics(static_cast<size_t>(count) + 1, kCANARY);
            probe.equal("getValidTactics", build.getValidTactics(tactics.data(), count), 0);
            probe.equal("the element behind the last", tactics.back(), kCANARY);
            tactics.pop_back();
            std::set<int32_t> seen;
            for (int32_t tactic : tactics)
            {
                probe.that(tactic > 0, "tactic " + show(tactic), "more than 0: TensorRT refuses others");
                probe.that(seen.insert(tactic).second, "tactic " + show(tactic) + " twice", "each once");
            }
        }
    });
    subject.check("getTimingCacheID is null", [&](Probe& probe) {
        Owned plugin = subject.configured(probe);
        probe.text("id", buildOf(probe, *plugin).getTimingCacheID(), nullptr);
    });
    subject.check("getMetadataString is null or a stable text", [&](Probe& probe) {
        Owned plugin = subject.configured(probe);
        auto& build = buildOf(probe, *plugin);
        char const* first = build.getMetadataString();
        std::string const kept = first == nullptr ? "" : first;
        probe.text("second answer", build.getMetadataString(), first == nullptr ? nullptr : kept.c_str());
        probe.that(first == nullptr || kept == first, "a first answer that changed", "the same text");
    });
    subject.check("getAliasedInput is -1", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        auto& build = buildOf(probe, *plugin);
        if (build.getInterfaceInfo().major < 2)
        {
            return; // The slot came with version 2.
        }
        auto& second = static_cast<nvinfer1::IPluginV3OneBuildV2&>(build);
        for (int32_t output : {0, 1, -1, INT32_MAX})
        {
            probe.at("output " + show(output));
            probe.equal("input", second.getAliasedInput(output), -1);
        }
    });
}

} // namespace

void checkBuild(Subject const& subject)
{
    checkInterfaces(subject);
    checkCreation(subject);
    checkTypes(subject);
    checkConfiguration(subject);
}

} // namespace oracle
