// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: what the plugins of `general_cases.cpp` must queue, as plain C++ formulas, and where their memory lies.
// Never: takes a fact from the library under test.
#pragma once

#include "expected.hpp"

#include <map>
#include <random>

namespace oracle
{

// One node's memory on the device, each tensor as large as it is and nothing beside it. Shape inputs lie on the host.
class Memory
{
public:
    // Outputs that share an input's memory lie where that does, unless `apart`.
    Memory(Facts const& facts, Combination const& combination, Given const& given, uint64_t workspaceBytes, bool apart = false);

    // Tells the driver what there is.
    void announce(FakeDriver& driver) const;

    // Over inputs, then outputs; shape inputs are not among them.
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
    // Gives a kernel a tensor, all of it.
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

// One thing in the stream.
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

// One of the plugins with formulas for what it queues.
struct General
{
    Facts facts;
    std::function<std::vector<Queued>(Combination const&, Given const&, int32_t tactic, Memory const&)> steps;
    // The parameters of its kernels.
    std::vector<FakeSignature> signatures;
};

std::vector<General> generalPlugins();

// Demands these and nothing else in the stream, in that order, within the memory that there is.
void expectQueued(Session const& session, Probe& probe, std::vector<Queued> const& expected);

// A builder that times, engines that are run in the orders of TensorRT and in hostile ones.
void checkTiming(Bench const& bench, General const& plugin);
void checkEngine(Bench const& bench, General const& plugin);
void checkHostile(Bench const& bench, General const& plugin);

} // namespace oracle
