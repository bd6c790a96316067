// Copyright of the Cubinder authors; Apache-2.0.
#include "subject.hpp"
#include "versions.hpp"

namespace oracle
{

using nvinfer1::IPluginCapability;
using nvinfer1::IPluginV3;
using nvinfer1::InterfaceInfo;
using nvinfer1::PluginCapabilityType;
using nvinfer1::TensorRTPhase;

namespace
{

constexpr int32_t kUNKNOWN = 99;

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
        expectInterface(probe, buildOf(probe, *plugin), "PLUGIN_V3ONE_BUILD", kBUILD_VERSION);
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
        // A null type_info pointer crashes here; null and the object are valid.
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
    return subject.outputShapes(probe, *plugin, subject.facts.given()) != 0
        || subject.configure(probe, *plugin, subject.tensors().all()) != 0;
}

void checkCreation(Subject const& subject)
{
    Facts const& facts = subject.facts;
    subject.check("createPlugin accepts valid attributes without a message", [&](Probe& probe) {
        subject.create(probe);
        probe.equal("error", firstError(subject.logger.take()), std::string());
    });
    for (Refusal const& refusal : facts.refusals)
    {
        subject.check("rejects " + refusal.label, [&](Probe& probe) {
            probe.need(isRefused(subject, probe, refusal), "a plugin", "a refusal");
            subject.expectError(probe, refusal.namesAttribute ? facts.attribute : "");
        });
    }
    subject.check("an empty list has null data", [&](Probe& probe) {
        if (facts.attribute.empty())
        {
            return;
        }
        // The ONNX parser passes `[]` as length 0 and null, valid only for lists.
        Collection const collection(facts.attributesOf({}));
        Owned plugin(subject.op.createPlugin("node", collection.get(), TensorRTPhase::kBUILD));
        bool const isList = facts.attributesFor(1).front().empty();
        probe.that((plugin != nullptr) == isList, plugin ? "a plugin" : "a refusal", isList ? "a plugin" : "a refusal");
    });
    subject.check("a field of another name is rejected or ignored", [&](Probe& probe) {
        Fields fields = facts.attributes();
        fields.push_back(ints("no_such_attribute", {1}));
        Collection const collection(fields);
        Owned plugin(subject.op.createPlugin("node", collection.get(), TensorRTPhase::kBUILD));
        if (plugin == nullptr)
        {
            subject.expectError(probe, "no_such_attribute");
        }
    });
    subject.check("a field without a name is harmless", [&](Probe& probe) {
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
    subject.check("a null node name is accepted", [&](Probe& probe) {
        Collection const collection(facts.attributes());
        Owned plugin(subject.op.createPlugin(nullptr, collection.get(), TensorRTPhase::kBUILD));
        probe.need(plugin != nullptr, "a refusal", "a plugin");
    });
    for (bool const isRuntime : {false, true})
    {
        auto const phase = isRuntime ? TensorRTPhase::kRUNTIME : TensorRTPhase::kBUILD;
        subject.check(std::string("invalid collections are rejected, ") + (isRuntime ? "running" : "building"),
            [&](Probe& probe) {
                // Applications may omit an empty collection.
                bool const isEnough = !isRuntime && facts.attributes().empty();
                probe.at("a null collection");
                Owned const plain(subject.op.createPlugin("node", nullptr, phase));
                probe.that((plain != nullptr) == isEnough, plain != nullptr ? "a plugin" : "null", isEnough ? "a plugin" : "null");
                if (!isEnough)
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
    subject.check("an unknown phase is rejected", [&](Probe& probe) {
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
        subject.check("aot = 1 is the default behavior", [&](Probe& probe) {
            Fields fields = facts.attributes();
            fields.push_back(ints("aot", {1}));
            subject.create(probe, fields);
            probe.that(subject.logger.take().empty(), "messages in the log", "none");
        });
        subject.check("aot = 0 is logged", [&](Probe& probe) {
            Fields fields = facts.attributes();
            fields.push_back(ints("aot", {0}));
            subject.create(probe, fields);
            probe.that(!subject.logger.take().empty(), "an empty log", "a line about the plugin's behavior");
        });
    }
}

}

void checkBuild(Subject const& subject)
{
    checkInterfaces(subject);
    checkCreation(subject);
}

}
