// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: the expected work of `general_cases.cpp`'s plugins as C++ formulas. Never: takes a fact from the library under
// test.
#pragma once

#include "expected.hpp"

#include <map>
#include <random>

namespace oracle
{

// Tensors are exact zones. Shape inputs are on the host.
class Memory
{
public:
    // Unless `apart`, aliased outputs share memory.
    Memory(Facts const& facts, Combination const& combination, Given const& given, uint64_t workspaceBytes, bool apart = false);

    void announce(FakeDriver& driver) const;

    // Returns an address; shape inputs are not counted.
    uint64_t address(size_t tensor) const
    {
        return mAddresses[tensor];
    }
    uint64_t bytes(size_t tensor) const
    {
        return mBytes[tensor];
    }
    uint64_t workspace() const
    {
        return mWorkspace;
    }
    void give(Expected& launch, size_t tensor) const
    {
        launch.pointer(mAddresses[tensor], mBytes[tensor]);
    }
    int32_t enqueue(nvinfer1::IPluginV3OneRuntime& runtime, Tensors const& node) const;

private:
    size_t mInputs;
    uint64_t mWorkspace;
    uint64_t mWorkspaceBytes;
    std::vector<uint64_t> mAddresses;
    std::vector<uint64_t> mBytes;
};

struct Queued
{
    // `cuLaunchKernel`, `cuMemsetD8Async` or `cuMemcpyDtoDAsync_v2`.
    std::string call;
    Expected launch;
    uint64_t to{0};
    uint64_t from{0};
    uint64_t bytes{0};
    int32_t byte{0};

    static Queued launching(Expected const& launch);
    static Queued filling(uint64_t to, uint64_t bytes, int32_t byte);
    static Queued copying(uint64_t to, uint64_t from, uint64_t bytes);
};

struct General
{
    Facts facts;
    std::function<std::vector<Queued>(Combination const&, Given const&, int32_t tactic, Memory const&)> steps;
    std::vector<FakeSignature> signatures;
};

std::vector<General> generalPlugins();

// Exactly this work, in order, in existing memory.
void expectQueued(Session const& session, Probe& probe, std::vector<Queued> const& expected);

void checkTiming(Bench const& bench, General const& plugin);
void checkEngine(Bench const& bench, General const& plugin);
void checkHostile(Bench const& bench, General const& plugin);
void checkInterface(Bench const& bench, General const& plugin);

}
