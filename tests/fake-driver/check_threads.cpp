// Copyright of the Cubinder authors; Apache-2.0.
//
// Threads use the same engines in random order while driver calls fail and library copies open and close.
#include "workload.hpp"
#include "../conformance/heap.hpp"

#include <atomic>
#include <dlfcn.h>
#include <filesystem>
#include <memory>
#include <random>
#include <thread>
#include <unistd.h>

namespace oracle
{

namespace
{

constexpr int32_t kMANY = 16;
constexpr int32_t kDEEDS = 1500;
constexpr size_t kMOST_HELD = 6;
constexpr int32_t kCOPIES = 12;
constexpr int32_t kENDLESS = 4;
constexpr uint32_t kENOUGH = 100;
// Kept by threads; failures would leak more.
constexpr int64_t kBLOCKS_OF_THREADS = 64;

struct Shared
{
    Session::Stored stored;
    std::vector<Round> rounds;
    std::vector<uint32_t> queued;
    std::vector<std::string> last;
    Owned shared;
};

int32_t announceOf(nvinfer1::IPluginV3OneRuntime& runtime, Round const& round)
{
    return runtime.onShapeChange(round.node.in.data(), static_cast<int32_t>(round.node.in.size()), round.node.out.data(),
        static_cast<int32_t>(round.node.out.size()));
}

int32_t enqueueOf(nvinfer1::IPluginV3OneRuntime& runtime, Round const& round, void* stream = oracle::stream())
{
    void* const* pointers = round.pointers.data();
    return runtime.enqueue(round.node.in.data(), round.node.out.data(), pointers, pointers + round.node.in.size(), round.workspace,
        static_cast<cudaStream_t>(stream));
}

struct Held
{
    Shared const* engine;
    Owned plugin;
    bool isAttached;
    // Round of the last accepted shapes; -1 if none.
    int32_t round;
};

class Thread
{
public:
    Thread(Bench const& bench, std::vector<Shared> const& engines, Probe& probe, uint64_t seed)
        : mBench(bench)
        , mEngines(engines)
        , mProbe(probe)
        , mRandom(seed)
        , mOwn(ownThread())
    {
    }

    void run(uint32_t failOneIn, int32_t context)
    {
        mOwn = FakeThread{};
        mOwn.context = context;
        mOwn.failOneIn = failOneIn;
        mOwn.seed = mRandom();
        for (int32_t code : {2, 4, 700, 999})
        {
            mOwn.codes[mOwn.codeCount++] = code;
        }
        for (int32_t deed = 0; deed < kDEEDS && !mProbe.failed(); ++deed)
        {
            mProbe.at("deed " + show(deed));
            act();
        }
        mHeld.clear();
        mDone = mOwn.failures;
        mOwn = FakeThread{};
    }

    uint32_t failures() const
    {
        return mDone;
    }

private:
    void act()
    {
        uint64_t const die = mRandom() % 100;
        bool const isFull = mHeld.size() >= kMOST_HELD;
        if (mHeld.empty() || (die < 12 && !isFull))
        {
            load();
        }
        else if (die < 28 && !isFull)
        {
            attach();
        }
        else if (die < 32 && !isFull)
        {
            Held const& from = any();
            mHeld.push_back({from.engine, cloneOf(mProbe, *from.plugin), from.isAttached, -1});
        }
        else if (die < 55)
        {
            announce(any());
        }
        else if (die < 92)
        {
            enqueue(any());
        }
        else
        {
            mHeld.erase(mHeld.begin() + static_cast<std::ptrdiff_t>(mRandom() % mHeld.size()));
        }
        mBench.logger.take();
    }

    Held& any()
    {
        return mHeld[mRandom() % mHeld.size()];
    }

    Shared const& anyEngine()
    {
        return mEngines[mRandom() % mEngines.size()];
    }

    // Only this thread's failed calls explain a failure.
    void expectOwn(char const* what, bool worked, uint32_t failuresBefore)
    {
        mProbe.that(worked || mOwn.failures != failuresBefore, std::string(what) + " fails and no call of this thread did", "a success");
    }

