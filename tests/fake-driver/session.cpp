// Copyright of the Cubinder authors; Apache-2.0.
#include "session.hpp"

#include <dlfcn.h>
#include <memory>

namespace oracle
{

int32_t Running::shapes(Tensors const& node) const
{
    auto const inputs = static_cast<int32_t>(node.in.size());
    auto const outputs = static_cast<int32_t>(node.out.size());
    return mRuntime->onShapeChange(node.in.data(), inputs, node.out.data(), outputs);
}

int32_t Running::enqueue(Tensors const& node, std::vector<void*> const& addresses, void* workspace, void* stream) const
{
    auto const inputs = static_cast<size_t>(mSubject->facts.inputs);
    void* const* pointers = addresses.data();
    return mRuntime->enqueue(node.in.data(), node.out.data(), pointers, pointers + inputs, workspace,
        static_cast<cudaStream_t>(stream));
}

FakeThread& ownThread()
{
    static auto const find = reinterpret_cast<FakeThread* (*) ()>(dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "fakeThread"));
    return *find();
}

std::vector<void*> const& addresses()
{
    static std::vector<void*> const all = devicePointers(8);
    return all;
}

void* stream()
{
    return reinterpret_cast<void*>(0x57EA0);
}

Owned Session::built(Probe& probe, int32_t dataType) const
{
    Owned const parsed = subject.create(probe);
    int32_t const shaped = subject.outputShapes(probe, *parsed, subject.facts.given());
    probe.need(shaped == 0, "getOutputShapes " + show(shaped), "0");
    Owned built = cloneOf(probe, *parsed);
    int32_t const configured = subject.configure(probe, *built, subject.tensors(dataType).all());
    probe.need(configured == 0, "configurePlugin " + show(configured), "0");
    return built;
}

Session::Stored Session::stored(Probe& probe, int32_t dataType) const
{
    Owned built = this->built(probe, dataType);
    return {subject.serialize(probe, *built), &subject.loader(probe, *built)};
}

Running Session::running(Probe& probe, Stored const& stored) const
{
    Owned loaded = subject.loaded(probe, *stored.loader, stored.fields);
    Context context;
    return Running(probe, subject, attachedOf(probe, *loaded, &context));
}

Running Session::timed(Probe& probe) const
{
    Owned const plugin = built(probe, 0);
    Context context;
    return Running(probe, subject, attachedOf(probe, *plugin, &context));
}

std::vector<FakeEvent> Session::events() const
{
    FakeDriver const& driver = bench.driver;
    return {driver.events, driver.events + std::min<uint32_t>(driver.eventCount, kMOST_EVENTS)};
}

std::vector<FakeEvent> Session::events(std::string const& call) const
{
    std::vector<FakeEvent> found;
    for (FakeEvent const& event : events())
    {
        if (event.call == call)
        {
            found.push_back(event);
        }
    }
    return found;
}

std::vector<FakeEvent> Session::launches() const
{
    std::vector<FakeEvent> found;
    for (FakeEvent const& event : events("cuLaunchKernel"))
    {
        if (event.result == 0)
        {
            found.push_back(event);
        }
    }
    return found;
}

void check(Bench const& bench, Facts const& facts, std::string const& name,
    std::function<void(Session const&, Probe&)> const& body)
{
    bench.report.run(facts.op.name + ": " + name, [&](Probe& probe) {
        FakeDriver& driver = bench.driver;
        driver.context = 1;
        driver.captureMode = 0;
        driver.failIn = 0;
        driver.eventCount = 0;
        {
            std::vector<std::unique_ptr<Library>> owned;
            std::vector<Library const*> libraries;
            for (std::string const& path : bench.paths)
            {
                owned.push_back(std::make_unique<Library>(path));
                owned.back()->setLoggerFinder(&bench.finder);
                libraries.push_back(owned.back().get());
            }
            Creator* op = libraries[0]->find(probe, facts.op);
            probe.need(op != nullptr, "no creator", show(facts.op.text()));
            bench.logger.take();
            Subject const subject(bench.report, bench.logger, facts, *op, libraries);
            body(Session(bench, subject), probe);
            driver.failIn = 0;
        }
        probe.at("unloading");
        probe.equal("code objects in the driver", driver.liveLibraries, 0);
        probe.equal("capture mode", driver.captureMode, 0);
    });
}

}
