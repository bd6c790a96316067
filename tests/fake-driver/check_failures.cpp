// Copyright of the Cubinder authors; Apache-2.0.
#include "checks.hpp"

namespace oracle
{

namespace
{

constexpr int32_t kOUT_OF_MEMORY = 2;
constexpr int32_t kUNKNOWN = 999;

// When the thread gets a context; `kSTREAM`: only the stream has one.
enum class ContextFrom
{
    kSTART,
    kENQUEUE,
    kSTREAM
};

// Each step is repeated after its failure and must succeed.
class Life
{
public:
    Life(Session const& session, Probe& probe, Launching const& plugin, int32_t code, ContextFrom context)
        : mSession(session)
        , mProbe(probe)
        , mPlugin(plugin)
        , mDriver(session.bench.driver)
        , mCode(code)
        , mContext(context)
    {
    }

    bool run(int32_t nth)
    {
        Session::Stored const stored = mSession.stored(mProbe);
        mDriver.context = mContext == ContextFrom::kSTART ? 1 : 0;
        mDriver.failWith = mCode;
        mDriver.failIn = nth;
        Owned loaded;
        step("createPlugin", [&] {
            loaded = mSession.subject.load(*stored.loader, stored.fields);
            return loaded != nullptr;
        });
        Running const running = attach(*loaded);
        for (Shape const& shape : mPlugin.shapes)
        {
            // Starts with the previous shapes' tactic: it changes before enqueue.
            mTactics.assign(mPlugin.tactics.rbegin(), mPlugin.tactics.rend());
            mTactics.insert(mTactics.begin(), mTactics.back());
            live(running, shape);
        }
        bool const reached = mDriver.failIn == 0;
        mDriver.failIn = 0;
        return reached;
    }

private:
    Running attach(nvinfer1::IPluginV3& loaded)
    {
        Owned attached;
        Context context;
        auto action = [&] {
            attached.reset(runtimeOf(mProbe, loaded).attachToContext(&context));
            return attached != nullptr;
        };
        step("attachToContext", action, [&] {
            if (attached != nullptr)
            {
                // TensorRT crashes on null: an object whose methods fail is valid.
                Running const dead(mProbe, mSession.subject, std::move(attached));
                Tensors const node = mSession.subject.tensors();
                mProbe.that(dead.shapes(node) != 0 && dead.enqueue(node) != 0, "a plugin that works", "one that fails");
                mSession.bench.logger.take();
            }
        });
        return Running(mProbe, mSession.subject, std::move(attached));
    }

    void live(Running const& running, Shape const& shape)
    {
        Tensors const node = mSession.subject.tensors(0, shape, mPlugin.facts.attributeValue);
        auto announce = [&] { return running.shapes(node) == 0; };
        step("onShapeChange", announce, [&] {
            mProbe.that(running.enqueue(node) != 0, "0 from enqueue after it", "a failure");
            mSession.subject.expectError(mProbe);
            mProbe.that(mSession.launches().empty(), "a launch of other shapes after it", "none");
        });
        mDriver.context = mContext == ContextFrom::kSTREAM ? 0 : 1;
        for (int32_t tactic : mTactics)
        {
            mProbe.equal("setTactic", running.tactic(tactic), 0);
            step("enqueue", [&] { return running.enqueue(node) == 0; }, [&] {
                mProbe.that(mSession.launches().empty(), "a launch", "none");
                mProbe.that(announce(), "a failure from onShapeChange after it", "0");
            });
            expectLaunch(mSession, mProbe, mPlugin.launch(shape, 0, tactic));
        }
    }

    template <class Action>
    void step(std::string const& name, Action action)
    {
        step(name, action, [] {});
    }

