// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: one plugin in fresh libraries with the stand-in driver. Never: knows what a plugin computes.
#pragma once

#include "../conformance/subject.hpp"
#include "fake.h"

#include <functional>
#include <string>
#include <vector>

namespace oracle
{

struct Bench
{
    Report& report;
    Logger& logger;
    Finder& finder;
    FakeDriver& driver;
    std::vector<std::string> paths;
};

FakeThread& ownThread();

std::vector<void*> const& addresses();
void* stream();

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

    // A plugin as an engine stores it, with the shape of the facts.
    struct Stored
    {
        Fields fields;
        Creator* loader{nullptr};
    };
    Stored stored(Probe& probe, int32_t dataType = 0) const;
    // Ends the check on failure.
    Running running(Probe& probe, Stored const& stored) const;
    Running running(Probe& probe, int32_t dataType = 0) const
    {
        return running(probe, stored(probe, dataType));
    }
    // The builder's copy for timing tactics.
    Running timed(Probe& probe) const;

    void forget() const
    {
        bench.driver.eventCount = 0;
    }
    std::vector<FakeEvent> events() const;
    std::vector<FakeEvent> events(std::string const& call) const;
    // Successful launches.
    std::vector<FakeEvent> launches() const;

private:
    Owned built(Probe& probe, int32_t dataType) const;
};

// The libraries must leave no driver objects.
void check(Bench const& bench, Facts const& facts, std::string const& name,
    std::function<void(Session const&, Probe&)> const& body);

}