    void load()
    {
        Shared const& engine = anyEngine();
        uint32_t const before = mOwn.failures;
        Collection const collection(engine.stored.fields);
        Owned plugin(engine.stored.loader->createPlugin("node", collection.get(), nvinfer1::TensorRTPhase::kRUNTIME));
        expectOwn("createPlugin", plugin != nullptr, before);
        if (plugin != nullptr)
        {
            mHeld.push_back({&engine, std::move(plugin), false, -1});
        }
    }

    void attach()
    {
        bool const isShared = mRandom() % 2 == 0;
        Held const& own = any();
        Shared const& engine = isShared ? anyEngine() : *own.engine;
        nvinfer1::IPluginV3& from = isShared ? *engine.shared : *own.plugin;
        uint32_t const before = mOwn.failures;
        Context context;
        Owned attached(runtimeOf(mProbe, from).attachToContext(&context));
        // May return an object whose methods fail.
        bool const works = attached != nullptr && runtimeOf(mProbe, *attached).setTactic(engine.rounds[0].tactic) == 0;
        expectOwn("attachToContext", works, before);
        if (works)
        {
            mHeld.push_back({&engine, std::move(attached), true, -1});
        }
    }

    void announce(Held& held)
    {
        if (!held.isAttached)
        {
            return;
        }
        uint64_t const number = mRandom() % held.engine->rounds.size();
        Round const& round = held.engine->rounds[number];
        nvinfer1::IPluginV3OneRuntime& runtime = runtimeOf(mProbe, *held.plugin);
        uint32_t const before = mOwn.failures;
        mProbe.equal("setTactic", runtime.setTactic(round.tactic), 0);
        bool const worked = announceOf(runtime, round) == 0;
        expectOwn("onShapeChange", worked, before);
        held.round = worked ? static_cast<int32_t>(number) : -1;
    }

    void enqueue(Held& held)
    {
        if (!held.isAttached)
        {
            return;
        }
        auto const number = static_cast<size_t>(std::max(held.round, 0));
        nvinfer1::IPluginV3OneRuntime& runtime = runtimeOf(mProbe, *held.plugin);
        uint32_t const before = mOwn.failures;
        uint32_t const queuedBefore = mOwn.queued;
        bool const worked = enqueueOf(runtime, held.engine->rounds[number]) == 0;
        uint32_t const queued = mOwn.queued - queuedBefore;
        if (held.round < 0)
        {
            mProbe.that(!worked && queued == 0, "an enqueue without shapes that queues " + show(uint64_t{queued}), "a failure");
            return;
        }
        expectOwn("enqueue", worked, before);
        if (worked)
        {
            mProbe.equal("what is queued", uint64_t{queued}, uint64_t{held.engine->queued[number]});
            mProbe.equal("the last of it", queuedText(mOwn.last), held.engine->last[number]);
        }
    }

    Bench const& mBench;
    std::vector<Shared> const& mEngines;
    Probe& mProbe;
    std::mt19937_64 mRandom;
    FakeThread& mOwn;
    std::vector<Held> mHeld;
    uint32_t mDone{0};
};

struct Opened
{
    Opened(Bench const& bench, Probe& probe, std::vector<std::string> const& paths, std::vector<Workload> const& workloads)
    {
        for (std::string const& path : paths)
        {
            libraries.push_back(std::make_unique<Library>(path));
            libraries.back()->setLoggerFinder(&bench.finder);
        }
        std::vector<Library const*> all;
        for (auto const& library : libraries)
        {
            all.push_back(library.get());
        }
        for (Workload const& workload : workloads)
        {
            Creator* op = all[0]->find(probe, workload.facts.op);
            probe.need(op != nullptr, "no creator", show(workload.facts.op.text()));
            subjects.push_back(std::make_unique<Subject>(bench.report, bench.logger, workload.facts, *op, all));
        }
    }

