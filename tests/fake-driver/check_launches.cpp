// Copyright of the Cubinder authors; Apache-2.0.
#include "checks.hpp"
#include "../conformance/heap.hpp"

#include <set>

namespace oracle
{

namespace
{

constexpr int32_t kROUNDS = 1000;

std::set<std::string> loadedKernels(Session const& session)
{
    std::set<std::string> names;
    for (FakeEvent const& event : session.events("cuKernelGetFunction"))
    {
        names.insert(event.symbol);
    }
    return names;
}

void announce(Session const& session, Probe& probe, Running const& running, Tensors const& node)
{
    int32_t const code = running.shapes(node);
    probe.need(code == 0, "onShapeChange " + show(code) + ", " + show(firstError(session.bench.logger.take())), "0");
}

void run(Session const& session, Probe& probe, Running const& running, Launching const& plugin, Shape const& shape,
    int32_t dataType, int32_t tactic)
{
    Tensors const node = session.subject.tensors(dataType, shape, plugin.facts.attributeValue);
    announce(session, probe, running, node);
    session.forget();
    probe.equal("enqueue", running.enqueue(node), 0);
    expectLaunch(session, probe, plugin.launch(shape, dataType, tactic));
    // Nothing else: the stream may be capturing.
    probe.equal("calls of enqueue", session.events().size(), size_t{1});
}

void checkLoading(Bench const& bench, Launching const& plugin)
{
    size_t const kernels = plugin.tactics.size();
    check(bench, plugin.facts, "building does not call the driver", [&](Session const& session, Probe& probe) {
        session.stored(probe);
        session.timed(probe);
        probe.equal("calls", session.events().size(), size_t{0});
    });
    check(bench, plugin.facts, "code is loaded when the engine is, each object once", [&](Session const& session, Probe& probe) {
        Session::Stored const stored = session.stored(probe);
        Owned const first = session.subject.loaded(probe, *stored.loader, stored.fields);
        probe.equal("code objects", session.events("cuLibraryLoadData").size(), size_t{1});
        probe.equal("kernels", loadedKernels(session).size(), kernels);
        probe.that(session.launches().empty(), "a launch", "none before enqueue");
        std::vector<Running> nodes;
        for (int32_t i = 0; i < 3; ++i)
        {
            nodes.push_back(session.running(probe, stored));
        }
        for (Running const& node : nodes)
        {
            run(session, probe, node, plugin, plugin.shapes[0], 0, plugin.tactics[0]);
        }
        probe.equal("code objects in the driver", bench.driver.liveLibraries, 1);
    });
    check(bench, plugin.facts, "nothing is loaded after a change of shapes", [&](Session const& session, Probe& probe) {
        Running const running = session.running(probe);
        session.forget();
        for (Shape const& shape : plugin.shapes)
        {
            announce(session, probe, running, session.subject.tensors(0, shape, plugin.facts.attributeValue));
        }
        probe.equal("code objects", session.events("cuLibraryLoadData").size(), size_t{0});
    });
}

void checkLaunches(Bench const& bench, Launching const& plugin)
{
    check(bench, plugin.facts, "launches are those of types, tactic and shapes", [&](Session const& session, Probe& probe) {
        for (int32_t dataType : {0, 1})
        {
            Running const running = session.running(probe, dataType);
            for (int32_t tactic : plugin.tactics)
            {
                probe.equal("setTactic", running.tactic(tactic), 0);
                for (Shape const& shape : plugin.shapes)
                {
                    probe.at("type " + show(dataType) + ", tactic " + show(tactic) + ", shape " + show(shape));
                    run(session, probe, running, plugin, shape, dataType, tactic);
                }
            }
        }
    });
    for (Shape const& shape : plugin.others)
    {
        Facts facts = plugin.facts;
        facts.shape = shape;
        check(bench, facts, "launches of shape " + show(shape), [&](Session const& session, Probe& probe) {
            for (int32_t dataType : {0, 1})
            {
                Running const running = session.running(probe, dataType);
                for (int32_t tactic : plugin.tactics)
                {
                    probe.at("type " + show(dataType) + ", tactic " + show(tactic));
                    probe.equal("setTactic", running.tactic(tactic), 0);
                    run(session, probe, running, plugin, shape, dataType, tactic);
                }
            }
        });
    }
    check(bench, plugin.facts, "the builder's copy launches the same", [&](Session const& session, Probe& probe) {
        Running const running = session.timed(probe);
        for (int32_t tactic : plugin.tactics)
        {
            probe.at("tactic " + show(tactic));
            probe.equal("setTactic", running.tactic(tactic), 0);
            run(session, probe, running, plugin, plugin.shapes[0], 0, tactic);
        }
    });
    check(bench, plugin.facts, "a change of type alone changes the kernel", [&](Session const& session, Probe& probe) {
        Running const running = session.timed(probe);
        for (int32_t dataType : {0, 1, 0})
        {
            probe.at("type " + show(dataType));
            run(session, probe, running, plugin, plugin.shapes[0], dataType, plugin.tactics[0]);
        }
    });
    check(bench, plugin.facts, "unchanged shapes cost one launch and no memory", [&](Session const& session, Probe& probe) {
        Running const running = session.running(probe);
        Tensors const node = session.subject.tensors();
        int32_t const tactic = plugin.tactics.back();
        probe.equal("setTactic", running.tactic(tactic), 0);
        announce(session, probe, running, node);
        probe.equal("enqueue", running.enqueue(node), 0);
        session.forget();
        int32_t codes = 0;
        uint64_t const before = heapAllocations();
        for (int32_t round = 0; round < kROUNDS; ++round)
        {
            codes |= running.tactic(tactic) | running.shapes(node) | running.enqueue(node);
        }
        uint64_t const after = heapAllocations();
        probe.equal("codes", codes, 0);
        probe.equal("allocations", after - before, uint64_t{0});
        probe.equal("launches", session.launches().size(), size_t{kROUNDS});
        probe.equal("calls", session.events().size(), size_t{kROUNDS});
    });
    check(bench, plugin.facts, "an empty tensor launches nothing", [&](Session const& session, Probe& probe) {
        Running const running = session.running(probe);
        Shape empty = plugin.facts.shape;
        empty[0] = 0;
        Tensors const node = session.subject.tensors(0, empty, plugin.facts.attributeValue);
        announce(session, probe, running, node);
        session.forget();
        probe.equal("enqueue", running.enqueue(node), 0);
        probe.equal("calls", session.events().size(), size_t{0});
        run(session, probe, running, plugin, plugin.shapes[0], 0, plugin.tactics[0]);
    });
}

void checkOtherContext(Bench const& bench, Launching const& plugin)
{
    check(bench, plugin.facts, "shapes that change in another context load the kernel there", [&](Session const& session, Probe& probe) {
        Running const running = session.running(probe);
        run(session, probe, running, plugin, plugin.shapes[0], 0, plugin.tactics[0]);
        bench.driver.context = 2;
        session.forget();
        announce(session, probe, running, session.subject.tensors(0, plugin.shapes[1], plugin.facts.attributeValue));
        probe.equal("kernels loaded", loadedKernels(session).size(), size_t{1});
        probe.equal("code objects loaded", session.events("cuLibraryLoadData").size(), size_t{0});
    });
}

void checkTactics(Bench const& bench, Launching const& plugin)
{
    Shape const& shape = plugin.shapes[0];
    check(bench, plugin.facts, "a tactic set before the same shapes is launched", [&](Session const& session, Probe& probe) {
        Running const running = session.running(probe);
        for (int32_t tactic : {1, 2, 1, 2})
        {
            probe.at("tactic " + show(tactic));
            probe.equal("setTactic", running.tactic(tactic), 0);
            run(session, probe, running, plugin, shape, 0, tactic);
        }
    });
    check(bench, plugin.facts, "a tactic set after the shapes is launched", [&](Session const& session, Probe& probe) {
        Running const running = session.running(probe);
        Tensors const node = session.subject.tensors();
        announce(session, probe, running, node);
        for (int32_t tactic : {2, 1, 2})
        {
            probe.at("tactic " + show(tactic));
            probe.equal("setTactic", running.tactic(tactic), 0);
            session.forget();
            probe.equal("enqueue", running.enqueue(node), 0);
            expectLaunch(session, probe, plugin.launch(shape, 0, tactic));
        }
    });
    check(bench, plugin.facts, "a rejected tactic keeps the previous one", [&](Session const& session, Probe& probe) {
        Running const running = session.running(probe);
        probe.equal("setTactic", running.tactic(2), 0);
        probe.that(running.tactic(77) != 0, "0 for tactic 77", "a failure");
        session.subject.expectError(probe, "77");
        run(session, probe, running, plugin, shape, 0, 2);
    });
    check(bench, plugin.facts, "two contexts do not share a tactic", [&](Session const& session, Probe& probe) {
        Session::Stored const stored = session.stored(probe);
        Running const one = session.running(probe, stored);
        Running const two = session.running(probe, stored);
        probe.equal("setTactic", one.tactic(1) | two.tactic(2), 0);
        for (int32_t round = 0; round < 2; ++round)
        {
            run(session, probe, one, plugin, shape, 0, 1);
            run(session, probe, two, plugin, shape, 0, 2);
        }
    });
}

void checkSharedMemory(Bench const& bench, Launching const& plugin)
{
    constexpr int32_t kDYNAMIC_SHARED = 8; // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    Shape const large{3, 1, 4};
    Shape const small{1, 1, 4};
    check(bench, plugin.facts, "shared memory is requested before the launch, and only if needed",
        [&](Session const& session, Probe& probe) {
            Running const running = session.running(probe);
            auto asked = [&](Shape const& shape) {
                session.forget();
                announce(session, probe, running, session.subject.tensors(0, shape, plugin.facts.attributeValue));
                std::vector<int64_t> bytes;
                for (FakeEvent const& event : session.events("cuKernelSetAttribute"))
                {
                    probe.equal("attribute", event.attribute, kDYNAMIC_SHARED);
                    bytes.push_back(event.value);
                }
                return bytes;
            };
            probe.equal("for 25 KiB", asked(small), std::vector<int64_t>{});
            probe.equal("for 75 KiB", asked(large), std::vector<int64_t>{75 * 1024});
            run(session, probe, running, plugin, large, 0, 1);
            probe.equal("for 25 KiB again", asked(small), std::vector<int64_t>{});
            probe.equal("for 75 KiB again", asked(large), std::vector<int64_t>{});
            run(session, probe, running, plugin, large, 0, 1);
        });
    check(bench, plugin.facts, "a node that needs less does not reduce the limit of one that needs more",
        [&](Session const& session, Probe& probe) {
            Session::Stored const stored = session.stored(probe);
            Running const first = session.running(probe, stored);
            Running const second = session.running(probe, stored);
            Tensors const node = session.subject.tensors(0, large, plugin.facts.attributeValue);
            announce(session, probe, first, node);
            run(session, probe, second, plugin, small, 0, 1);
            run(session, probe, second, plugin, {2, 1, 4}, 0, 1);
            session.forget();
            probe.equal("enqueue", first.enqueue(node), 0);
            expectLaunch(session, probe, plugin.launch(large, 0, 1));
        });
}

}

void checkGood(Bench const& bench, Launching const& plugin)
{
    checkLoading(bench, plugin);
    checkLaunches(bench, plugin);
    checkOtherContext(bench, plugin);
    if (plugin.tactics.size() > 1)
    {
        checkTactics(bench, plugin);
    }
    if (plugin.launch(plugin.shapes[0], 0, plugin.tactics[0]).sharedBytes > 0)
    {
        checkSharedMemory(bench, plugin);
    }
}

void checkScalars(Bench const& bench, Launching plugin)
{
    plugin.facts.shape = {};
    check(bench, plugin.facts, "a scalar may be announced with one dimension of 1", [&](Session const& session, Probe& probe) {
        Running const running = session.running(probe);
        Tensors const scalar = session.subject.tensors();
        Tensors announced = scalar;
        announced.in[0].dims = announced.out[0].dims = dimsOf({1});
        for (Tensors const* node : std::vector<Tensors const*>{&announced, &scalar, &announced})
        {
            probe.at("rank " + show(node->in[0].dims.nbDims));
            announce(session, probe, running, *node);
            session.forget();
            probe.equal("enqueue", running.enqueue(*node), 0);
            expectLaunch(session, probe, plugin.launch({}, 0, plugin.tactics[0]));
        }
    });
}

}