    // Fails if the action does so without a failed driver call.
    template <class Action, class Afterwards>
    void step(std::string const& name, Action action, Afterwards afterwards)
    {
        bool const waiting = mDriver.failIn > 0;
        mSession.forget();
        bool const worked = action();
        std::string const error = firstError(mSession.bench.logger.take());
        bool const hit = waiting && mDriver.failIn == 0;
        std::string failing;
        bool isMissed = true;
        for (FakeEvent const& event : mSession.events())
        {
            failing = event.result == mCode ? event.call : failing;
            // The compute capability also implies cluster support.
            isMissed = isMissed && (event.result != mCode || event.attribute != kCLUSTER_LAUNCH);
        }
        if (worked && error.empty())
        {
            mProbe.that(!hit || mCode == kUNKNOWN || !isMissed, name + " succeeds", "a failure");
            return;
        }
        mProbe.need(hit, name + " refused " + show(error), "a success");
        mProbe.at(name + ", where " + failing + " fails");
        std::string const call = failing.substr(0, failing.find("_v2"));
        mProbe.that(error.find(call) != std::string::npos, "the message " + show(error), show(call) + " in it");
        if (failing == "cuThreadExchangeStreamCaptureMode")
        {
            mDriver.captureMode = 0; // what the library could not restore
        }
        if (failing == "cuCtxPopCurrent_v2")
        {
            ownThread().pushed = 0;
        }
        afterwards();
        mSession.forget();
        bool const again = action();
        mProbe.need(again, name + " fails again " + show(firstError(mSession.bench.logger.take())), "a success");
    }

