// Copyright of the Cubinder authors; Apache-2.0.
//
// Clones and serialized fields: stable, complete and loadable.
#include "subject.hpp"

#include <algorithm>
#include <array>

namespace oracle
{

using nvinfer1::IPluginV3;
using nvinfer1::PluginFieldCollection;
using nvinfer1::TensorRTPhase;

namespace
{

void expectSame(Probe& probe, std::string const& what, Fields const& found, Fields const& expected)
{
    std::string const fault = difference(found, expected);
    probe.that(fault.empty(), what + " with " + fault, "the same fields");
}

void checkClones(Subject const& subject)
{
    Facts const& facts = subject.facts;
    subject.check("a clone is another object", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        Owned clone = cloneOf(probe, *plugin);
        for (int32_t type = 0; type < 3; ++type)
        {
            probe.at("capability " + show(type));
            auto const capability = static_cast<nvinfer1::PluginCapabilityType>(type);
            probe.that(plugin->getCapabilityInterface(capability) != clone->getCapabilityInterface(capability),
                "one capability for both", "one for each");
        }
    });
    subject.check("a clone outlives its original", [&](Probe& probe) {
        Fields const expected = subject.serialize(probe, *subject.configured(probe));
        Owned clone = [&] {
            Owned original = subject.create(probe);
            subject.outputShapes(probe, *original, facts.given());
            return cloneOf(probe, *original);
        }();
        Owned second = cloneOf(probe, *clone);
        clone.reset();
        probe.equal("configurePlugin", subject.configure(probe, *second, subject.tensors().all()), 0);
        expectSame(probe, "the clone", subject.serialize(probe, *second), expected);
    });
    subject.check("an original outlives its clone", [&](Probe& probe) {
        Owned plugin = subject.configured(probe);
        Fields const expected = subject.serialize(probe, *plugin);
        cloneOf(probe, *plugin).reset();
        expectSame(probe, "the original", subject.serialize(probe, *plugin), expected);
    });
    subject.check("a clone keeps the configuration", [&](Probe& probe) {
        Owned plugin = subject.configured(probe);
        Fields const expected = subject.serialize(probe, *plugin);
        Owned clone = cloneOf(probe, *plugin);
        plugin.reset();
        expectSame(probe, "the clone", subject.serialize(probe, *clone), expected);
    });
    subject.check("configuring a clone leaves the original unchanged", [&](Probe& probe) {
        Owned plugin = subject.configured(probe);
        Fields const before = subject.serialize(probe, *plugin);
        Owned clone = cloneOf(probe, *plugin);
        int32_t const other = facts.combinations().size() > 1 ? 1 : 0;
        subject.configure(probe, *clone, subject.tensors(other).all());
        expectSame(probe, "the original", subject.serialize(probe, *plugin), before);
        Fields const fresh = subject.serialize(probe, *subject.configured(probe, other));
        expectSame(probe, "the clone configured again", subject.serialize(probe, *clone), fresh);
    });
    subject.check("two plugins share no attributes", [&](Probe& probe) {
        auto const lists = facts.attributesFor(static_cast<int32_t>(facts.shape.size()));
        if (lists.size() < 2)
        {
            return;
        }
        Owned first = subject.create(probe, facts.attributesOf(lists[0]));
        Owned second = subject.create(probe, facts.attributesOf(lists[1]));
        for (bool const isFirst : {true, false})
        {
            Given given = facts.given();
            given.attribute = lists[isFirst ? 0 : 1];
            std::vector<Shape> shapes;
            probe.equal("getOutputShapes", subject.outputShapes(probe, isFirst ? *first : *second, given, &shapes), 0);
            probe.that(shapes == facts.outputShapes(given), "shapes of other attributes", "its own shapes");
        }
    });
}

void checkSerialization(Subject const& subject)
{
    subject.check("fields are the same at every call", [&](Probe& probe) {
        Owned plugin = subject.configured(probe);
        auto& runtime = runtimeOf(probe, *plugin);
        PluginFieldCollection const* first = runtime.getFieldsToSerialize();
        Fields const expected = copy(probe, first);
        for (int32_t i = 0; i < 3; ++i)
        {
            expectSame(probe, "a later call", copy(probe, runtime.getFieldsToSerialize()), expected);
        }
        // TensorRT asks three times and may read the first answer last.
        expectSame(probe, "the first answer, read again", copy(probe, first), expected);
    });
    subject.check("fields survive calls between them", [&](Probe& probe) {
        Owned plugin = subject.configured(probe);
        PluginFieldCollection const* first = runtimeOf(probe, *plugin).getFieldsToSerialize();
        Fields const expected = copy(probe, first);
        coreIdentityOf(probe, *plugin);
        buildOf(probe, *plugin).getNbTactics();
        cloneOf(probe, *plugin);
        Owned other = subject.configured(probe);
        subject.serialize(probe, *other);
        expectSame(probe, "the first answer", copy(probe, first), expected);
    });
    subject.check("the same node gives the same fields", [&](Probe& probe) {
        Fields const first = subject.serialize(probe, *subject.configured(probe));
        probe.that(!first.empty(), "no fields: the engine would contain nothing", "some");
        expectSame(probe, "another plugin", subject.serialize(probe, *subject.configured(probe)), first);
    });
    subject.check("other attributes give other fields", [&](Probe& probe) {
        auto const lists = subject.facts.attributesFor(static_cast<int32_t>(subject.facts.shape.size()));
        if (lists.size() < 2)
        {
            return;
        }
        std::vector<Fields> all;
        for (auto const& list : lists)
        {
            Owned plugin = subject.create(probe, subject.facts.attributesOf(list));
            Given given = subject.facts.given();
            given.attribute = list;
            subject.outputShapes(probe, *plugin, given);
            subject.configure(probe, *plugin, subject.tensors(subject.facts.combinations()[0], given).all());
            all.push_back(subject.serialize(probe, *plugin));
        }
        probe.that(!difference(all[0], all[1]).empty(), "the same fields", "the attributes in them");
    });
}

void checkRoundTrip(Subject const& subject)
{
    Facts const& facts = subject.facts;
    subject.check("a plugin of an engine keeps its fields and names", [&](Probe& probe) {
        std::vector<Combination> const combinations = facts.combinations();
        for (size_t i = 0; i < combinations.size(); ++i)
        {
            probe.at(combinations[i].text());
            Owned plugin = subject.configured(probe, static_cast<int32_t>(i));
            Fields const fields = subject.serialize(probe, *plugin);
            Identity const core = coreIdentityOf(probe, *plugin);
            Creator& loader = subject.loader(probe, *plugin);
            plugin.reset();
            Owned loaded = subject.loaded(probe, loader, fields);
            expectSame(probe, "the loaded plugin", subject.serialize(probe, *loaded), fields);
            expectSame(probe, "its clone", subject.serialize(probe, *cloneOf(probe, *loaded)), fields);
            probe.equal("core name", coreIdentityOf(probe, *loaded).text(), core.text());
            Context context;
            Owned attached = attachedOf(probe, *loaded, &context);
            expectSame(probe, "the attached plugin", subject.serialize(probe, *attached), fields);
            Owned again = subject.loaded(probe, loader, subject.serialize(probe, *attached));
            expectSame(probe, "the plugin loaded twice", subject.serialize(probe, *again), fields);
        }
        probe.equal("error", firstError(subject.logger.take()), std::string());
    });
    subject.check("fields load from any address", [&](Probe& probe) {
        Owned plugin = subject.configured(probe);
        Fields const fields = subject.serialize(probe, *plugin);
        Creator& loader = subject.loader(probe, *plugin);
        for (size_t shift : {1, 2, 3, 4, 7, 8})
        {
            probe.at("an address of " + show(static_cast<uint64_t>(shift)) + " modulo 16");
            Owned loaded = subject.load(loader, fields, shift);
            probe.need(loaded != nullptr, "a refusal", "a plugin");
            expectSame(probe, "the loaded plugin", subject.serialize(probe, *loaded), fields);
        }
    });
    subject.check("a loaded plugin keeps nothing of TensorRT's memory", [&](Probe& probe) {
        Owned plugin = subject.configured(probe);
        Fields const fields = subject.serialize(probe, *plugin);
        Creator& loader = subject.loader(probe, *plugin);
        auto collection = std::make_unique<Collection>(fields);
        Owned loaded(loader.createPlugin("node", collection->get(), TensorRTPhase::kRUNTIME));
        probe.need(loaded != nullptr, "a refusal", "a plugin");
        for (int32_t i = 0; i < collection->get()->nbFields; ++i)
        {
            auto const& field = collection->get()->fields[i];
            auto* data = const_cast<uint8_t*>(static_cast<uint8_t const*>(field.data));
            if (data != nullptr)
            {
                std::fill_n(data, static_cast<size_t>(field.length) * elementSize(field.type), uint8_t{0x5A});
            }
        }
        collection.reset();
        expectSame(probe, "the loaded plugin", subject.serialize(probe, *loaded), fields);
    });
    subject.check("plugins are destroyed in any order", [&](Probe& probe) {
        Owned plugin = subject.configured(probe);
        Fields const fields = subject.serialize(probe, *plugin);
        Creator& loader = subject.loader(probe, *plugin);
        std::array<int32_t, 4> order{0, 1, 2, 3};
        do
        {
            std::array<Owned, 4> owned;
            Context context;
            owned[0] = subject.loaded(probe, loader, fields);
            owned[1] = cloneOf(probe, *owned[0]);
            owned[2] = attachedOf(probe, *owned[0], &context);
            owned[3] = attachedOf(probe, *owned[1], &context);
            for (int32_t which : order)
            {
                owned[static_cast<size_t>(which)].reset();
                for (Owned const& left : owned)
                {
                    if (left != nullptr)
                    {
                        expectSame(probe, "a plugin left", subject.serialize(probe, *left), fields);
                    }
                }
            }
        } while (std::next_permutation(order.begin(), order.end()));
    });
    subject.check("destroyed in place, and destroyed and freed", [&](Probe& probe) {
        // Slot 2 destroys, slot 3 also frees. This leaks.
        Owned plugin = subject.create(probe);
        IPluginV3* clone = cloneOf(probe, *plugin).release();
        clone->~IPluginV3();
        plugin.reset();
    });
}

}

void checkFields(Subject const& subject)
{
    checkClones(subject);
    checkSerialization(subject);
    checkRoundTrip(subject);
}

}
