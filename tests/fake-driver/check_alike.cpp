// Copyright of the Cubinder authors; Apache-2.0.
//
// Equal nodes of an engine, in one context and in several.
#include "checks.hpp"

#include <map>

namespace oracle
{

namespace
{

constexpr int32_t kNODES = 100;

std::map<std::string, size_t> counted(Session const& session)
{
    std::map<std::string, size_t> calls;
    for (FakeEvent const& event : session.events())
    {
        ++calls[event.call];
    }
    return calls;
}

// Returns driver calls by name.
std::map<std::string, size_t> add(Session const& session, Probe& probe, Session::Stored const& stored, Tensors const& node,
    std::vector<Running>& nodes)
{
    session.forget();
    nodes.push_back(session.running(probe, stored));
    probe.equal("onShapeChange", nodes.back().shapes(node), 0);
    return counted(session);
}

}

void checkAlike(Bench const& bench, Launching const& plugin)
{
    size_t const kernels = plugin.tactics.size();
    std::map<std::string, size_t> const onlyIds{{"cuCtxGetId", 3}};
    check(bench, plugin.facts, "equal nodes load and prepare once in each context", [&](Session const& session, Probe& probe) {
        Session::Stored const stored = session.stored(probe);
        Tensors const node = session.subject.tensors();
        std::vector<Running> nodes;
        // 10 has the address of 2, which is destroyed.
        for (int32_t context : {1, 2, 10})
        {
            probe.at("context " + show(context));
            bench.driver.context = context;
            std::map<std::string, size_t> first = add(session, probe, stored, node, nodes);
            probe.equal("code objects", first["cuLibraryLoadData"], size_t{context == 1});
            probe.equal("kernels found", first["cuLibraryGetKernel"], context == 1 ? kernels : 0);
            probe.equal("kernels loaded", first["cuKernelGetFunction"], kernels);
            for (int32_t i = 1; i < kNODES && !probe.failed(); ++i)
            {
                probe.that(add(session, probe, stored, node, nodes) == onlyIds, "other calls of the driver", "three of cuCtxGetId");
            }
        }
        for (Running const& one : nodes)
        {
            session.forget();
            probe.equal("enqueue", one.enqueue(node), 0);
            expectLaunch(session, probe, plugin.launch(plugin.facts.shape, 0, plugin.tactics[0]));
        }
    });
    check(bench, plugin.facts, "equal nodes keep their own shapes and tactics", [&](Session const& session, Probe& probe) {
        Session::Stored const stored = session.stored(probe);
        std::vector<Running> nodes;
        std::vector<std::pair<Shape, int32_t>> each;
        for (int32_t turn = 0; turn < 3; ++turn)
        {
            for (Shape const& shape : plugin.shapes)
            {
                for (int32_t tactic : plugin.tactics)
                {
                    nodes.push_back(session.running(probe, stored));
                    each.emplace_back(shape, tactic);
                    probe.equal("setTactic", nodes.back().tactic(tactic), 0);
                    probe.equal("onShapeChange", nodes.back().shapes(session.subject.tensors(0, shape, plugin.facts.attributeValue)), 0);
                }
            }
        }
        for (size_t i = 0; i < nodes.size(); ++i)
        {
            auto const& [shape, tactic] = each[i];
            probe.at("node " + show(i) + ", shape " + show(shape) + ", tactic " + show(tactic));
            session.forget();
            probe.equal("enqueue", nodes[i].enqueue(session.subject.tensors(0, shape, plugin.facts.attributeValue)), 0);
            expectLaunch(session, probe, plugin.launch(shape, 0, tactic));
        }
    });
}

void checkAlikeLogs(Bench const& bench, Launching const& plugin)
{
    check(bench, plugin.facts, "each of equal nodes reports a replaced tactic, and the first what runs", [&](Session const& session, Probe& probe) {
        Session::Stored const stored = session.stored(probe);
        Running const other = session.running(probe, stored); // keeps shared parts
        auto const reported = [&](Shape const& shape, std::string const& part) {
            Running const running = session.running(probe, stored);
            session.bench.logger.take();
            probe.equal("setTactic", running.tactic(1), 0);
            probe.equal("onShapeChange", running.shapes(session.subject.tensors(0, shape, plugin.facts.attributeValue)), 0);
            uint64_t count = 0;
            for (Line const& line : session.bench.logger.take())
            {
                count += line.text.find(part) != std::string::npos;
            }
            return count;
        };
        for (int32_t turn = 0; turn < 3; ++turn)
        {
            probe.at("node " + show(turn));
            probe.equal("messages about the tactic", reported({1, 3, 5}, "variant 3 runs instead of variant 1"), uint64_t{1});
            probe.equal("whether it reports what runs", reported({2, 8, 16}, " may run: ") != 0, turn == 0);
        }
    });
}

}
