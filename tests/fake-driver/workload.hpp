// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: nodes with what an execution context has them do, for checks that inject faults.
// Never: knows what has to be queued; that is what a life without a fault has queued.
#pragma once

#include "general.hpp"

namespace oracle
{

// Shapes that are announced and queued once.
struct Round
{
    Tensors node;
    std::vector<void*> pointers;
    void* workspace;
    int32_t tactic;
    // The context in which it happens, from 1; 0: the thread has none.
    int32_t context;
};

struct Workload
{
    std::string name;
    Facts facts;
    // The device: its compute capability, times 10.
    int32_t capability;
    std::function<std::vector<Round>(Subject const&)> rounds;
    // Whether there is no context before the first shapes.
    bool isLate{false};
};

// One launch behind which stands a choice; several with a fill and attributes, on two devices; a copy beside several launches.
std::vector<Workload> faultWorkloads();
// Four that the stand-in's own device runs; two of them share their code.
std::vector<Workload> threadWorkloads();
std::vector<FakeSignature> faultSignatures();

// The stand-in's device, which is as before when this ends.
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

// A stream that captures until this ends.
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
    // Ends it and gives the graph back. Returns the error of `cuStreamEndCapture`.
    int32_t end();

private:
    void* mStream;
    bool mIsOn;
};

// A call that queues something, in words that can be compared.
std::string queuedText(FakeEvent const& event);

// Every call of the driver may fail, in every part of a node's life.
void checkFaults(Bench const& bench, Workload const& workload);
// Libraries are closed while a stream captures.
void checkCaptures(Bench const& bench, std::vector<Workload> const& workloads);
// Many threads live with the same engines while calls fail.
void checkThreads(Bench const& bench, std::vector<Workload> const& workloads);
// Leaves threads behind that do so while the process ends.
void leaveThreads(Bench const& bench, std::vector<Workload> const& workloads);

} // namespace oracle
