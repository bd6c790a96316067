// Copyright of the Cubinder authors; Apache-2.0.
#include "subject.hpp"

#include <set>

namespace oracle
{

using nvinfer1::PluginTensorDesc;

namespace
{

struct Attached
{
    Owned loaded;
    Owned plugin;
    nvinfer1::IPluginV3OneRuntime* runtime{nullptr};
    std::vector<int32_t> tactics;
};

Attached attach(Subject const& subject, Probe& probe)
{
    Attached attached;
    Owned built = subject.configured(probe);
    attached.tactics = subject.tacticsOf(probe, *built);
    attached.loaded = subject.loaded(probe, subject.loader(probe, *built), subject.serialize(probe, *built));
    Context context;
    attached.plugin = attachedOf(probe, *attached.loaded, &context);
    attached.runtime = &runtimeOf(probe, *attached.plugin);
    return attached;
}

int32_t shapeChange(Subject const& subject, Attached const& attached, Tensors const& node)
{
    return attached.runtime->onShapeChange(node.in.data(), static_cast<int32_t>(node.in.size()), node.out.data(), subject.facts.outputs);
}

int32_t enqueue(Subject const& subject, Attached const& attached, Tensors const& node)
{
    Places const places(subject.facts);
    return attached.runtime->enqueue(
        node.in.data(), node.out.data(), places.inputs(), places.outputs(), places.workspace(), nullptr);
}

void checkAttaching(Subject const& subject)
{
    subject.check("attachToContext returns a new object", [&](Probe& probe) {
        Owned built = subject.configured(probe);
        Owned loaded
            = subject.loaded(probe, subject.loader(probe, *built), subject.serialize(probe, *built));
        Context context;
        for (auto* plugin : {built.get(), loaded.get()})
        {
            probe.at(plugin == built.get() ? "a plugin for building" : "a plugin of an engine");
            Owned first = attachedOf(probe, *plugin, &context);
            Owned second = attachedOf(probe, *plugin, &context);
            probe.that(first != second, "one object for two contexts", "one for each");
            probe.that(&runtimeOf(probe, *first) != &runtimeOf(probe, *plugin), "the original's runtime capability",
                "its own");
        }
        probe.equal("error", firstError(subject.logger.take()), std::string());
    });
    subject.check("attachToContext works without a context", [&](Probe& probe) {
        Attached attached = attach(subject, probe);
        attachedOf(probe, *attached.plugin, nullptr);
    });
    subject.check("an attached plugin outlives the one it came from", [&](Probe& probe) {
        Attached attached = attach(subject, probe);
        Fields const expected = subject.serialize(probe, *attached.loaded);
        attached.loaded.reset();
        std::string const fault = difference(subject.serialize(probe, *attached.plugin), expected);
        probe.that(fault.empty(), fault, "the same fields");
    });
    subject.check("setTactic accepts offered tactics, and 0 without tactics", [&](Probe& probe) {
        Attached attached = attach(subject, probe);
        for (int32_t tactic : attached.tactics)
        {
            probe.at("tactic " + show(tactic));
            probe.equal("setTactic", attached.runtime->setTactic(tactic), 0);
            probe.equal("setTactic again", attached.runtime->setTactic(tactic), 0);
        }
        if (attached.tactics.empty())
        {
            probe.equal("setTactic of 0", attached.runtime->setTactic(0), 0);
        }
        probe.equal("error", firstError(subject.logger.take()), std::string());
    });
    subject.check("setTactic rejects tactics that were not offered", [&](Probe& probe) {
        Attached attached = attach(subject, probe);
        std::set<int32_t> const offered(attached.tactics.begin(), attached.tactics.end());
        // INT32_MAX, like 0, leaves the choice open: engines store it for nodes with one variant.
        for (int32_t tactic : {-1, 123456789, INT32_MAX - 1, INT32_MIN})
        {
            if (offered.count(tactic) == 0)
            {
                probe.at("tactic " + show(tactic));
                probe.that(attached.runtime->setTactic(tactic) != 0, "0", "a failure");
                subject.expectError(probe);
            }
        }
    });
}

void checkRunning(Subject const& subject)
{
    Facts const& facts = subject.facts;
    subject.check("onShapeChange answers the same for the same shapes", [&](Probe& probe) {
        Attached attached = attach(subject, probe);
        Tensors const node = subject.tensors();
        Given given = facts.given();
        given.inputs[0][0] -= 1;
        Tensors const other = subject.tensors(facts.combinations()[0], given);
        int32_t const first = shapeChange(subject, attached, node);
        if (first != 0)
        {
            // Valid without a driver if the launch depends on code.
            probe.that(!driverPresent(), "onShapeChange " + show(first), "0");
            subject.expectError(probe);
        }
        probe.equal("unchanged", shapeChange(subject, attached, node), first);
        probe.equal("changed", shapeChange(subject, attached, other), first);
        probe.equal("changed back", shapeChange(subject, attached, node), first);
    });
    subject.check("onShapeChange rejects tensors that were not configured", [&](Probe& probe) {
        Attached attached = attach(subject, probe);
        Tensors const node = subject.tensors();
        shapeChange(subject, attached, node);
        subject.logger.take();
        auto refused = [&](std::string const& what, int32_t code) {
            probe.at(what);
            probe.that(code != 0, "0", "a failure");
            subject.expectError(probe);
        };
        auto refusedShapes = [&](std::string const& what, Tensors const& wrong) { refused(what, shapeChange(subject, attached, wrong)); };
        refusedShapes("an input of type kBOOL", [&] {
            Tensors wrong = node;
            wrong.in[0].type = static_cast<nvinfer1::DataType>(4);
            return wrong;
        }());
        refusedShapes("an input in a format of no combination", [&] {
            Tensors wrong = node;
            wrong.in[0].format = static_cast<nvinfer1::TensorFormat>(9); // the DLA's
            return wrong;
        }());
        auto const inputs = static_cast<int32_t>(node.in.size());
        refused("one input too few",
            attached.runtime->onShapeChange(node.in.data(), inputs - 1, node.out.data(), facts.outputs));
        refused("no output", attached.runtime->onShapeChange(node.in.data(), inputs, node.out.data(), 0));
        refused("null inputs", attached.runtime->onShapeChange(nullptr, inputs, node.out.data(), facts.outputs));
        refusedShapes("rank 9", [&] {
            Tensors wrong = node;
            wrong.in[0].dims.nbDims = 9;
            return wrong;
        }());
        refusedShapes("rank -1", [&] {
            Tensors wrong = node;
            wrong.in[0].dims.nbDims = -1;
            return wrong;
        }());
        if (!driverPresent())
        {
            return; // They may evaluate launches only with a driver.
        }
        refused("more elements than any GPU holds", [&] {
            Tensors wrong = node;
            for (auto* desc : {&wrong.in[0], &wrong.out[0]})
            {
                desc->dims.d[0] = INT32_MAX;
                desc->dims.d[1] = INT32_MAX;
                desc->dims.d[2] = INT32_MAX;
            }
            return shapeChange(subject, attached, wrong);
        }());
    });
    std::string const name = "enqueue without a driver fails with a reason";
    if (driverPresent())
    {
        subject.report.skip(facts.op.name + ": " + name, "a driver is here");
        return;
    }
    subject.check(name, [&](Probe& probe) {
        Attached attached = attach(subject, probe);
        Tensors const node = subject.tensors();
        probe.that(subject.logger.take().empty(), "a message about a missing driver before a run", "none");
        shapeChange(subject, attached, node);
        for (int32_t round = 0; round < 3; ++round)
        {
            probe.that(enqueue(subject, attached, node) != 0, "0", "a failure");
        }
        subject.expectError(probe);
    });
    subject.check("enqueue before onShapeChange fails", [&](Probe& probe) {
        Attached attached = attach(subject, probe);
        probe.that(enqueue(subject, attached, subject.tensors()) != 0, "0", "a failure");
        subject.expectError(probe);
    });
    subject.check("enqueue of a plugin for building fails without a driver", [&](Probe& probe) {
        // Tactics are timed on an attached copy of a build's plugin.
        Owned built = subject.configured(probe);
        Context context;
        Attached attached;
        attached.plugin = attachedOf(probe, *built, &context);
        attached.runtime = &runtimeOf(probe, *attached.plugin);
        probe.that(subject.logger.take().empty(), "a message about a missing driver before a run", "none");
        Tensors const node = subject.tensors();
        shapeChange(subject, attached, node);
        probe.that(enqueue(subject, attached, node) != 0, "0", "a failure");
        subject.expectError(probe);
    });
    subject.check("empty tensors do no harm", [&](Probe& probe) {
        Attached attached = attach(subject, probe);
        Given given = facts.given();
        given.inputs[0][0] = 0;
        Tensors const node = subject.tensors(facts.combinations()[0], given);
        int32_t const changed = shapeChange(subject, attached, node);
        int32_t const code = enqueue(subject, attached, node);
        if (changed != 0 || code != 0)
        {
            subject.expectError(probe);
        }
    });
}

}

void checkRuntime(Subject const& subject)
{
    checkAttaching(subject);
    checkRunning(subject);
}

}
