// Copyright of the Cubinder authors; Apache-2.0.
//
// A builder that times every type, format and tactic; engines run in any order.
#include "general.hpp"
#include "../conformance/heap.hpp"

#include <atomic>
#include <thread>

namespace oracle
{

namespace
{

constexpr int32_t kREPEATS = 3;
constexpr int32_t kTHREADS = 16;

struct Built
{
    Owned plugin;
    uint64_t workspace;
    std::vector<int32_t> tactics;
};

Built build(Session const& session, Probe& probe, Combination const& combination, Given const& given, bool isDynamic)
{
    Subject const& subject = session.subject;
    Owned const parsed = subject.create(probe, subject.facts.attributesOf(given.attribute));
    Owned const cloned = cloneOf(probe, *parsed);
    std::vector<Shape> shapes;
    probe.equal("getOutputShapes", subject.outputShapes(probe, *cloned, given, &shapes), 0);
    Built built;
    built.plugin = cloneOf(probe, *cloned);
    Described const all = isDynamic ? subject.profile(combination, given) : subject.tensors(combination, given).all();
    int32_t const code = subject.configure(probe, *built.plugin, all);
    probe.need(code == 0, "configurePlugin " + show(code) + " " + show(firstError(session.bench.logger.take())), "0");
    built.workspace = subject.workspaceSize(probe, *built.plugin, all);
    built.tactics = subject.tacticsOf(probe, *built.plugin);
    if (built.tactics.empty())
    {
        built.tactics = {0};
    }
    return built;
}

int32_t announce(Subject const& subject, nvinfer1::IPluginV3OneRuntime& runtime, Tensors const& node)
{
    return runtime.onShapeChange(node.in.data(), static_cast<int32_t>(node.in.size()), node.out.data(), subject.facts.outputs);
}

void runOnce(Session const& session, Probe& probe, nvinfer1::IPluginV3OneRuntime& runtime, General const& plugin,
    Combination const& combination, Given const& given, int32_t tactic, uint64_t workspace, bool apart = false)
{
    Memory const memory(plugin.facts, combination, given, workspace, apart);
    Tensors const node = session.subject.tensors(combination, given);
    memory.announce(session.bench.driver);
    int32_t const code = announce(session.subject, runtime, node);
    probe.need(code == 0, "onShapeChange " + show(code) + " " + show(firstError(session.bench.logger.take())), "0");
    for (int32_t round = 0; round < kREPEATS; ++round)
    {
        session.forget();
        int32_t const queued = memory.enqueue(runtime, node);
        probe.need(queued == 0, "enqueue " + show(queued) + " " + show(firstError(session.bench.logger.take())), "0");
        expectQueued(session, probe, plugin.steps(combination, given, tactic, memory));
    }
}

Given odd(Given const& given)
{
    Given small = given;
    for (int64_t& extent : small.inputs[0])
    {
        extent = extent > 2 ? extent - 1 : extent;
    }
    return small;
}

struct Engine
{
    Owned loaded;
    Owned plugin;
    nvinfer1::IPluginV3OneRuntime* runtime;
    uint64_t workspace;
    std::vector<int32_t> tactics;
};

Engine engine(Session const& session, Probe& probe, Combination const& combination, Given const& given, bool isDynamic)
{
    Built built = build(session, probe, combination, given, isDynamic);
    Fields const fields = session.subject.serialize(probe, *built.plugin);
    Creator& loader = session.subject.loader(probe, *built.plugin);
    Engine engine;
    engine.workspace = built.workspace;
    engine.tactics = built.tactics;
    engine.loaded = session.subject.loaded(probe, loader, fields);
    Context context;
    engine.plugin = attachedOf(probe, *engine.loaded, &context);
    engine.runtime = &runtimeOf(probe, *engine.plugin);
    return engine;
}

}

void checkTiming(Bench const& bench, General const& plugin)
{
    for (bool const isDynamic : {false, true})
    {
        std::string const name = std::string("a builder that times, ") + (isDynamic ? "dynamic" : "static") + " shapes";
        check(bench, plugin.facts, name, [&](Session const& session, Probe& probe) {
            for (Given const& given : plugin.facts.cases)
            {
                for (Combination const& combination : plugin.facts.combinations())
                {
                    Built const built = build(session, probe, combination, given, isDynamic);
                    Context context;
                    Owned const timed = attachedOf(probe, *built.plugin, &context);
                    auto& runtime = runtimeOf(probe, *timed);
                    for (int32_t tactic : built.tactics)
                    {
                        probe.at(combination.text() + ", tactic " + show(tactic) + ", inputs " + show(given.inputs[0]));
                        probe.equal("setTactic", runtime.setTactic(tactic), 0);
                        runOnce(session, probe, runtime, plugin, combination, given, tactic, built.workspace);
                        if (isDynamic)
                        {
                            runOnce(session, probe, runtime, plugin, combination, session.subject.greatest(given), tactic, built.workspace);
                        }
                    }
                    runtimeOf(probe, *built.plugin).getFieldsToSerialize();
                }
            }
        });
    }
}

void checkEngine(Bench const& bench, General const& plugin)
{
    Facts const& facts = plugin.facts;
    check(bench, facts, "an engine queues its steps, within the reserved workspace", [&](Session const& session, Probe& probe) {
        for (Combination const& combination : facts.combinations())
        {
            Given const given = facts.given();
            Engine const running = engine(session, probe, combination, given, true);
            for (int32_t tactic : running.tactics)
            {
                probe.at(combination.text() + ", tactic " + show(tactic));
                probe.equal("setTactic", running.runtime->setTactic(tactic), 0);
                for (Given const& shapes : {given, odd(given), session.subject.greatest(given), given})
                {
                    runOnce(session, probe, *running.runtime, plugin, combination, shapes, tactic, running.workspace);
                }
            }
        }
    });
    check(bench, facts, "unchanged shapes cost the steps and no memory", [&](Session const& session, Probe& probe) {
        Combination const combination = facts.combinations()[0];
        Given const given = facts.given();
        Engine const running = engine(session, probe, combination, given, false);
        runOnce(session, probe, *running.runtime, plugin, combination, given, running.tactics[0], running.workspace);
        Memory const memory(facts, combination, given, running.workspace);
        Tensors const node = session.subject.tensors(combination, given);
        std::vector<void const*> inputs;
        std::vector<void*> outputs;
        for (size_t i = 0; i < static_cast<size_t>(facts.inputs + facts.outputs); ++i)
        {
            void* const address = reinterpret_cast<void*>(memory.address(i));
            i < static_cast<size_t>(facts.inputs) ? inputs.push_back(address) : outputs.push_back(address);
        }
        int32_t codes = 0;
        session.forget();
        uint64_t const before = heapAllocations();
        for (int32_t round = 0; round < 100; ++round)
        {
            codes |= announce(session.subject, *running.runtime, node);
            codes |= running.runtime->enqueue(node.in.data(), node.out.data(), inputs.data(), outputs.data(),
                reinterpret_cast<void*>(memory.workspace()), static_cast<cudaStream_t>(stream()));
        }
        uint64_t const after = heapAllocations();
        probe.equal("codes", codes, 0);
        probe.equal("allocations", after - before, uint64_t{0});
        size_t const steps = plugin.steps(combination, given, running.tactics[0], memory).size();
        probe.equal("calls", static_cast<uint64_t>(session.events().size()), static_cast<uint64_t>(100 * steps));
    });
    check(bench, facts, "shapes that need more workspace than was reserved are rejected", [&](Session const& session, Probe& probe) {
        if (!facts.workspace)
        {
            return;
        }
        Combination const combination = facts.combinations()[0];
        Given const given = facts.given();
        Engine const running = engine(session, probe, combination, given, false);
        Given const most = session.subject.greatest(given);
        Memory const memory(facts, combination, most, running.workspace);
        memory.announce(session.bench.driver);
        Tensors const node = session.subject.tensors(combination, most);
        session.forget();
        bool const isRefused = announce(session.subject, *running.runtime, node) != 0 || memory.enqueue(*running.runtime, node) != 0;
        probe.that(isRefused, "0", "a failure");
        session.subject.expectError(probe);
        expectQueued(session, probe, {});
        runOnce(session, probe, *running.runtime, plugin, combination, given, running.tactics[0], running.workspace);
    });
    check(bench, facts, "an aliased output at another address first gets a copy of its input", [&](Session const& session, Probe& probe) {
        for (Combination const& combination : facts.combinations())
        {
            probe.at(combination.text());
            Given const given = facts.given();
            Engine const running = engine(session, probe, combination, given, false);
            for (bool const apart : {false, true, false})
            {
                runOnce(session, probe, *running.runtime, plugin, combination, given, running.tactics[0], running.workspace, apart);
            }
        }
    });
    if (facts.shapeInputs == 0)
    {
        return;
    }
    check(bench, facts, "output shapes that no shape input values produce are rejected", [&](Session const& session, Probe& probe) {
        Combination const combination = facts.combinations()[0];
        Given const given = facts.given();
        Engine const running = engine(session, probe, combination, given, false);
        using Change = std::function<void(nvinfer1::Dims&)>;
        auto const last = [](int64_t extent) -> Change { return [extent](nvinfer1::Dims& dims) { dims.d[dims.nbDims - 1] = extent; }; };
        std::vector<std::pair<std::string, Change>> const changes{
            {"an extent that is not known", last(-1)},
            {"an extent beyond all values", last(65537)},
            {"the greatest extent", last(INT32_MAX)},
            {"another extent where none depends on values", [](nvinfer1::Dims& dims) { ++dims.d[0]; }},
            {"a rank more", [](nvinfer1::Dims& dims) { dims.d[dims.nbDims++] = 1; }},
            {"a rank less", [](nvinfer1::Dims& dims) { --dims.nbDims; }},
        };
        for (auto const& [what, change] : changes)
        {
            probe.at(what);
            Memory const memory(facts, combination, given, running.workspace);
            memory.announce(session.bench.driver);
            Tensors node = session.subject.tensors(combination, given);
            change(node.out[1].dims);
            session.forget();
            bool const isRefused = announce(session.subject, *running.runtime, node) != 0 || memory.enqueue(*running.runtime, node) != 0;
            probe.that(isRefused, "0", "a failure");
            session.subject.expectError(probe);
            expectQueued(session, probe, {});
            runOnce(session, probe, *running.runtime, plugin, combination, given, running.tactics[0], running.workspace);
        }
    });
}

void checkHostile(Bench const& bench, General const& plugin)
{
    Facts const& facts = plugin.facts;
    check(bench, facts, "a clone from before the configuration, or after the end of its original, runs", [&](Session const& session, Probe& probe) {
        Combination const combination = facts.combinations().back();
        Given const given = facts.given();
        Subject const& subject = session.subject;
        Owned original = subject.create(probe);
        probe.equal("getOutputShapes", subject.outputShapes(probe, *original, given), 0);
        Owned early = cloneOf(probe, *original);
        Described const all = subject.tensors(combination, given).all();
        probe.equal("configurePlugin", subject.configure(probe, *original, all), 0);
        original.reset();
        probe.equal("configurePlugin", subject.configure(probe, *early, all), 0);
        uint64_t const workspace = subject.workspaceSize(probe, *early, all);
        Owned late = cloneOf(probe, *early);
        Context context;
        Owned attached = attachedOf(probe, *late, &context);
        early.reset();
        late.reset();
        runOnce(session, probe, runtimeOf(probe, *attached), plugin, combination, given, 0, workspace);
    });
    check(bench, facts, "enqueue without a change of shapes queues nothing", [&](Session const& session, Probe& probe) {
        Combination const combination = facts.combinations()[0];
        Engine const running = engine(session, probe, combination, facts.given(), false);
        Memory const memory(facts, combination, facts.given(), running.workspace);
        memory.announce(session.bench.driver);
        Tensors const node = session.subject.tensors(combination, facts.given());
        session.forget();
        probe.that(memory.enqueue(*running.runtime, node) != 0, "0", "a failure");
        session.subject.expectError(probe);
        expectQueued(session, probe, {});
        probe.equal("onShapeChange", announce(session.subject, *running.runtime, node), 0);
        Context context;
        for (bool const isAttached : {false, true})
        {
            probe.at(isAttached ? "an attached copy" : "a clone");
            Owned const copy = isAttached ? attachedOf(probe, *running.plugin, &context) : cloneOf(probe, *running.plugin);
            session.forget();
            probe.that(memory.enqueue(runtimeOf(probe, *copy), node) != 0, "0", "a failure");
            expectQueued(session, probe, {});
        }
    });
    check(bench, facts, "a tactic set after the shapes takes effect", [&](Session const& session, Probe& probe) {
        for (Combination const& combination : facts.combinations())
        {
            Given const given = facts.given();
            Engine const running = engine(session, probe, combination, given, false);
            Memory const memory(facts, combination, given, running.workspace);
            memory.announce(session.bench.driver);
            Tensors const node = session.subject.tensors(combination, given);
            probe.equal("onShapeChange", announce(session.subject, *running.runtime, node), 0);
            for (int32_t round = 0; round < 2; ++round)
            {
                for (int32_t tactic : running.tactics)
                {
                    probe.at(combination.text() + ", tactic " + show(tactic));
                    probe.equal("setTactic", running.runtime->setTactic(tactic), 0);
                    session.forget();
                    probe.equal("enqueue", memory.enqueue(*running.runtime, node), 0);
                    expectQueued(session, probe, plugin.steps(combination, given, tactic, memory));
                }
            }
        }
    });
    check(bench, facts, "contexts are destroyed in any order", [&](Session const& session, Probe& probe) {
        Combination const combination = facts.combinations()[0];
        Given const given = facts.given();
        for (bool const isFirstGone : {false, true})
        {
            Engine running = engine(session, probe, combination, given, false);
            Context context;
            Owned second = attachedOf(probe, *running.plugin, &context);
            if (isFirstGone)
            {
                running.plugin.reset();
            }
            running.loaded.reset();
            runOnce(session, probe, runtimeOf(probe, *second), plugin, combination, given, running.tactics[0], running.workspace);
            second.reset();
            if (!isFirstGone)
            {
                runOnce(session, probe, *running.runtime, plugin, combination, given, running.tactics[0], running.workspace);
            }
        }
    });
    check(bench, facts, "16 threads time clones of one node", [&](Session const& session, Probe& probe) {
        Combination const combination = facts.combinations()[0];
        Given const given = facts.given();
        Built const built = build(session, probe, combination, given, false);
        Memory const memory(facts, combination, given, built.workspace);
        memory.announce(session.bench.driver);
        Tensors const node = session.subject.tensors(combination, given);
        session.forget();
        std::vector<Probe> probes(kTHREADS, Probe::forThread());
        std::atomic<int32_t> waiting{kTHREADS};
        std::vector<std::thread> threads;
        for (Probe& own : probes)
        {
            threads.emplace_back([&] {
                --waiting;
                while (waiting > 0)
                {
                    std::this_thread::yield();
                }
                try
                {
                    for (int32_t tactic : built.tactics)
                    {
                        Owned const clone = cloneOf(own, *built.plugin);
                        Context context;
                        Owned const attached = attachedOf(own, *clone, &context);
                        auto& runtime = runtimeOf(own, *attached);
                        own.equal("setTactic", runtime.setTactic(tactic), 0);
                        own.equal("onShapeChange", announce(session.subject, runtime, node), 0);
                        own.equal("enqueue", memory.enqueue(runtime, node), 0);
                    }
                }
                catch (Stop const&)
                {
                }
            });
        }
        for (std::thread& thread : threads)
        {
            thread.join();
        }
        size_t expected = 0;
        for (int32_t tactic : built.tactics)
        {
            expected += kTHREADS * plugin.steps(combination, given, tactic, memory).size();
        }
        for (Probe const& own : probes)
        {
            probe.that(!own.failed(), "in a thread: " + own.message(), "what one thread gets");
        }
        size_t found = 0;
        for (char const* call : {"cuLaunchKernel", "cuMemsetD8Async", "cuMemcpyDtoDAsync_v2"})
        {
            found += session.events(call).size();
        }
        probe.equal("steps of all threads", static_cast<uint64_t>(found), static_cast<uint64_t>(expected));
        probe.equal("addresses outside of device memory", static_cast<uint64_t>(session.bench.driver.strays), uint64_t{0});
    });
}

}