    std::vector<std::unique_ptr<Library>> libraries;
    std::vector<std::unique_ptr<Subject>> subjects;
};

void rehearse(Probe& probe, Shared& engine)
{
    Context context;
    Owned const attached = attachedOf(probe, *engine.shared, &context);
    nvinfer1::IPluginV3OneRuntime& runtime = runtimeOf(probe, *attached);
    for (Round const& round : engine.rounds)
    {
        probe.equal("setTactic", runtime.setTactic(round.tactic), 0);
        uint32_t const before = ownThread().queued;
        probe.equal("onShapeChange", announceOf(runtime, round), 0);
        probe.equal("enqueue", enqueueOf(runtime, round), 0);
        engine.queued.push_back(ownThread().queued - before);
        engine.last.push_back(queuedText(ownThread().last));
        probe.that(engine.queued.back() > 0, "nothing", "something that is queued");
    }
}

std::vector<Shared> loadedFrom(Bench const& bench, Opened const& opened, std::vector<Workload> const& workloads, Probe& probe)
{
    std::vector<Shared> engines;
    for (size_t i = 0; i < workloads.size(); ++i)
    {
        Subject const& subject = *opened.subjects[i];
        engines.push_back({Session(bench, subject).stored(probe), workloads[i].rounds(subject), {}, {}, nullptr});
        engines.back().shared = subject.loaded(probe, *engines.back().stored.loader, engines.back().stored.fields);
    }
    return engines;
}

std::vector<Shared> rehearsed(Bench const& bench, std::vector<Workload> const& workloads, Probe& probe)
{
    Opened const opened(bench, probe, bench.paths, workloads);
    std::vector<Shared> engines = loadedFrom(bench, opened, workloads, probe);
    for (Shared& engine : engines)
    {
        rehearse(probe, engine);
        engine.shared.reset();
    }
    return engines;
}

void comeAndGo(Bench const& bench, std::vector<Workload> const& workloads, std::vector<std::string> const& copies, Probe& probe)
{
    for (int32_t i = 0; i < kCOPIES && !probe.failed(); ++i)
    {
        probe.at("copy " + show(i));
        Opened const opened(bench, probe, copies, workloads);
        for (Shared& engine : loadedFrom(bench, opened, workloads, probe))
        {
            rehearse(probe, engine);
        }
    }
}

// The loader treats copies as other libraries.
class Copies
{
public:
    explicit Copies(std::vector<std::string> const& paths)
        : mFolder(std::filesystem::temp_directory_path() / ("copies-" + std::to_string(getpid())))
    {
        std::filesystem::create_directories(mFolder);
        for (std::string const& path : paths)
        {
            std::filesystem::path const copy = mFolder / std::filesystem::path(path).filename();
            std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing);
            mPaths.push_back(copy.string());
        }
    }
    ~Copies()
    {
        std::error_code ignored;
        std::filesystem::remove_all(mFolder, ignored);
    }
    Copies(Copies const&) = delete;
    Copies& operator=(Copies const&) = delete;

