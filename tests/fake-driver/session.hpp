// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: one plugin in freshly opened libraries above the stand-in driver, and its node as an execution context has it.
// Never: knows what a plugin computes.
#pragma once

#include "../conformance/subject.hpp"
#include "fake.h"

#include <functional>
#include <string>
#include <vector>

namespace oracle
{

// What does not change from check to check.
struct Bench
{
    Report& report;
    Logger& logger;
    Finder& finder;
    FakeDriver& driver;
    // The library of plugins, and the one that runs engines.
    std::vector<std::string> paths;
};

// What the stand-in keeps of the calling thread.
FakeThread& ownThread();

// The addresses and the stream of every enqueue that says nothing else.
std::vector<void*> const& addresses();
void* stream();

// A plugin as an execution context holds it.
class Running
{
public:
    Running(Probe& probe, Subject const& subject, Owned plugin)
        : mSubject(&subject)
        , mPlugin(std::move(plugin))
        , mRuntime(&runtimeOf(probe, *mPlugin))
    {
    }

    int32_t tactic(int32_t id) const
    {
        return mRuntime->setTactic(id);
    }
    int32_t shapes(Tensors const& node) const;
    int32_t enqueue(Tensors const& node) const
    {
        return enqueue(node, addresses());
    }
    int32_t enqueue(Tensors const& node, std::vector<void*> const& pointers, void* workspace = nullptr,
        void* stream = oracle::stream()) const;

private:
    Subject const* mSubject;
    Owned mPlugin;
    nvinfer1::IPluginV3OneRuntime* mRuntime;
};

class Session
{
public:
    Session(Bench const& bench, Subject const& subject)
        : bench(bench)
        , subject(subject)
    {
    }

    Bench const& bench;
    Subject const& subject;

    // What an engine keeps of a node of that type with the shape of the facts, as the builder makes it.
    struct Stored
    {
        Fields fields;
        Creator* loader{nullptr};
    };
    Stored stored(Probe& probe, int32_t dataType = 0) const;
    // The engine is loaded and an execution context made. Ends the check where that fails.
    Running running(Probe& probe, Stored const& stored) const;
    Running running(Probe& probe, int32_t dataType = 0) const
    {
        return running(probe, stored(probe, dataType));
    }
    // The copy that the builder uses to time tactics.
    Running timed(Probe& probe) const;

    // The driver's calls from now on.
    void forget() const
    {
        bench.driver.eventCount = 0;
    }
    std::vector<FakeEvent> events() const;
    std::vector<FakeEvent> events(std::string const& call) const;
    // The launches that the driver took.
    std::vector<FakeEvent> launches() const;

private:
    Owned built(Probe& probe, int32_t dataType) const;
};

// A check in libraries that nobody has used. Afterwards nothing of theirs may be left in the driver.
void check(Bench const& bench, Facts const& facts, std::string const& name,
    std::function<void(Session const&, Probe&)> const& body);

} // namespace oracle
