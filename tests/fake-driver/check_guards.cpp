// Copyright of the Cubinder authors; Apache-2.0.
#include "checks.hpp"
#include "../conformance/heap.hpp"

#include <cstring>

namespace oracle
{

namespace
{

constexpr int32_t kAUTO = INT32_MAX;
constexpr int32_t kCHOICES = 1000;

struct Place
{
    int64_t x;
    int64_t y;
};

std::string described(Place const& place)
{
    return "x + " + std::to_string(place.x) + ", y + " + std::to_string(place.y);
}

std::vector<void*> moved(Place const& place)
{
    std::vector<void*> pointers = addresses();
    pointers[0] = static_cast<char*>(pointers[0]) + place.x;
    pointers[1] = static_cast<char*>(pointers[1]) + place.y;
    return pointers;
}

Expected launchAt(Launching const& plugin, Shape const& shape, int32_t variant, Place const& place)
{
    Expected expected = plugin.launch(shape, 0, variant);
    std::vector<void*> const pointers = moved(place);
    std::memcpy(expected.arguments.data(), pointers.data(), 2 * sizeof(void*));
    return expected;
}

void settle(Session const& session, Probe& probe, Running const& running, Tensors const& node)
{
    int32_t const code = running.shapes(node);
    probe.need(code == 0, "onShapeChange " + show(code) + ", " + show(firstError(session.bench.logger.take())), "0");
}

void runAt(Session const& session, Probe& probe, Running const& running, Launching const& plugin, Shape const& shape,
    Place const& place, int32_t variant)
{
    probe.at("shape " + show(shape) + ", " + described(place));
    session.forget();
    Tensors const node = session.subject.tensors(0, shape, plugin.facts.attributeValue);
    probe.equal("enqueue", running.enqueue(node, moved(place)), 0);
    expectLaunch(session, probe, launchAt(plugin, shape, variant, place));
    probe.equal("calls of enqueue", session.events().size(), size_t{1});
}

struct Chosen
{
    Shape shape;
    Place place;
    int32_t variant;
};

void checkChoice(Bench const& bench, Launching const& plugin)
{
    Shape const fours{1, 2, 8};
    Shape const odd{1, 3, 5};
    std::vector<Chosen> const automatic{
        {fours, {0, 0}, 1}, {fours, {0, 128}, 2}, {fours, {128, 0}, 2}, {fours, {16, 496}, 2}, {fours, {8, 0}, 3},
        {fours, {0, 4}, 3}, {fours, {1, 0}, 3}, {fours, {0, 255}, 3}, {fours, {256, 1024}, 1},
        {odd, {0, 0}, 3}, {odd, {3, 7}, 3}, {{1, 1, 4}, {0, 0}, 1}, {{1, 1, 1}, {0, 0}, 3},
    };
    for (int32_t tactic : {kAUTO, 0})
    {
        check(bench, plugin.facts, "the first variant whose guard is true is launched, with tactic " + show(tactic),
            [&, tactic](Session const& session, Probe& probe) {
                Running const running = session.running(probe);
                probe.equal("setTactic", running.tactic(tactic), 0);
                for (Chosen const& chosen : automatic)
                {
                    settle(session, probe, running,
                        session.subject.tensors(0, chosen.shape, plugin.facts.attributeValue));
                    runAt(session, probe, running, plugin, chosen.shape, chosen.place, chosen.variant);
                }
            });
    }
    check(bench, plugin.facts, "addresses change without a change of shapes", [&](Session const& session, Probe& probe) {
        Running const running = session.running(probe);
        settle(session, probe, running, session.subject.tensors(0, fours, plugin.facts.attributeValue));
        for (int32_t round = 0; round < 3; ++round)
        {
            for (Chosen const& chosen : automatic)
            {
                if (chosen.shape == fours)
                {
                    runAt(session, probe, running, plugin, fours, chosen.place, chosen.variant);
                }
            }
        }
    });
    struct Set
    {
        int32_t tactic;
        Shape shape;
        Place place;
        int32_t variant;
    };
    std::vector<Set> const sets{
        {1, fours, {0, 0}, 1}, {1, fours, {16, 0}, 2}, {1, fours, {4, 0}, 3}, {1, odd, {0, 0}, 3},
        {2, fours, {0, 0}, 2}, {2, fours, {8, 0}, 3}, {2, odd, {0, 0}, 3}, {3, fours, {0, 0}, 3}, {3, odd, {0, 0}, 3},
    };
    check(bench, plugin.facts, "a tactic is launched while its guard is true, otherwise the next", [&](Session const& session, Probe& probe) {
        Running const running = session.running(probe);
        for (Set const& set : sets)
        {
            Tensors const node = session.subject.tensors(0, set.shape, plugin.facts.attributeValue);
            probe.equal("setTactic", running.tactic(set.tactic), 0);
            settle(session, probe, running, node);
            probe.at("tactic " + show(set.tactic));
            runAt(session, probe, running, plugin, set.shape, set.place, set.variant);
        }
    });
    check(bench, plugin.facts, "choosing costs no memory", [&](Session const& session, Probe& probe) {
        Running const running = session.running(probe);
        Tensors const node = session.subject.tensors(0, fours, plugin.facts.attributeValue);
        probe.equal("setTactic", running.tactic(kAUTO), 0);
        settle(session, probe, running, node);
        std::vector<std::vector<void*>> const places{moved({0, 0}), moved({16, 0}), moved({1, 0})};
        int32_t codes = running.enqueue(node, places[0]);
        session.forget();
        uint64_t const before = heapAllocations();
        for (int32_t round = 0; round < kCHOICES; ++round)
        {
            codes |= running.tactic(kAUTO) | running.shapes(node)
                | running.enqueue(node, places[static_cast<size_t>(round) % places.size()]);
        }
        uint64_t const after = heapAllocations();
        probe.equal("codes", codes, 0);
        probe.equal("allocations", after - before, uint64_t{0});
        probe.equal("calls", session.events().size(), size_t{kCHOICES});
    });
}

void checkOffer(Bench const& bench, Launching const& plugin, std::vector<int32_t> const& offered)
{
    check(bench, plugin.facts, "tactics are the automatic one and those whose guards are always true", [&](Session const& session, Probe& probe) {
        Owned const built = session.subject.configured(probe);
        nvinfer1::IPluginV3OneBuild& build = buildOf(probe, *built);
        std::vector<int32_t> tactics(static_cast<size_t>(build.getNbTactics()));
        probe.equal("getValidTactics", build.getValidTactics(tactics.data(), static_cast<int32_t>(tactics.size())), 0);
        std::vector<int64_t> const found(tactics.begin(), tactics.end());
        probe.equal("tactics", found, std::vector<int64_t>(offered.begin(), offered.end()));
    });
}

void checkLimits(Bench const& bench, Launching const& plugin)
{
    check(bench, plugin.facts, "a profile that exceeds the limits is rejected", [&](Session const& session, Probe& probe) {
        Owned const built = session.subject.create(probe);
        struct Refused
        {
            Shape greatest;
            std::string named;
        };
        std::vector<Refused> const refused{
            {{2, 4097}, "dimension 1 of `x` is 4097 in 2x4097, the maximum of the profile"},
            {{4096, 4096}, "the number of elements of `x` is 16777216 in 4096x4096, the maximum of the profile"},
        };
        for (Refused const& one : refused)
        {
            Tensors const node = session.subject.tensors(0, one.greatest, plugin.facts.attributeValue);
            auto all = node.all();
            for (auto& desc : all)
            {
                for (int32_t i = 0; i < desc.desc.dims.nbDims; ++i)
                {
                    desc.desc.dims.d[i] = -1;
                    desc.min.d[i] = 1;
                }
            }
            probe.at("up to " + show(one.greatest));
            probe.that(session.subject.configure(probe, *built, all) != 0, "0 from configurePlugin", "a failure");
            session.subject.expectError(probe, one.named);
            probe.that(session.subject.configure(probe, *built, node.all()) != 0, "0 for that shape alone", "a failure");
            session.subject.expectError(probe, "; the manifest limits it to");
        }
        probe.equal("configurePlugin within", session.subject.configure(probe, *built, session.subject.tensors().all()), 0);
    });
    check(bench, plugin.facts, "a shape that exceeds the limits is rejected", [&](Session const& session, Probe& probe) {
        Running const running = session.running(probe);
        Tensors const good = session.subject.tensors();
        settle(session, probe, running, good);
        Tensors const wrong = session.subject.tensors(0, {1, 1, 5000}, plugin.facts.attributeValue);
        probe.that(running.shapes(wrong) != 0, "0 from onShapeChange", "a failure");
        session.subject.expectError(probe, "dimension 2 of `x` is 5000 in 1x1x5000; the manifest limits it to 0..=4096");
        session.forget();
        probe.that(running.enqueue(wrong) != 0, "0 from enqueue", "a failure");
        probe.that(session.launches().empty(), "a launch", "none");
        settle(session, probe, running, good);
        probe.equal("enqueue", running.enqueue(good), 0);
    });
}

void checkAttributes(Bench const& bench, Launching const& plugin, std::vector<std::pair<int32_t, std::string>> const& refused)
{
    check(bench, plugin.facts, "an attribute that violates its rules is rejected by name", [&](Session const& session, Probe& probe) {
        for (auto const& [value, named] : refused)
        {
            probe.at("value " + show(value));
            Collection const collection({ints(plugin.facts.attribute, {value})});
            Owned const made(session.subject.op.createPlugin("node", collection.get(), nvinfer1::TensorRTPhase::kBUILD));
            probe.that(made == nullptr, "a plugin", "null");
            session.subject.expectError(probe, named);
        }
    });
}

}

void checkGuards(Bench const& bench, Launching const& plugin)
{
    checkChoice(bench, plugin);
    checkOffer(bench, plugin, {kAUTO, 3});
    checkLimits(bench, plugin);
    checkAttributes(bench, plugin,
        {{51, "the attribute `bias` is `51`, the maximum is `50`"}, {-1, "the attribute `bias` is `-1`, the minimum is `0`"},
            {40000, "the attribute `bias` is `40000`, expected `i16`"}});
}

void checkNoVariant(Bench const& bench, Launching const& plugin)
{
    checkOffer(bench, plugin, {});
    checkAttributes(bench, plugin, {{1, "the attribute `bias` is `1`, expected one of `0`, `7`"}});
    check(bench, plugin.facts, "nothing is launched if no variant may run", [&](Session const& session, Probe& probe) {
        Running const running = session.running(probe);
        Shape const& shape = plugin.facts.shape;
        Tensors const node = session.subject.tensors();
        settle(session, probe, running, node);
        for (int32_t round = 0; round < 2; ++round)
        {
            runAt(session, probe, running, plugin, shape, {16, 8}, 1);
            probe.at("round " + show(round));
            session.forget();
            probe.that(running.enqueue(node, moved({4, 0})) != 0, "0 from enqueue", "a failure");
            session.subject.expectError(probe,
                "no variant can run: variant 1: guard `aligned(x, 16) and aligned(y, 8)` is false; bias = 7, x is 2x8x16, y is "
                "2x8x16, x is aligned to 4, y is aligned to 4096");
            probe.that(running.enqueue(node, moved({0, 1})) != 0, "0 from enqueue", "a failure");
            session.subject.expectError(probe, "y is aligned to 1");
            probe.equal("calls", session.events().size(), size_t{0});
        }
    });
}

}
