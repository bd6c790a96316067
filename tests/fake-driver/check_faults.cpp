// Copyright of the Cubinder authors; Apache-2.0.
//
// Repeats a node's life once per driver call, which fails, alone or with all later ones.
#include "workload.hpp"
#include "../conformance/heap.hpp"

#include <cstring>
#include <map>
#include <memory>

namespace oracle
{

namespace
{

struct Fault
{
    int32_t code;
    int32_t lasting;
    // Whether other code may replace rejected code.
    bool isUnclear;
    std::string name;
};

Fault const kFAULTS[] = {
    {1, kNO_CALL, true, "CUDA_ERROR_INVALID_VALUE (1), once"},
    {2, kNO_CALL, false, "CUDA_ERROR_OUT_OF_MEMORY (2), once"},
    {999, kNO_CALL, true, "an unknown error (999), once"},
    {2, kCALLS_OF_DEVICE, false, "CUDA_ERROR_OUT_OF_MEMORY (2), from then on"},
    {4, kALL_CALLS, false, "CUDA_ERROR_DEINITIALIZED (4), from then on"},
    {700, kCALLS_OF_DEVICE, false, "CUDA_ERROR_ILLEGAL_ADDRESS (700), from then on"},
    {721, kCALLS_OF_DEVICE, false, "CUDA_ERROR_TENSOR_MEMORY_LEAK (721), from then on"},
};

constexpr int32_t kDRIVER_GONE = 4;
constexpr int32_t kBAD_VALUE = 1;
constexpr int32_t kGREATEST_CALL = 500;
constexpr int32_t kLEAST_REACHED = 40;
// From here on nothing allocates for the first time.
constexpr int32_t kWARM = 10;

using Script = std::vector<std::vector<std::string>>;

class FaultyLife
{
public:
    FaultyLife(Session const& session, Probe& probe, Workload const& workload, Fault const& fault, Script& script)
        : mSession(session)
        , mProbe(probe)
        , mDriver(session.bench.driver)
        , mFault(fault)
        , mScript(script)
        , mRounds(workload.rounds(session.subject))
        , mIsLate(workload.isLate)
    {
    }

    // With `nth` 0 none fails and the script is recorded.
    void run(int32_t nth)
    {
        mIsFirst = nth == 0;
        Session::Stored const stored = mSession.stored(mProbe);
        mDriver.failWith = mFault.code;
        mDriver.isLasting = mFault.lasting;
        mDriver.failIn = nth;
        mDriver.context = mIsLate ? 0 : 1;
        Owned loaded;
        step("createPlugin", [&] {
            loaded = mSession.subject.load(*stored.loader, stored.fields);
            return loaded != nullptr;
        });
        if (loaded == nullptr)
        {
            return;
        }
        Owned clone;
        Owned attached;
        silent("clone", [&] { clone = cloneOf(mProbe, *loaded); });
        attach("attachToContext", *clone, attached);
        silent("the end of the object that it was cloned from", [&] { loaded.reset(); });
        live(*attached, stream());
        Owned second;
        attach("attachToContext of an attached object", *attached, second);
        silent("the end of an execution context", [&] { attached.reset(); });
        {
            Capture const capture;
            mProbe.need(capture.isOn(), "no capture", "one");
            live(*second, capture.stream());
        }
        silent("the end of all objects", [&] {
            second.reset();
            clone.reset();
        });
    }

private:
    void attach(std::string const& name, nvinfer1::IPluginV3& from, Owned& attached)
    {
        Context context;
        step(name, [&] {
            attached.reset(runtimeOf(mProbe, from).attachToContext(&context));
            // TensorRT crashes on null: an object whose methods fail, with a logged error, is valid.
            return attached != nullptr && !isError();
        });
        if (attached == nullptr || (mDriver.isLost != 0 && hasInjected()))
        {
            expectDead(attached.get());
            throw Stop();
        }
    }

    void expectDead(nvinfer1::IPluginV3* attached)
    {
        mProbe.that(mDriver.isLost != 0, "no object", "one, once the fault is over");
        if (attached != nullptr)
        {
            nvinfer1::IPluginV3OneRuntime& runtime = runtimeOf(mProbe, *attached);
            Round const& round = mRounds[0];
            mProbe.that(announce(runtime, round) != 0, "0 from onShapeChange of a plugin that could not be attached", "a failure");
            mProbe.that(enqueue(runtime, round, stream()) != 0, "0 from enqueue of a plugin that could not be attached", "a failure");
        }
    }