    std::vector<std::string> const& paths() const
    {
        return mPaths;
    }

private:
    std::filesystem::path mFolder;
    std::vector<std::string> mPaths;
};

template <class Body>
std::thread started(Probe& probe, std::atomic<int32_t>& waiting, Body body)
{
    return std::thread([&probe, &waiting, body] {
        --waiting;
        while (waiting > 0)
        {
            std::this_thread::yield();
        }
        try
        {
            body(probe);
        }
        catch (Stop const&)
        {
        }
        catch (std::exception const& error)
        {
            probe.that(false, std::string("an exception, ") + error.what(), "none");
        }
    });
}

void liveTogether(Bench const& bench, std::vector<Workload> const& workloads, Probe& probe, uint32_t failOneIn,
    std::vector<std::string> const& copies)
{
    FakeDriver& driver = bench.driver;
    driver.context = 1;
    driver.liveLibraries = 0;
    driver.loadedTwice = 0;
    std::vector<Shared> const known = rehearsed(bench, workloads, probe);
    {
        Opened const opened(bench, probe, bench.paths, workloads);
        driver.context = 0;
        std::vector<Shared> engines = loadedFrom(bench, opened, workloads, probe);
        driver.context = 1;
        for (size_t i = 0; i < engines.size(); ++i)
        {
            engines[i].queued = known[i].queued;
            engines[i].last = known[i].last;
        }
        probe.equal("code objects before the threads", driver.liveLibraries, 0);
        bool const hasCopies = !copies.empty();
        std::vector<Probe> probes(kMANY + 1, Probe::forThread());
        std::atomic<int32_t> waiting{kMANY + (hasCopies ? 1 : 0)};
        std::atomic<uint32_t> failures{0};
        std::vector<std::thread> threads;
        for (int32_t i = 0; i < kMANY; ++i)
        {
            threads.push_back(started(probes[static_cast<size_t>(i)], waiting, [&, i](Probe& own) {
                Thread thread(bench, engines, own, 20261122 + static_cast<uint64_t>(i));
                thread.run(failOneIn, 1 + i % 4);
                failures += thread.failures();
            }));
        }
        if (hasCopies)
        {
            threads.push_back(started(probes.back(), waiting, [&](Probe& own) { comeAndGo(bench, workloads, copies, own); }));
        }
        for (std::thread& thread : threads)
        {
            thread.join();
        }
        for (Probe const& own : probes)
        {
            probe.that(!own.failed(), "in a thread: " + own.message(), "what one thread gets");
        }
        probe.that(failOneIn == 0 || failures > 100, show(uint64_t{failures}) + " failures", "hundreds");
        probe.that(hasCopies || driver.loadedTwice == 0, show(driver.loadedTwice) + " code objects loaded twice", "none");
    }
    probe.equal("code objects in the driver", driver.liveLibraries, 0);
    bench.logger.take();
}

// A server drops one model while capturing another.
void closeDuringCapture(Bench const& bench, std::vector<Workload> const& workloads, Probe& probe, bool isOtherThread)
{
    FakeDriver& driver = bench.driver;
    driver.context = 1;
    driver.captureMode = 0;
    driver.liveLibraries = 0;
    Copies const copies(bench.paths);
    Opened const kept(bench, probe, copies.paths(), workloads);
    std::vector<Shared> engines = loadedFrom(bench, kept, workloads, probe);
    Context context;
    Owned const attached = attachedOf(probe, *engines[0].shared, &context);
    nvinfer1::IPluginV3OneRuntime& runtime = runtimeOf(probe, *attached);
    Round const& round = engines[0].rounds[0];
    probe.equal("setTactic", runtime.setTactic(round.tactic), 0);
    probe.equal("onShapeChange", announceOf(runtime, round), 0);
    int32_t const own = driver.liveLibraries;

    auto dropped = std::make_unique<Opened>(bench, probe, bench.paths, workloads);
    loadedFrom(bench, *dropped, workloads, probe);
    probe.that(driver.liveLibraries > own, "no code of the freed model", "some");
    Capture capture;
    probe.need(capture.isOn(), "no capture", "one");
    probe.equal("enqueue", enqueueOf(runtime, round, capture.stream()), 0);
    isOtherThread ? std::thread([&] { dropped.reset(); }).join() : dropped.reset();
    probe.equal("enqueue after that", enqueueOf(runtime, round, capture.stream()), 0);
    probe.equal("the end of the capture", capture.end(), 0);
    probe.equal("code objects in the driver", driver.liveLibraries, own);
    probe.equal("capture mode", driver.captureMode, 0);
}

// Never freed: the threads never stop.
struct Endless
{
    Endless(Bench const& bench, std::vector<Workload> const& workloads, Probe& probe)
        : opened(bench, probe, bench.paths, workloads)
        , engines(loadedFrom(bench, opened, workloads, probe))
        , done(kENDLESS)
    {
        for (int32_t i = 0; i < kENDLESS; ++i)
        {
            Shared& engine = engines[static_cast<size_t>(i) % engines.size()];
            Context context;
            attached.push_back(attachedOf(probe, *engine.shared, &context));
            runtimes.push_back(&runtimeOf(probe, *attached.back()));
            rounds.push_back(engine.rounds[0]);
            probe.equal("setTactic", runtimes.back()->setTactic(rounds.back().tactic), 0);
            probe.equal("onShapeChange", announceOf(*runtimes.back(), rounds.back()), 0);
        }
    }

