// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: nodes and their work for fault injection. The expected work is that without faults.
#pragma once

#include "general.hpp"

namespace oracle
{

struct Round
{
    Tensors node;
    std::vector<void*> pointers;
    void* workspace;
    int32_t tactic;
    // The context, from 1; 0: none.
    int32_t context;
};

struct Workload
{
    std::string name;
    Facts facts;
    // Compute capability times 10.
    int32_t capability;
    std::function<std::vector<Round>(Subject const&)> rounds;
    // Whether the context is created only after the first shapes.
    bool isLate{false};
};

// A variant choice; several launches with a fill and attributes, on two devices; launches with a copy.
std::vector<Workload> faultWorkloads();
// Run by the stand-in's device; two share code.
std::vector<Workload> threadWorkloads();
std::vector<FakeSignature> faultSignatures();

// Restores the device on destruction.
class DeviceOf
{
public:
    DeviceOf(FakeDriver& driver, int32_t capability);
    ~DeviceOf();
    DeviceOf(DeviceOf const&) = delete;
    DeviceOf& operator=(DeviceOf const&) = delete;

private:
    FakeDriver& mDriver;
    int32_t mBefore[3];
};

class Capture
{
public:
    Capture();
    ~Capture();
    Capture(Capture const&) = delete;
    Capture& operator=(Capture const&) = delete;

    bool isOn() const
    {
        return mIsOn;
    }
    void* stream() const
    {
        return mStream;
    }
    // Returns the error of `cuStreamEndCapture`.
    int32_t end();

private:
    void* mStream;
    bool mIsOn;
};

std::string queuedText(FakeEvent const& event);

void checkFaults(Bench const& bench, Workload const& workload);
void checkCaptures(Bench const& bench, std::vector<Workload> const& workloads);
void checkThreads(Bench const& bench, std::vector<Workload> const& workloads);
// Leaves threads working during process exit.
void leaveThreads(Bench const& bench, std::vector<Workload> const& workloads);

}