    static int32_t announce(nvinfer1::IPluginV3OneRuntime& runtime, Round const& round)
    {
        Tensors const& node = round.node;
        return runtime.onShapeChange(
            node.in.data(), static_cast<int32_t>(node.in.size()), node.out.data(), static_cast<int32_t>(node.out.size()));
    }

    static int32_t enqueue(nvinfer1::IPluginV3OneRuntime& runtime, Round const& round, void* stream)
    {
        void* const* pointers = round.pointers.data();
        return runtime.enqueue(round.node.in.data(), round.node.out.data(), pointers, pointers + round.node.in.size(), round.workspace,
            static_cast<cudaStream_t>(stream));
    }

    void live(nvinfer1::IPluginV3& plugin, void* stream)
    {
        nvinfer1::IPluginV3OneRuntime& runtime = runtimeOf(mProbe, plugin);
        for (Round const& round : mRounds)
        {
            mDriver.context = round.context;
            mProbe.equal("setTactic", runtime.setTactic(round.tactic), 0);
            step("onShapeChange", [&] { return announce(runtime, round) == 0; });
            std::vector<std::string> queued;
            step("enqueue", [&] {
                bool const worked = enqueue(runtime, round, stream) == 0;
                queued = queuedNow();
                if (!worked)
                {
                    expectPrefix(queued);
                }
                return worked;
            });
            expectScript(queued);
        }
        mDriver.context = 1;
    }

    std::vector<std::string> queuedNow() const
    {
        std::vector<std::string> queued;
        for (uint32_t i = 0; i < std::min<uint32_t>(mDriver.eventCount, kMOST_EVENTS); ++i)
        {
            FakeEvent const& event = mDriver.events[i];
            bool const isQueued = std::strncmp(event.call, "cuLaunch", 8) == 0 || std::strncmp(event.call, "cuMem", 5) == 0;
            if (isQueued && event.result == 0)
            {
                queued.push_back(queuedText(event));
            }
        }
        return queued;
    }

    // A failed enqueue has queued the earlier work.
    void expectPrefix(std::vector<std::string> const& queued)
    {
        if (mIsReplaced || mAt >= mScript.size())
        {
            return;
        }
        std::vector<std::string> const& all = mScript[mAt];
        bool const isPrefix = queued.size() < all.size() && std::equal(queued.begin(), queued.end(), all.begin());
        mProbe.that(isPrefix, show(static_cast<uint64_t>(queued.size())) + " steps of an enqueue that failed, which are not its first",
            "the first of " + show(static_cast<uint64_t>(all.size())));
    }

    void expectScript(std::vector<std::string> const& queued)
    {
        size_t const at = mAt++;
        if (mIsFirst)
        {
            mProbe.that(!queued.empty(), "nothing", "something that is queued");
            mScript.push_back(queued);
        }
        else if (mDriver.isLost)
        {
            mProbe.that(queued.empty() || at < mScript.size(), "work after a persistent error", "none");
        }
        else if (!mIsReplaced)
        {
            mProbe.that(at < mScript.size() && queued == mScript[at], "work that differs from a run without faults", "the same");
        }
    }

    bool isError()
    {
        std::vector<Line> lines = mSession.bench.logger.take();
        mLines.insert(mLines.end(), lines.begin(), lines.end());
        return !firstError(mLines).empty();
    }

    template <class Action>
    void silent(std::string const& name, Action action)
    {
        mSession.forget();
        action();
        mProbe.equal("calls in " + name, uint64_t{mDriver.eventCount}, uint64_t{0});
        mProbe.equal("messages in " + name, firstError(mSession.bench.logger.take()), std::string());
    }