    Session const& mSession;
    Probe& mProbe;
    Launching const& mPlugin;
    FakeDriver& mDriver;
    int32_t mCode;
    ContextFrom mContext;
    std::vector<int32_t> mTactics;
};

void checkEveryCall(Bench const& bench, Launching const& plugin, int32_t code, ContextFrom context)
{
    // Fewer calls miss steps; more mean an endless loop.
    constexpr int32_t kLEAST_CALLS = 20;
    constexpr int32_t kMOST_CALLS = 500;
    std::string const name = "every driver call may fail once with error " + show(code)
        + (context == ContextFrom::kENQUEUE      ? ", loading at enqueue"
            : context == ContextFrom::kSTREAM ? ", in a thread without a context"
                                               : "");
    int32_t reached = 0;
    for (bool more = true; more && reached < kMOST_CALLS;)
    {
        more = false;
        check(bench, plugin.facts, name + ": call " + show(reached + 1), [&](Session const& session, Probe& probe) {
            more = Life(session, probe, plugin, code, context).run(reached + 1);
        });
        reached += more ? 1 : 0;
    }
    bench.report.run(plugin.facts.op.name + ": " + name, [&](Probe& probe) {
        probe.that(reached >= kLEAST_CALLS && reached < kMOST_CALLS, show(reached) + " calls that work", "20 to 499");
    });
}

void checkContexts(Bench const& bench, Launching const& plugin)
{
    // The driver reports no context, or is not initialized.
    for (int32_t none : {0, -1})
    {
        std::string const where = none == 0 ? "without a context" : "before the driver is initialized";
        check(bench, plugin.facts, "an engine loaded " + where + " loads its code later", [&, none](Session const& session, Probe& probe) {
            Tensors const node = session.subject.tensors();
            bench.driver.context = none;
            Running const running = session.running(probe);
            probe.equal("code objects", session.events("cuLibraryLoadData").size(), size_t{0});
            probe.equal("error", firstError(bench.logger.take()), std::string());
            bench.driver.context = 1;
            probe.equal("onShapeChange", running.shapes(node), 0);
            probe.equal("code objects at onShapeChange", session.events("cuLibraryLoadData").size(), size_t{1});
            probe.equal("enqueue", running.enqueue(node), 0);
            expectLaunch(session, probe, plugin.launch(plugin.facts.shape, 0, plugin.tactics[0]));
        });
        check(bench, plugin.facts, "enqueue into a default stream " + where + " fails and says why", [&, none](Session const& session, Probe& probe) {
            Tensors const node = session.subject.tensors();
            bench.driver.context = none;
            Running const running = session.running(probe);
            probe.equal("onShapeChange", running.shapes(node), 0);
            for (uintptr_t standard : {0, 1, 2})
            {
                probe.that(running.enqueue(node, addresses(), nullptr, reinterpret_cast<void*>(standard)) != 0, "0", "a failure");
                session.subject.expectError(probe, "no current CUDA context, which a default stream requires");
            }
            probe.that(session.launches().empty(), "a launch", "none");
            bench.driver.context = 1;
            probe.equal("enqueue with a context", running.enqueue(node), 0);
            expectLaunch(session, probe, plugin.launch(plugin.facts.shape, 0, plugin.tactics[0]));
        });
    }
    check(bench, plugin.facts, "a thread without a context enqueues in that of the stream", [&](Session const& session, Probe& probe) {
        bench.driver.context = 0;
        Running const running = session.running(probe);
        for (Shape const& shape : plugin.shapes)
        {
            Tensors const node = session.subject.tensors(0, shape, plugin.facts.attributeValue);
            for (int32_t tactic : plugin.tactics)
            {
                session.forget();
                probe.equal("setTactic", running.tactic(tactic), 0);
                probe.equal("onShapeChange", running.shapes(node), 0);
                probe.equal("enqueue", running.enqueue(node), 0);
                expectLaunch(session, probe, plugin.launch(shape, 0, tactic));
                probe.equal("contexts pushed", session.events("cuCtxPushCurrent_v2").size(), size_t{1});
                probe.equal("contexts popped", session.events("cuCtxPopCurrent_v2").size(), size_t{1});
                session.forget();
                probe.equal("enqueue of the same shapes", running.enqueue(node), 0);
                probe.equal("its calls", uint64_t{bench.driver.eventCount}, session.launches().size());
            }
        }
    });
}

}

void checkFailures(Bench const& bench, Launching const& plugin)
{
    checkEveryCall(bench, plugin, kOUT_OF_MEMORY, ContextFrom::kSTART);
    checkEveryCall(bench, plugin, kOUT_OF_MEMORY, ContextFrom::kENQUEUE);
    checkEveryCall(bench, plugin, kOUT_OF_MEMORY, ContextFrom::kSTREAM);
    checkEveryCall(bench, plugin, kUNKNOWN, ContextFrom::kSTART);
    checkContexts(bench, plugin);
}

void checkRefusals(Bench const& bench, Launching const& plugin)
{
    struct Change
    {
        std::string label;
        std::function<void(Tensors&)> apply;
    };
    Shape const good = plugin.shapes[0];
    auto reshaped = [&plugin](Tensors& node, Shape const& x) {
        node.in[0].dims = dimsOf(x);
        node.out[0].dims = dimsOf(plugin.facts.output(x, plugin.facts.attributeValue));
    };
    std::vector<Change> const changes{
        {"an output of another shape", [](Tensors& node) { node.out[0].dims.d[0] += 1; }},
        {"an output of another rank", [](Tensors& node) { node.out[0].dims.nbDims -= 1; }},
        {"rank 9", [](Tensors& node) { node.in[0].dims.nbDims = 9; }},
        {"rank -1", [](Tensors& node) { node.in[0].dims.nbDims = -1; }},
        {"a rank that the plugin does not support", [&](Tensors& node) { reshaped(node, {1, 1, 1, 1, 1}); }},
        {"types that do not match", [](Tensors& node) { node.out[0].type = static_cast<nvinfer1::DataType>(1); }},
        {"a type that the plugin does not support", [](Tensors& node) {
             node.in[0].type = node.out[0].type = static_cast<nvinfer1::DataType>(3);
         }},
        {"no output", [](Tensors& node) { node.out.clear(); }},
        {"more shared memory than the device has", [&](Tensors& node) { reshaped(node, {4, 8, 16}); }},
        {"more blocks than a grid has", [&](Tensors& node) { reshaped(node, {1, INT32_MAX, 4096}); }},
    };
    for (Change const& change : changes)
    {
        check(bench, plugin.facts, "nothing is launched after " + change.label, [&](Session const& session, Probe& probe) {
            Running const running = session.running(probe);
            Tensors const node = session.subject.tensors();
            Tensors wrong = node;
            change.apply(wrong);
            probe.need(running.shapes(node) == 0 && running.enqueue(node) == 0, "a failure for valid shapes", "0");
            for (int32_t round = 0; round < 2; ++round)
            {
                probe.at("round " + show(round));
                session.forget();
                probe.that(running.shapes(wrong) != 0, "0 from onShapeChange", "a failure");
                session.subject.expectError(probe);
                probe.that(running.enqueue(node) != 0, "0 from enqueue", "a failure");
                session.subject.expectError(probe);
                probe.equal("calls to launch", session.events("cuLaunchKernel").size(), size_t{0});
            }
            probe.at("valid shapes again");
            probe.equal("onShapeChange", running.shapes(node), 0);
            probe.equal("enqueue", running.enqueue(node), 0);
            expectLaunch(session, probe, plugin.launch(good, 0, plugin.tactics[0]));
        });
    }
    check(bench, plugin.facts, "nothing is launched before any shapes", [&](Session const& session, Probe& probe) {
        Running const running = session.running(probe);
        probe.that(running.enqueue(session.subject.tensors()) != 0, "0", "a failure");
        session.subject.expectError(probe);
        probe.equal("calls to launch", session.events("cuLaunchKernel").size(), size_t{0});
    });
    check(bench, plugin.facts, "a copy begins without shapes", [&](Session const& session, Probe& probe) {
        Session::Stored const stored = session.stored(probe);
        Owned const loaded = session.subject.loaded(probe, *stored.loader, stored.fields);
        Context context;
        Tensors const node = session.subject.tensors();
        Owned attached = attachedOf(probe, *loaded, &context);
        Owned copy = attachedOf(probe, *attached, &context);
        Running const first(probe, session.subject, std::move(attached));
        probe.equal("onShapeChange", first.shapes(node), 0);
        Running const second(probe, session.subject, std::move(copy));
        probe.that(second.enqueue(node) != 0, "0", "a failure");
        session.subject.expectError(probe);
        probe.equal("calls to launch", session.events("cuLaunchKernel").size(), size_t{0});
    });
}

void checkRefusedLaunch(Bench const& bench, Launching const& plugin)
{
    struct Refused
    {
        int32_t code;
        char const* name;
        char const* help;
    };
    for (Refused const& refused : {Refused{701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "make the block smaller"},
             Refused{719, "CUDA_ERROR_LAUNCH_FAILED", "work that was enqueued earlier may be the cause"},
             Refused{1, "CUDA_ERROR_INVALID_VALUE", "check the launch with `cubinder eval`"}})
    {
        check(bench, plugin.facts, "a launch that the driver refuses is reported with node, shapes, device and a fix: " + show(refused.code),
            [&, refused](Session const& session, Probe& probe) {
                Running const running = session.running(probe);
                Tensors const node = session.subject.tensors();
                probe.equal("onShapeChange", running.shapes(node), 0);
                session.bench.logger.take();
                session.bench.driver.failWith = refused.code;
                session.bench.driver.failIn = 1;
                probe.that(running.enqueue(node) != 0, "0", "a failure");
                std::string const error = firstError(session.bench.logger.take());
                std::string const expected = "cubinder: test::tiles_plugin `node`: `test::tiles_plugin` cannot launch `tiles<float, 4>`: `cuLaunchKernel` returned "
                    + std::string(refused.name) + " (" + show(refused.code) + ")\n"
                    "  grid [4, 4, 1], block [32, 4, 1], 51200 bytes of dynamic shared memory\n"
                    "  the kernel supports at most 1024 threads in a block and 101376 bytes of dynamic shared memory on this GPU\n"
                    "  node: tile_kib = 25, x is 2x8x16, y is 2x8x32\n"
                    "  GPU: Stand-In 4090 (compute capability 8.9, driver for CUDA 13.0)\n";
                probe.equal("the message up to the fix", error.substr(0, expected.size()), expected);
                probe.that(error.find(refused.help) != std::string::npos, show(error), show(refused.help) + " in it");
            });
    }
}

void checkOtherDevice(Bench const& bench, Launching const& plugin)
{
    check(bench, plugin.facts, "code for other devices is rejected with the available code and a fix", [&](Session const& session, Probe& probe) {
        Session::Stored const stored = session.stored(probe);
        for (int32_t round = 0; round < 2; ++round)
        {
            probe.at("round " + show(round));
            session.forget();
            probe.that(session.subject.load(*stored.loader, stored.fields) == nullptr, "a plugin", "null");
            std::string const error = firstError(bench.logger.take());
            for (char const* part : {"test::tiles_plugin", "`tiles<float, 4>`", "Stand-In 4090", "compute capability 8.9",
                     "CUDA 13.0", "sm_75: ", "sm_90a: ", "CUDA_ERROR_NO_BINARY_FOR_GPU", "node: tile_kib = 25", "`cubinder compile --target sm_89`"})
            {
                probe.that(error.find(part) != std::string::npos, "the message " + show(error), show(part) + " in it");
            }
            probe.equal("code passed to the driver", session.events("cuLibraryLoadData").size(), size_t{round == 0 ? 2U : 0U});
        }
        probe.at("for timing");
        Running const timed = session.timed(probe);
        probe.that(timed.shapes(session.subject.tensors()) != 0, "0 from onShapeChange", "a failure");
        session.subject.expectError(probe, "x is 2x8x16");
        probe.that(timed.enqueue(session.subject.tensors()) != 0, "0 from enqueue", "a failure");
        session.subject.expectError(probe);
    });
}

}
