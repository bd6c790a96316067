// Copyright of the Cubinder authors; Apache-2.0.
//
// Sequences of steps: the queued work's order, attributes and workspace offsets.
#include "checks.hpp"
#include "../conformance/heap.hpp"

#include <cstring>
#include <regex>

namespace oracle
{

namespace
{

constexpr int32_t kBIAS = 3;
constexpr int32_t kRUNS = 1000;
constexpr int32_t kMAJOR = 75; // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
constexpr int32_t kMINOR = 76;
constexpr int32_t kSMS = 16; // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT

Facts stepsFacts(Shape const& shape)
{
    Facts facts;
    facts.label = "steps";
    facts.op = {"steps_plugin", "1", "test"};
    facts.attribute = "bias";
    facts.attributeValue = {kBIAS};
    facts.shape = shape;
    facts.output = [](Shape const& x, std::vector<int32_t> const&) { return x; };
    return facts;
}

void* workspace()
{
    return addresses()[2];
}

uint64_t at(void* start, uint64_t offset)
{
    return reinterpret_cast<uint64_t>(start) + offset;
}

template <class T>
T argument(FakeEvent const& event, size_t offset)
{
    T value{};
    std::memcpy(&value, event.arguments + offset, sizeof value);
    return value;
}

int32_t announce(Session const& session, Running const& running, Shape const& shape)
{
    return running.shapes(session.subject.tensors(0, shape, {kBIAS}));
}

std::vector<FakeEvent> queued(Session const& session, Probe& probe, Running const& running, Shape const& shape)
{
    int32_t const code = announce(session, running, shape);
    probe.need(code == 0, "onShapeChange " + show(code) + ", " + show(firstError(session.bench.logger.take())), "0");
    session.forget();
    Tensors const node = session.subject.tensors(0, shape, {kBIAS});
    probe.equal("enqueue", running.enqueue(node, addresses(), workspace()), 0);
    return session.events();
}

std::string calls(std::vector<FakeEvent> const& events)
{
    std::string names;
    for (FakeEvent const& event : events)
    {
        names += names.empty() ? "" : ", ";
        names += event.call;
        if (event.symbol != nullptr)
        {
            for (char const* name : {" copied", " biased", " finished"})
            {
                names += std::strstr(event.symbol, name + 1) != nullptr ? name : "";
            }
        }
    }
    return names;
}

struct Device
{
    explicit Device(FakeDriver& driver)
        : driver(driver)
    {
        std::memcpy(attributes, driver.attributes, sizeof attributes);
        activeBlocks = driver.activeBlocks;
        number = driver.device;
    }
    ~Device()
    {
        driver.device = number;
        std::memcpy(driver.attributes, attributes, sizeof attributes);
        driver.activeBlocks = activeBlocks;
    }
    FakeDriver& driver;
    int32_t attributes[128];
    int32_t activeBlocks;
    int32_t number;
};

void checkOrder(Bench const& bench)
{
    check(bench, stepsFacts({4, 100}), "steps are queued in order, those without a condition alone where the tensor is small",
        [](Session const& session, Probe& probe) {
            Running const running = session.running(probe);
            std::vector<FakeEvent> const large = queued(session, probe, running, {4, 100});
            std::string const all = "cuMemsetD8Async, cuLaunchKernel copied, cuLaunchKernelEx biased";
            probe.need(calls(large) == all, calls(large), all);
            // 1600 bytes of the copy, then the ready flag.
            uint64_t const ready = at(workspace(), 1792);
            probe.equal("what is filled", large[0].to, ready);
            probe.equal("with", large[0].value, 7);
            probe.equal("bytes", large[0].bytes, uint64_t{4});
            probe.equal("stream", static_cast<void const*>(large[0].stream), static_cast<void const*>(stream()));
            probe.equal("x", argument<uint64_t>(large[1], 0), at(addresses()[0], 0));
            probe.equal("copy", argument<uint64_t>(large[1], 8), at(workspace(), 0));
            probe.equal("ready", argument<uint64_t>(large[1], 16), ready);
            probe.equal("count", argument<int64_t>(large[1], 24), int64_t{400});
            probe.equal("blocks", uint64_t{large[1].grid[0]}, uint64_t{7});
            probe.equal("ready", argument<uint64_t>(large[2], 16), ready);
            probe.equal("y", argument<uint64_t>(large[2], 24), at(addresses()[1], 0));
            probe.equal("bias", argument<int32_t>(large[2], 40), kBIAS);
            probe.equal("asked for", large[2].asked + uint64_t{0}, uint64_t{kCOOPERATIVE});

            std::vector<FakeEvent> const small = queued(session, probe, running, {4, 16});
            probe.need(calls(small) == "cuLaunchKernelEx biased", calls(small), "one launch");
            probe.equal("ready", argument<uint64_t>(small[0], 16), at(workspace(), 256));
        });
    check(bench, stepsFacts({4, 100}), "an unchanged sequence costs its calls and no memory", [](Session const& session, Probe& probe) {
        Running const running = session.running(probe);
        queued(session, probe, running, {4, 100});
        Tensors const node = session.subject.tensors(0, {4, 100}, {kBIAS});
        session.forget();
        int32_t codes = 0;
        uint64_t const before = heapAllocations();
        for (int32_t round = 0; round < kRUNS; ++round)
        {
            codes |= running.shapes(node) | running.enqueue(node, addresses(), workspace());
        }
        uint64_t const after = heapAllocations();
        probe.equal("codes", codes, 0);
        probe.equal("allocations", after - before, uint64_t{0});
        probe.equal("calls", session.events().size(), size_t{3 * kRUNS});
    });
}

// Verbose messages, with `DIGEST` for digest prefixes.
std::string told(Session const& session)
{
    constexpr int32_t kVERBOSE = 4;
    std::string text;
    for (Line const& line : session.bench.logger.take())
    {
        text += line.severity == kVERBOSE ? line.text + "\n" : "";
    }
    return std::regex_replace(text, std::regex("\\([0-9a-f]{8,}\\)"), "(DIGEST)");
}

void checkTold(Bench const& bench)
{
    check(bench, stepsFacts({4, 100}), "the log shows what runs, once for each change", [](Session const& session, Probe& probe) {
        Running const running = session.running(probe);
        session.bench.logger.take();
        std::string const runs = "cubinder: test::steps_plugin `node`: variant 2 (T=f32 CLUSTER=1) runs: ";
        std::string const code = " from the code for sm_89 (DIGEST) with ";
        std::string const tensors = "; x f32 linear, y f32 linear; bias = 3, ";
        probe.equal("onShapeChange", announce(session, running, {4, 100}), 0);
        probe.equal("a large tensor", told(session),
            runs + "fill the 4 bytes of `ready` with 7; launch `copied<float, 1>`" + code + "grid [7, 1, 1], block [64, 1, 1]; launch `biased<float>`"
                + code + "grid [7, 1, 1], block [64, 1, 1], cooperative" + tensors + "x is 4x100, y is 4x100\n");
        probe.equal("onShapeChange", announce(session, running, {4, 100}), 0);
        probe.equal("the same shapes again", told(session), std::string(""));
        probe.equal("onShapeChange", announce(session, running, {4, 16}), 0);
        probe.equal("a small tensor", told(session),
            runs + "launch `biased<float>`" + code + "grid [1, 1, 1], block [64, 1, 1], cooperative" + tensors + "x is 4x16, y is 4x16\n");
    });
}

void beOf(FakeDriver& driver, int32_t major)
{
    driver.attributes[kMAJOR] = major;
    driver.attributes[kMINOR] = 0;
    driver.attributes[kCLUSTER_LAUNCH] = 1;
}

void checkDevice(Bench const& bench)
{
    check(bench, stepsFacts({4, 100}), "kernels that guards or conditions exclude on the device are not loaded",
        [](Session const& session, Probe& probe) {
            session.forget();
            Running const running = session.running(probe);
            probe.equal("onShapeChange", announce(session, running, {4, 100}), 0);
            std::vector<FakeEvent> const loaded = session.events("cuLibraryGetKernel");
            probe.that(!loaded.empty(), "no kernel is loaded", "those of this device");
            for (FakeEvent const& event : loaded)
            {
                for (char const* newer : {"Li2E", "finished"})
                {
                    probe.that(std::strstr(event.symbol, newer) == nullptr, "the kernel " + show(event.symbol), "not loaded");
                }
            }
        });
    check(bench, stepsFacts({4, 100}), "a device with clusters does not launch code without clusters in one",
        [&](Session const& session, Probe& probe) {
            Device const before(bench.driver);
            beOf(bench.driver, 10);
            Running const running = session.running(probe);
            probe.that(announce(session, running, {4, 100}) != 0, "0", "a failure");
            session.subject.expectError(probe, "this GPU runs the code for compute_80, which has no clusters");
            session.forget();
            std::vector<FakeEvent> const small = queued(session, probe, running, {4, 16});
            std::string const both = "cuLaunchKernelEx biased, cuLaunchKernel finished";
            probe.equal("calls without a cluster", calls(small), both);
        });
    check(bench, stepsFacts({4, 100}), "a newer device runs the variant with clusters", [&](Session const& session, Probe& probe) {
        Device const before(bench.driver);
        beOf(bench.driver, 9);
        Running const running = session.running(probe);
        std::vector<FakeEvent> const events = queued(session, probe, running, {4, 100});
        std::string const all = "cuMemsetD8Async, cuLaunchKernelEx copied, cuLaunchKernelEx biased, cuLaunchKernel finished";
        probe.need(calls(events) == all, calls(events), all);
        probe.that(std::strstr(events[1].symbol, "Li2E") != nullptr, show(events[1].symbol), "the kernel with clusters");
        probe.equal("asked for", events[1].asked + uint64_t{0}, uint64_t{kCLUSTERS | kPROGRAMMATIC});
        probe.equal("blocks of a cluster", uint64_t{events[1].cluster[0]}, uint64_t{2});
        probe.equal("blocks", uint64_t{events[1].grid[0]}, uint64_t{8});
    });
    check(bench, stepsFacts({4, 100}), "the grid follows the device", [&](Session const& session, Probe& probe) {
        Device const before(bench.driver);
        bench.driver.attributes[kSMS] = 2;
        Running const running = session.running(probe);
        std::vector<FakeEvent> const events = queued(session, probe, running, {4, 100});
        probe.need(events.size() == 3, calls(events), "three calls");
        probe.equal("blocks", uint64_t{events[2].grid[0]}, uint64_t{4});
    });
    check(bench, stepsFacts({4, 100}), "a context of another device at a reused address is detected",
        [&](Session const& session, Probe& probe) {
            Device const before(bench.driver);
            Running const running = session.running(probe);
            std::vector<FakeEvent> const first = queued(session, probe, running, {4, 100});
            probe.need(first.size() == 3, calls(first), "three calls");
            probe.equal("blocks", uint64_t{first[2].grid[0]}, uint64_t{7});
            bench.driver.device = 1;
            bench.driver.context = 9; // at the address of 1
            bench.driver.attributes[kSMS] = 2;
            session.forget();
            probe.equal("onShapeChange", announce(session, running, {4, 99}), 0);
            probe.that(!session.events("cuKernelGetFunction").empty(), "no kernel is loaded", "the kernels of that device");
            std::vector<FakeEvent> const second = queued(session, probe, running, {4, 99});
            probe.need(second.size() == 3, calls(second), "three calls");
            probe.equal("blocks", uint64_t{second[2].grid[0]}, uint64_t{4});
        });
    check(bench, stepsFacts({4, 100}), "a cooperative launch that does not fit the device is rejected with both numbers",
        [&](Session const& session, Probe& probe) {
            Device const before(bench.driver);
            bench.driver.attributes[kSMS] = 2;
            bench.driver.activeBlocks = 1;
            Running const running = session.running(probe);
            probe.that(announce(session, running, {4, 100}) != 0, "0", "a failure");
            session.subject.expectError(probe, "is 4, the maximum of blocks that run at once on this GPU is 2");
        });
}

void checkWorkspace(Bench const& bench)
{
    check(bench, stepsFacts({4, 100}), "shapes that need more workspace than is reserved are rejected with both numbers",
        [](Session const& session, Probe& probe) {
            Running const running = session.running(probe);
            probe.that(announce(session, running, {4, 1000}) != 0, "0", "a failure");
            session.subject.expectError(probe, "need 16384 bytes of workspace, but 2048 bytes are reserved");
            queued(session, probe, running, {4, 100});
        });
    check(bench, stepsFacts({4, 100}), "an enqueue without the workspace is rejected", [](Session const& session, Probe& probe) {
        Running const running = session.running(probe);
        probe.equal("onShapeChange", announce(session, running, {4, 100}), 0);
        session.forget();
        Tensors const node = session.subject.tensors(0, {4, 100}, {kBIAS});
        probe.that(running.enqueue(node, addresses(), nullptr) != 0, "0", "a failure");
        session.subject.expectError(probe, "without a workspace");
        probe.equal("calls", session.events().size(), size_t{0});
    });
}

}

FakeSignature copiedSignature()
{
    return {"copied", 4, {8, 8, 8, 8}};
}

FakeSignature finishedSignature()
{
    return {"finished", 1, {8}};
}

FakeSignature biasedSignature()
{
    return {"biased", 6, {8, 8, 8, 8, 8, 4}};
}

void checkSteps(Bench const& bench)
{
    checkOrder(bench);
    checkTold(bench);
    checkDevice(bench);
    checkWorkspace(bench);
}

}