    template <class Action>
    void step(std::string const& name, Action action)
    {
        bool const wasWaiting = mDriver.failIn > 0;
        bool const wasLost = mDriver.isLost != 0;
        mSession.forget();
        mLines.clear();
        bool const worked = action();
        isError();
        std::string const error = firstError(mLines);
        bool const isHit = (wasWaiting && mDriver.failIn == 0) || (wasLost && hasInjected());
        FakeEvent const failed = isHit ? firstFailed() : FakeEvent{"no call"};
        mIsReplaced = mIsReplaced || (isHit && mFault.isUnclear);
        if (worked)
        {
            mProbe.that(error.empty(), name + " succeeds and logs " + show(error), "no error");
            mProbe.that(!isHit || isMissable(failed), name + " succeeds although " + describe(failed) + " fails", "a failure");
            endWhereParametersEnd(failed);
            return;
        }
        // A lost driver gets no calls after an earlier error.
        mProbe.that(isHit || wasLost, name + " refused " + show(error), "a success");
        mProbe.that(!error.empty(), name + " failed without a message", "an error in the log");
        if (!isHit)
        {
            return;
        }
        mProbe.at(name + ", where " + describe(failed) + " fails");
        endWhereParametersEnd(failed);
        expectNamed();
        if (std::strcmp(failed.call, "cuThreadExchangeStreamCaptureMode") == 0)
        {
            mDriver.captureMode = 0; // what the library could not restore
        }
        if (std::strcmp(failed.call, "cuCtxPopCurrent_v2") == 0)
        {
            ownThread().pushed = 0;
        }
        if (mFault.lasting == kNO_CALL)
        {
            mSession.forget();
            mLines.clear();
            bool const again = action();
            isError();
            mProbe.need(again, name + " fails again " + show(firstError(mLines)), "a success");
        }
    }

    // The driver reports their end as an invalid value.
    void endWhereParametersEnd(FakeEvent const& failed) const
    {
        if (mFault.code == kBAD_VALUE && std::strcmp(failed.call, "cuKernelGetParamInfo") == 0)
        {
            throw Stop();
        }
    }

    bool hasInjected() const
    {
        return firstFailed().isInjected != 0;
    }

    FakeEvent firstFailed() const
    {
        for (uint32_t i = 0; i < std::min<uint32_t>(mDriver.eventCount, kMOST_EVENTS); ++i)
        {
            if (mDriver.events[i].isInjected != 0)
            {
                return mDriver.events[i];
            }
        }
        return FakeEvent{"no call"};
    }

    std::string describe(FakeEvent const& event) const
    {
        return std::string("`") + event.call + "`";
    }

    // The compute capability also implies cluster support.
    bool isMissable(FakeEvent const& failed) const
    {
        return failed.attribute == kCLUSTER_LAUNCH || mFault.isUnclear;
    }

    void expectNamed() const
    {
        std::string const code = "(" + std::to_string(mFault.code) + ")";
        bool isNamed = false;
        std::string calls;
        for (uint32_t i = 0; i < std::min<uint32_t>(mDriver.eventCount, kMOST_EVENTS); ++i)
        {
            if (mDriver.events[i].isInjected == 0)
            {
                continue;
            }
            std::string call = mDriver.events[i].call;
            call = "`" + call.substr(0, call.find("_v2")) + "`";
            calls += calls.find(call) == std::string::npos ? call + " " : "";
            for (Line const& line : mLines)
            {
                bool const isHeard = line.isError() || mFault.isUnclear;
                isNamed = isNamed || (isHeard && line.text.find(call) != std::string::npos && line.text.find(code) != std::string::npos);
            }
        }
        mProbe.that(isNamed, "the message " + show(firstError(mLines)), "one of " + calls + "and " + code + " in it");
        bool const blames = firstError(mLines).find("no code of ") != std::string::npos;
        mProbe.that(mFault.isUnclear || !blames, "the message " + show(firstError(mLines)), "a message that does not blame the code");
    }

