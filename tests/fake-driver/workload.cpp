// Copyright of the Cubinder authors; Apache-2.0.
#include "workload.hpp"

#include "../conformance/general_cases.hpp"
#include "checks.hpp"

#include <cstring>
#include <dlfcn.h>

namespace oracle
{

namespace
{

constexpr int32_t kCAPABILITY[3] = {75, 76, kCLUSTER_LAUNCH}; // major, minor, clusters

std::vector<Round> plainRounds(Subject const& subject, std::vector<Shape> const& shapes, std::vector<int32_t> const& tactics)
{
    std::vector<Round> rounds;
    for (Shape const& shape : shapes)
    {
        for (int32_t tactic : tactics)
        {
            auto const context = static_cast<int32_t>(1 + rounds.size() % 2);
            rounds.push_back({subject.tensors(0, shape, subject.facts.attributeValue), addresses(), addresses()[2], tactic, context});
        }
    }
    return rounds;
}

Workload plain(std::string const& name, Facts const& facts, int32_t capability, std::vector<Shape> const& shapes,
    std::vector<int32_t> const& tactics)
{
    return {name, facts, capability, [=](Subject const& subject) { return plainRounds(subject, shapes, tactics); }};
}

Facts sequenceOfSteps()
{
    Facts facts;
    facts.label = "steps";
    facts.op = {"steps_plugin", "1", "test"};
    facts.attribute = "bias";
    facts.attributeValue = {3};
    facts.shape = {4, 100};
    facts.output = [](Shape const& x, std::vector<int32_t> const&) { return x; };
    return facts;
}

// Every second round separates the aliased output, which needs a copy.
std::vector<Round> everythingRounds(Subject const& subject)
{
    Facts const& facts = subject.facts;
    Combination const combination = facts.combinations()[0];
    std::vector<Round> rounds;
    for (bool apart : {true, false})
    {
        Memory const memory(facts, combination, facts.given(), 0, apart);
        Round round{subject.tensors(), {}, reinterpret_cast<void*>(memory.workspace()), apart ? 0 : 2, apart ? 1 : 2};
        for (size_t i = 0; i < round.node.in.size() + round.node.out.size(); ++i)
        {
            round.pointers.push_back(reinterpret_cast<void*>(memory.address(i)));
        }
        rounds.push_back(round);
    }
    return rounds;
}

}

namespace
{

Workload withoutContext(Workload workload)
{
    workload.name += ", a thread without a context";
    workload.isLate = true;
    workload.rounds = [rounds = workload.rounds](Subject const& subject) {
        std::vector<Round> all = rounds(subject);
        for (Round& round : all)
        {
            round.context = 0;
        }
        return all;
    };
    return workload;
}

}

std::vector<Workload> faultWorkloads()
{
    Launching const two = tiles();
    Launching const choice = vectors();
    std::vector<Workload> all{
        plain("tiles_plugin", two.facts, 89, {{2, 8, 16}, {1, 1, 1}}, {1, 2}),
        plain("vectors_plugin, three variants", choice.facts, 89, {{2, 8, 16}, {1, 3, 5}}, {1}),
        plain("steps_plugin", sequenceOfSteps(), 89, {{4, 100}, {4, 16}}, {0}),
        plain("steps_plugin, a device with clusters", sequenceOfSteps(), 90, {{4, 100}, {4, 16}}, {0}),
    };
    all.push_back(all.back());
    all.back().name += ", a context that comes late";
    all.back().isLate = true;
    all.push_back(withoutContext(all[all.size() - 2]));
    for (General const& plugin : generalPlugins())
    {
        if (plugin.facts.label == "everything")
        {
            all.push_back({"everything_plugin", plugin.facts, 89, everythingRounds});
            all.push_back(withoutContext(all.back()));
        }
    }
    return all;
}

std::vector<Workload> threadWorkloads()
{
    std::vector<Workload> chosen;
    for (Workload& workload : faultWorkloads())
    {
        for (char const* name : {"tiles_plugin", "steps_plugin", "everything_plugin"})
        {
            if (workload.name == name)
            {
                chosen.push_back(workload);
            }
        }
    }
    chosen.push_back(chosen[0]);
    chosen.back().facts.attributeValue = {5};
    return chosen;
}

std::vector<FakeSignature> faultSignatures()
{
    std::vector<FakeSignature> all{
        tiles().signature, vectors().signature, copiedSignature(), biasedSignature(), finishedSignature()};
    for (General const& plugin : generalPlugins())
    {
        all.insert(all.end(), plugin.signatures.begin(), plugin.signatures.end());
    }
    return all;
}

DeviceOf::DeviceOf(FakeDriver& driver, int32_t capability)
    : mDriver(driver)
{
    int32_t const values[3] = {capability / 10, capability % 10, capability >= 90 ? 1 : 0};
    for (size_t i = 0; i < 3; ++i)
    {
        mBefore[i] = std::exchange(driver.attributes[kCAPABILITY[i]], values[i]);
    }
}

DeviceOf::~DeviceOf()
{
    for (size_t i = 0; i < 3; ++i)
    {
        mDriver.attributes[kCAPABILITY[i]] = mBefore[i];
    }
}

std::string queuedText(FakeEvent const& event)
{
    std::string text = event.call;
    text += std::string(" ") + (event.symbol == nullptr ? "" : event.symbol);
    for (uint64_t number : {event.to, event.from, event.bytes, uint64_t{event.asked}, uint64_t{event.grid[0]}, uint64_t{event.grid[1]},
             uint64_t{event.block[0]}, uint64_t{event.block[1]}, uint64_t{event.cluster[0]}, uint64_t{event.sharedBytes}})
    {
        text += " " + std::to_string(number);
    }
    for (uint32_t i = 0; i < event.argumentBytes; ++i)
    {
        text += (i == 0 ? " " : ".") + std::to_string(event.arguments[i]);
    }
    return text;
}

namespace
{

template <class Function>
Function ofDriver(char const* name)
{
    return reinterpret_cast<Function>(dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), name));
}

}

Capture::Capture()
{
    static void* const own = [] {
        void* made = nullptr;
        ofDriver<int32_t (*)(void**, unsigned)>("cuStreamCreate")(&made, 0);
        return made;
    }();
    mStream = own;
    mIsOn = ofDriver<int32_t (*)(void*, int32_t)>("cuStreamBeginCapture_v2")(mStream, 0) == 0;
}

Capture::~Capture()
{
    if (mIsOn)
    {
        end();
    }
}

int32_t Capture::end()
{
    mIsOn = false;
    void* graph = nullptr;
    int32_t const ended = ofDriver<int32_t (*)(void*, void**)>("cuStreamEndCapture")(mStream, &graph);
    if (graph != nullptr)
    {
        ofDriver<int32_t (*)(void*)>("cuGraphDestroy")(graph);
    }
    return ended;
}

}
