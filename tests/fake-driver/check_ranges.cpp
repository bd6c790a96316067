// Copyright of the Cubinder authors; Apache-2.0.
//
// NVTX ranges: one around each enqueue, whatever the profiler does.
#include "checks.hpp"
#include "../conformance/heap.hpp"
#include "tool.h"

#include <cstdlib>
#include <dlfcn.h>

namespace oracle
{

namespace
{

constexpr int32_t kWARNING = 2;
constexpr int32_t kPROFILED = 1000;
constexpr int32_t kANY_FAILURE = 999;

FakeTool* tool()
{
    char const* path = std::getenv("NVTX_INJECTION64_PATH");
    void* library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    auto const found = library == nullptr ? nullptr : reinterpret_cast<FakeTool* (*) ()>(dlsym(library, "fakeTool"));
    return found == nullptr ? nullptr : found();
}

FakeTool& attachedTool(Probe& probe)
{
    FakeTool* const found = tool();
    probe.need(found != nullptr && found->attached != 0, "no profiler", "one that is attached");
    *found = {};
    return *found;
}

void expectRange(Probe& probe, FakeTool& tool, std::string const& name)
{
    probe.equal("ranges begun", tool.pushes, 1);
    probe.equal("ranges ended", tool.pops, 1);
    probe.equal("range", std::string(tool.names[0]), name);
    tool = {};
}

Tensors tensorsOf(Session const& session, Launching const& plugin, Shape const& shape)
{
    return session.subject.tensors(0, shape, plugin.facts.attributeValue);
}

void checkNames(Bench const& bench, Launching const& plugin)
{
    std::string const node = "test::" + plugin.facts.op.name + " `node` variant ";
    check(bench, plugin.facts, "a profiler sees a range for each enqueue, with the variant that runs",
        [&](Session const& session, Probe& probe) {
            Running const running = session.running(probe);
            Tensors const tensors = tensorsOf(session, plugin, {1, 2, 8});
            probe.equal("onShapeChange", running.shapes(tensors), 0);
            FakeTool& tool = attachedTool(probe);
            probe.equal("enqueue", running.enqueue(tensors), 0);
            expectRange(probe, tool, node + "1 (T=f32 VEC=4 ID=1)");
            std::vector<void*> moved = addresses();
            moved[0] = static_cast<char*>(moved[0]) + 4;
            probe.equal("enqueue", running.enqueue(tensors, moved), 0);
            expectRange(probe, tool, node + "3 (T=f32 VEC=1 ID=3)");
            Tensors const odd = tensorsOf(session, plugin, {1, 3, 5});
            probe.equal("onShapeChange", running.shapes(odd), 0);
            probe.equal("ranges of onShapeChange", tool.pushes, 0);
            probe.equal("enqueue", running.enqueue(odd), 0);
            expectRange(probe, tool, node + "3 (T=f32 VEC=1 ID=3)");
        });
    check(bench, plugin.facts, "a range ends if the driver refuses the launch", [&](Session const& session, Probe& probe) {
        Running const running = session.running(probe);
        Tensors const tensors = tensorsOf(session, plugin, {1, 3, 5});
        probe.equal("onShapeChange", running.shapes(tensors), 0);
        FakeTool& tool = attachedTool(probe);
        session.bench.driver.failWith = kANY_FAILURE;
        session.bench.driver.failIn = 1;
        probe.that(running.enqueue(tensors) != 0, "0", "a failure");
        expectRange(probe, tool, node + "3 (T=f32 VEC=1 ID=3)");
    });
    check(bench, plugin.facts, "ranges cost no memory", [&](Session const& session, Probe& probe) {
        Running const running = session.running(probe);
        Tensors const tensors = tensorsOf(session, plugin, {1, 2, 8});
        probe.equal("onShapeChange", running.shapes(tensors), 0);
        FakeTool& tool = attachedTool(probe);
        int32_t codes = 0;
        uint64_t const before = heapAllocations();
        for (int32_t round = 0; round < kPROFILED; ++round)
        {
            codes |= running.shapes(tensors) | running.enqueue(tensors);
        }
        uint64_t const after = heapAllocations();
        probe.equal("codes", codes, 0);
        probe.equal("allocations", after - before, uint64_t{0});
        probe.equal("ranges", tool.pushes + tool.pops, 2 * kPROFILED);
    });
}

}

void checkRanges(Bench const& bench, Launching const& plugin)
{
    char const* warning = std::getenv("EXPECTED_WARNING");
    if (warning == nullptr)
    {
        checkNames(bench, plugin);
        return;
    }
    check(bench, plugin.facts, "without a profiler every node runs, and the log reports the reason once",
        [&](Session const& session, Probe& probe) {
            session.bench.logger.take();
            Running const running = session.running(probe);
            for (Shape const& shape : {Shape{1, 2, 8}, Shape{1, 3, 5}})
            {
                Tensors const tensors = tensorsOf(session, plugin, shape);
                probe.equal("onShapeChange", running.shapes(tensors), 0);
                session.forget();
                probe.equal("enqueue", running.enqueue(tensors), 0);
                probe.equal("launches", session.launches().size(), size_t{1});
            }
            std::vector<std::string> warnings;
            for (Line const& line : session.bench.logger.take())
            {
                if (line.severity <= kWARNING)
                {
                    warnings.push_back(line.text);
                }
            }
            std::string const expected = warning;
            probe.equal("warnings", warnings.size(), size_t{expected.empty() ? 0U : 1U});
            probe.that(warnings.empty() || warnings[0].find(expected) != std::string::npos, show(warnings.empty() ? std::string() : warnings[0]), show(expected));
            FakeTool const* const there = tool();
            probe.that(there == nullptr || there->pushes == 0, "a range", "none");
        });
}

}