    Session const& mSession;
    Probe& mProbe;
    FakeDriver& mDriver;
    Fault const& mFault;
    Script& mScript;
    std::vector<Round> mRounds;
    std::vector<Line> mLines;
    size_t mAt{0};
    bool mIsLate;
    bool mIsFirst{false};
    bool mIsReplaced{false};
};

// Unless an error lasts, one refusal to unload is retried.
void expectUnloaded(Bench const& bench, Probe& probe, Fault const& fault, int32_t loaded)
{
    FakeDriver const& driver = bench.driver;
    std::map<uint64_t, int32_t> asked;
    uint64_t refused = 0;
    int32_t unloaded = 0;
    for (uint32_t i = 0; i < driver.eventCount; ++i)
    {
        FakeEvent const& event = driver.events[i];
        bool const isUnload = std::strcmp(event.call, "cuLibraryUnload") == 0;
        bool const isMode = std::strcmp(event.call, "cuThreadExchangeStreamCaptureMode") == 0;
        probe.that(isUnload || isMode, std::string(event.call) + " while the libraries are closed", "calls that unload code");
        if (isUnload)
        {
            probe.that(++asked[event.handle] <= 2, "one code object is unloaded more than twice", "at most twice");
            unloaded += event.result == 0 ? 1 : 0;
            refused += event.result == 0 ? 0 : 1;
        }
    }
    bool const isGone = fault.code == kDRIVER_GONE;
    probe.that(isGone || asked.size() == static_cast<size_t>(loaded), show(uint64_t{asked.size()}) + " unloaded", show(loaded));
    probe.that(!isGone || refused <= bench.paths.size(), show(refused) + " calls of a driver that was unloaded", "one for each library");
    probe.that(fault.lasting != kNO_CALL || driver.liveLibraries == 0, show(driver.liveLibraries) + " code objects stay", "none");
    probe.equal("code objects that stay", driver.liveLibraries, loaded - unloaded);
}

// Returns false if there is no `nth` call.
bool liveOnce(Bench const& bench, Workload const& workload, Fault const& fault, int32_t nth, Script& script, Probe& probe)
{
    FakeDriver& driver = bench.driver;
    driver.context = 1;
    driver.captureMode = 0;
    driver.failIn = 0;
    driver.isLost = 0;
    driver.liveLibraries = 0;
    ownThread().pushed = 0;
    int32_t loaded = 0;
    {
        std::vector<std::unique_ptr<Library>> owned;
        std::vector<Library const*> libraries;
        for (std::string const& path : bench.paths)
        {
            owned.push_back(std::make_unique<Library>(path));
            owned.back()->setLoggerFinder(&bench.finder);
            libraries.push_back(owned.back().get());
        }
        Creator* op = libraries[0]->find(probe, workload.facts.op);
        probe.need(op != nullptr, "no creator", show(workload.facts.op.text()));
        bench.logger.take();
        Subject const subject(bench.report, bench.logger, workload.facts, *op, libraries);
        Session const session(bench, subject);
        try
        {
            FaultyLife(session, probe, workload, fault, script).run(nth);
        }
        catch (Stop const&)
        {
        }
        bench.logger.take();
        loaded = driver.liveLibraries;
        driver.eventCount = 0;
    }
    bool const isReached = nth > 0 && driver.failIn == 0;
    driver.failIn = 0;
    expectUnloaded(bench, probe, fault, loaded);
    driver.isLost = 0;
    driver.liveLibraries = 0;
    driver.captureMode = 0;
    return isReached;
}

}

void checkFaults(Bench const& bench, Workload const& workload)
{
    DeviceOf const device(bench.driver, workload.capability);
    for (Fault const& fault : kFAULTS)
    {
        bench.report.run(workload.name + ": every call of the driver may fail with " + fault.name, [&](Probe& probe) {
            Script script;
            probe.at("no fault");
            liveOnce(bench, workload, fault, 0, script, probe);
            int32_t nth = 1;
            int64_t before = 0;
            for (; nth < kGREATEST_CALL && !probe.failed(); ++nth)
            {
                probe.at("call " + show(nth));
                if (!liveOnce(bench, workload, fault, nth, script, probe))
                {
                    break;
                }
                if (nth == kWARM)
                {
                    // An early end leaves other blocks.
                    liveOnce(bench, workload, fault, kGREATEST_CALL, script, probe);
                    before = heapBlocks();
                }
            }
            int64_t const grown = heapBlocks() - before;
            probe.that(grown <= 0, show(grown) + " blocks of memory more", "none");
            probe.that(probe.failed() || (nth > kLEAST_REACHED && nth < kGREATEST_CALL), show(nth - 1) + " calls that may fail", "40 to 499");
        });
    }
}

}
