// Copyright of the Cubinder authors; Apache-2.0.
//
// The cost of unchanged shapes, which TensorRT-RTX announces before every enqueue.
#include "checks.hpp"
#include "../conformance/heap.hpp"

#include <algorithm>
#include <chrono>

namespace oracle
{

namespace
{

constexpr int32_t kINPUTS = 7;
// Fits between two interrupts on a busy machine.
constexpr int32_t kCALLS_TIMED = 200;
constexpr int32_t kTIMES = 2000;
constexpr double kMOST_NANOSECONDS = 100;

Facts eightFacts()
{
    Facts facts;
    facts.label = "eight";
    facts.op = {"eight_plugin", "1", "test"};
    facts.attribute = "bias";
    facts.attributeValue = {1};
    facts.inputs = kINPUTS;
    facts.half = false;
    facts.shape = {2, 3, 4, 5, 6, 7, 8, 9};
    facts.output = [](Shape const& x, std::vector<int32_t> const&) { return x; };
    return facts;
}

}

FakeSignature eightSignature()
{
    return {"add_seven", 10, {8, 8, 8, 8, 8, 8, 8, 8, 8, 4}};
}

void checkUnchanged(Bench const& bench)
{
    check(bench, eightFacts(), "the same shapes of eight tensors cost below 100 ns and no memory",
        [](Session const& session, Probe& probe) {
            Running const running = session.running(probe);
            Tensors const node = session.subject.tensors();
            probe.equal("tensors", node.in.size() + node.out.size(), size_t{8});
            probe.equal("onShapeChange", running.shapes(node), 0);
            probe.equal("enqueue", running.enqueue(node), 0);
            session.forget();
            using Clock = std::chrono::steady_clock;
            int32_t codes = 0;
            auto least = Clock::duration::max();
            uint64_t const before = heapAllocations();
            for (int32_t time = 0; time < kTIMES; ++time)
            {
                auto const start = Clock::now();
                for (int32_t call = 0; call < kCALLS_TIMED; ++call)
                {
                    codes |= running.shapes(node);
                }
                least = std::min(least, Clock::now() - start);
            }
            uint64_t const after = heapAllocations();
            double const each = std::chrono::duration<double, std::nano>(least).count() / kCALLS_TIMED;
            probe.equal("codes", codes, 0);
            probe.equal("allocations", after - before, uint64_t{0});
            probe.equal("calls of the driver", session.events().size(), size_t{0});
            probe.that(each < kMOST_NANOSECONDS, std::to_string(each) + " ns a call", "below 100 ns");
        });
}

}