    void start(size_t i)
    {
        std::thread([this, i] {
            for (;;)
            {
                done[i] += enqueueOf(*runtimes[i], rounds[i]) == 0 ? 1 : 0;
            }
        }).detach();
        if (i % 2 == 0)
        {
            Session::Stored const& stored = engines[i % engines.size()].stored;
            auto* collection = new Collection(stored.fields);
            std::thread([collection, loader = stored.loader] {
                for (;;)
                {
                    Owned const plugin(loader->createPlugin("node", collection->get(), nvinfer1::TensorRTPhase::kRUNTIME));
                }
            }).detach();
        }
    }

    Opened opened;
    std::vector<Shared> engines;
    std::vector<Owned> attached;
    std::vector<nvinfer1::IPluginV3OneRuntime*> runtimes;
    std::vector<Round> rounds;
    std::vector<std::atomic<uint32_t>> done;
};

}

void leaveThreads(Bench const& bench, std::vector<Workload> const& workloads)
{
    bench.report.run("the process ends while threads queue and load", [&](Probe& probe) {
        bench.driver.context = 1;
        auto* endless = new Endless(bench, workloads, probe);
        probe.that(bench.driver.liveLibraries > 0, "no code objects", "some that could be unloaded");
        bench.driver.keepsLibraries = 1;
        for (size_t i = 0; i < endless->runtimes.size(); ++i)
        {
            endless->start(i);
        }
        for (auto const& done : endless->done)
        {
            while (done < kENOUGH)
            {
                std::this_thread::yield();
            }
        }
    });
}

void checkCaptures(Bench const& bench, std::vector<Workload> const& workloads)
{
    for (bool isOtherThread : {false, true})
    {
        std::string const who = isOtherThread ? "another thread" : "the same thread";
        bench.report.run("one thread captures, and " + who + " closes a library: the capture is good and no code stays",
            [&](Probe& probe) { closeDuringCapture(bench, workloads, probe, isOtherThread); });
    }
    bench.report.run("code that is unloaded outside of relaxed mode invalidates the capture, as the driver does it", [&](Probe& probe) {
        auto const unload = reinterpret_cast<int32_t (*)(void*)>(dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cuLibraryUnload"));
        Capture capture;
        int32_t answer = 0;
        std::thread([&] { answer = unload(nullptr); }).join();
        probe.equal("cuLibraryUnload", answer, 900);
        probe.equal("cuStreamEndCapture", capture.end(), 901);
    });
}

void checkThreads(Bench const& bench, std::vector<Workload> const& workloads)
{
    std::string const who = show(kMANY) + " threads, " + show(static_cast<uint64_t>(workloads.size())) + " engines: ";
    for (uint32_t failOneIn : {0U, 40U})
    {
        bench.report.run(who + (failOneIn == 0 ? "no call fails" : "calls fail at random"), [&](Probe& probe) {
            liveTogether(bench, workloads, probe, failOneIn, {});
            int64_t const before = heapBlocks();
            liveTogether(bench, workloads, probe, failOneIn, {});
            int64_t const grown = heapBlocks() - before;
            probe.that(grown < kBLOCKS_OF_THREADS, show(grown) + " blocks of memory more", "none");
        });
    }
    bench.report.run(who + "copies of the library are opened and closed", [&](Probe& probe) {
        Copies const copies(bench.paths);
        liveTogether(bench, workloads, probe, 40, copies.paths());
    });
}

}
