// Copyright of the Cubinder authors; Apache-2.0.
//
// A plugin's answers to the builder.
#include "subject.hpp"
#include "versions.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace oracle
{

using nvinfer1::DataType;
using nvinfer1::DynamicPluginTensorDesc;
using nvinfer1::TensorFormat;

namespace
{

// Above the headers' types and formats, for later releases' values.
constexpr int32_t kDATA_TYPES = 16;
constexpr int32_t kFORMATS = 18;
constexpr int32_t kNO_TYPE = 99;
constexpr uint64_t kMOST_WORKSPACE = 64ULL << 30;

bool begins(std::vector<Combination> const& all, std::vector<int32_t> const& types, std::vector<int32_t> const& formats)
{
    return std::any_of(all.begin(), all.end(), [&](Combination const& one) {
        return types.size() <= one.types.size() && std::equal(types.begin(), types.end(), one.types.begin())
            && std::equal(formats.begin(), formats.end(), one.formats.begin());
    });
}

// The format's minimum rank (`NvInferRuntimeBase.h`); 0 for linear.
int32_t dimensionsOf(int32_t format)
{
    switch (format)
    {
    case 0: return 0;
    case 6:
    case 7:
    case 12: return 4; // kDHWC8, kCDHW32, kDHWC
    default: return 3;
    }
}

std::vector<std::vector<int32_t>> lists(int32_t count)
{
    std::vector<std::vector<int32_t>> all{{}};
    for (int32_t i = 0; i < count; ++i)
    {
        std::vector<std::vector<int32_t>> longer;
        for (auto const& list : all)
        {
            for (int32_t type = 0; type < kDATA_TYPES; ++type)
            {
                longer.push_back(list);
                longer.back().push_back(type);
            }
        }
        all = std::move(longer);
    }
    return all;
}

std::string text(std::vector<int32_t> const& values)
{
    return show(std::vector<int64_t>(values.begin(), values.end()));
}

void checkOutputTypes(Subject const& subject)
{
    Facts const& facts = subject.facts;
    subject.check("outputs, with the types that match the inputs", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        auto& build = buildOf(probe, *plugin);
        probe.equal("getNbOutputs", build.getNbOutputs(), facts.outputs);
        std::vector<Combination> const all = facts.combinations();
        for (std::vector<int32_t> const& types : lists(facts.inputs))
        {
            probe.at("data types " + text(types));
            std::vector<DataType> in;
            std::transform(types.begin(), types.end(), std::back_inserter(in), [](int32_t type) { return static_cast<DataType>(type); });
            std::vector<DataType> out(static_cast<size_t>(facts.outputs), static_cast<DataType>(kNO_TYPE));
            int32_t const code = build.getOutputDataTypes(out.data(), facts.outputs, in.data(), facts.inputs);
            probe.equal("accepted", code == 0, begins(all, types, {}));
            if (code != 0)
            {
                subject.expectError(probe);
                continue;
            }
            std::vector<int32_t> whole = types;
            std::transform(out.begin(), out.end(), std::back_inserter(whole), [](DataType type) { return static_cast<int32_t>(type); });
            probe.that(begins(all, whole, {}), "the types " + text(whole), "those of a combination");
        }
    });
    subject.check("getOutputDataTypes rejects other counts", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        auto& build = buildOf(probe, *plugin);
        std::vector<DataType> const in(8, DataType::kFLOAT);
        std::vector<DataType> out(8, DataType::kFLOAT);
        for (int32_t inputs : {0, facts.inputs - 1, facts.inputs + 1, -1})
        {
            probe.at(show(inputs) + " inputs");
            probe.that(build.getOutputDataTypes(out.data(), facts.outputs, in.data(), inputs) != 0, "0", "a failure");
        }
        for (int32_t outputs : {0, facts.outputs - 1, facts.outputs + 1, -1})
        {
            probe.at(show(outputs) + " outputs");
            probe.that(build.getOutputDataTypes(out.data(), outputs, in.data(), facts.inputs) != 0, "0", "a failure");
        }
    });
}

// TensorRT fills in earlier positions; later ones must not be read.
void askAt(Probe& probe, Subject const& subject, nvinfer1::IPluginV3OneBuild& build, Described all, Combination const& base,
    size_t position)
{
    std::vector<Combination> const offered = subject.facts.combinations();
    for (size_t i = position; i < all.size(); ++i)
    {
        all[i].desc.type = static_cast<DataType>(kNO_TYPE);
        all[i].desc.format = static_cast<TensorFormat>(kNO_TYPE);
    }
    auto const end = static_cast<std::ptrdiff_t>(position);
    std::vector<int32_t> types(base.types.begin(), base.types.begin() + end);
    std::vector<int32_t> formats(base.formats.begin(), base.formats.begin() + end);
    for (types.push_back(0); types.back() < kDATA_TYPES; ++types.back())
    {
        for (formats.push_back(0); formats.back() < kFORMATS; ++formats.back())
        {
            all[position].desc.type = static_cast<DataType>(types.back());
            all[position].desc.format = static_cast<TensorFormat>(formats.back());
            bool const found = build.supportsFormatCombination(
                static_cast<int32_t>(position), all.data(), subject.facts.inputs, subject.facts.outputs);
            if (found != begins(offered, types, formats))
            {
                probe.at("position " + show(static_cast<uint64_t>(position)) + ", types " + text(types) + ", formats " + text(formats));
                probe.equal("supported", found, !found);
            }
        }
        formats.pop_back();
    }
}

void checkFormats(Subject const& subject)
{
    Facts const& facts = subject.facts;
    int32_t const count = facts.inputs + facts.outputs;
    subject.check("supportsFormatCombination at every position, type and format", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        probe.equal("getOutputShapes", subject.outputShapes(probe, *plugin, facts.given()), 0);
        Owned clone = cloneOf(probe, *plugin);
        auto& build = buildOf(probe, *clone);
        for (Combination const& base : facts.combinations())
        {
            for (bool const isDynamic : {false, true})
            {
                Described const all = isDynamic ? subject.profile(base, facts.given()) : subject.tensors(base, facts.given()).all();
                for (size_t position = 0; position < all.size(); ++position)
                {
                    askAt(probe, subject, build, all, base, position);
                }
            }
        }
        auto const all = subject.tensors().all();
        for (int32_t position : {-1, count, INT32_MAX, INT32_MIN})
        {
            probe.at("position " + show(position));
            probe.equal("supported", build.supportsFormatCombination(position, all.data(), facts.inputs, facts.outputs), false);
        }
    });
    subject.check("formats are offered only for ranks that they support", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        auto& build = buildOf(probe, *plugin);
        for (Combination const& combination : facts.combinations())
        {
            Described const all = subject.tensors(combination, facts.given()).all();
            for (size_t position = 0; position < all.size(); ++position)
            {
                int32_t const least = dimensionsOf(combination.formats[position]);
                for (int32_t rank = 0; rank < least; ++rank)
                {
                    probe.at(combination.text() + ", position " + show(static_cast<uint64_t>(position)) + " of rank " + show(rank));
                    Described flat = all;
                    for (nvinfer1::Dims* dims : {&flat[position].desc.dims, &flat[position].min, &flat[position].opt, &flat[position].max})
                    {
                        dims->nbDims = rank;
                    }
                    bool const found = build.supportsFormatCombination(
                        static_cast<int32_t>(position), flat.data(), facts.inputs, facts.outputs);
                    probe.equal("supported", found, false);
                }
            }
        }
    });
    subject.check("getFormatCombinationLimit leaves room for every combination", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        int32_t const limit = buildOf(probe, *plugin).getFormatCombinationLimit();
        auto const least = static_cast<int32_t>(facts.combinations().size());
        probe.that(limit >= least, show(limit), show(least) + " or more");
    });
}

void checkConfiguration(Subject const& subject)
{
    Facts const& facts = subject.facts;
    subject.check("configurePlugin takes static and dynamic shapes", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        probe.equal("getOutputShapes", subject.outputShapes(probe, *plugin, facts.given()), 0);
        for (Combination const& combination : facts.combinations())
        {
            probe.at(combination.text());
            probe.equal("static", subject.configure(probe, *plugin, subject.tensors(combination, facts.given()).all()), 0);
            probe.equal("dynamic", subject.configure(probe, *plugin, subject.profile(combination, facts.given())), 0);
        }
    });
    subject.check("configurePlugin rejects combinations that were not offered", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        probe.equal("getOutputShapes", subject.outputShapes(probe, *plugin, facts.given()), 0);
        auto refused = [&](std::string const& what, std::function<int32_t()> const& ask) {
            probe.at(what);
            probe.that(ask() != 0, "0", "a failure");
            subject.expectError(probe);
        };
        auto configuring = [&](Combination const& combination) {
            return [&, combination] {
                return subject.configure(probe, *plugin, subject.tensors(combination, facts.given()).all());
            };
        };
        std::vector<Combination> const offered = facts.combinations();
        for (Combination const& base : offered)
        {
            for (size_t position = 0; position < base.types.size(); ++position)
            {
                Combination wrong = base;
                wrong.types[position] = wrong.types[position] == 2 ? 4 : 2;
                refused(wrong.text(), configuring(wrong));
                for (int32_t format = 0; format < kFORMATS; ++format)
                {
                    wrong = base;
                    wrong.formats[position] = format;
                    if (!begins(offered, wrong.types, wrong.formats))
                    {
                        refused(wrong.text(), configuring(wrong));
                    }
                }
            }
        }
        auto const good = subject.tensors().all();
        auto& build = buildOf(probe, *plugin);
        auto const* out = good.data() + facts.inputs;
        refused("one input too few", [&] { return build.configurePlugin(good.data(), facts.inputs - 1, out, facts.outputs); });
        refused("one output too few", [&] { return build.configurePlugin(good.data(), facts.inputs, out, facts.outputs - 1); });
        refused("no output", [&] { return build.configurePlugin(good.data(), facts.inputs, out, 0); });
        refused("null inputs", [&] { return build.configurePlugin(nullptr, facts.inputs, out, facts.outputs); });
    });
    subject.check("a rejected configuration changes nothing", [&](Probe& probe) {
        Owned plugin = subject.configured(probe);
        Fields const before = subject.serialize(probe, *plugin);
        Described wrong = subject.tensors().all();
        wrong[0].desc.type = static_cast<DataType>(4);
        probe.that(subject.configure(probe, *plugin, wrong) != 0, "0", "a failure");
        std::string const fault = difference(subject.serialize(probe, *plugin), before);
        probe.that(fault.empty(), fault, "the fields of before");
    });
}

void checkWorkspace(Subject const& subject)
{
    Facts const& facts = subject.facts;
    subject.check("getWorkspaceSize covers the maximum shapes", [&](Probe& probe) {
        for (Combination const& combination : facts.combinations())
        {
            for (bool const isDynamic : {false, true})
            {
                probe.at(combination.text() + (isDynamic ? ", dynamic" : ", static"));
                Owned plugin = subject.create(probe);
                Given const given = facts.given();
                probe.equal("getOutputShapes", subject.outputShapes(probe, *plugin, given), 0);
                Described all = isDynamic ? subject.profile(combination, given) : subject.tensors(combination, given).all();
                probe.equal("configurePlugin", subject.configure(probe, *plugin, all), 0);
                Given const most = isDynamic ? subject.greatest(given) : given;
                uint64_t const expected = facts.workspace ? facts.workspace(combination, most) : 0;
                auto const first = static_cast<uint64_t>(subject.workspaceSize(probe, *plugin, all));
                probe.that(first <= kMOST_WORKSPACE, show(first) + " bytes", "at most 64 GiB");
                probe.equal("bytes", first, expected);
                probe.equal("bytes at a second call", static_cast<uint64_t>(subject.workspaceSize(probe, *plugin, all)), expected);
                // -1 for data-dependent or aliased nodes.
                for (auto& desc : all)
                {
                    std::fill_n(desc.opt.d, desc.opt.nbDims, -1);
                }
                probe.equal("bytes with unknown opt", static_cast<uint64_t>(subject.workspaceSize(probe, *plugin, all)), expected);
            }
        }
    });
}

void checkTactics(Subject const& subject)
{
    Facts const& facts = subject.facts;
    subject.check("tactics are positive, distinct and as many as announced", [&](Probe& probe) {
        for (Combination const& combination : facts.combinations())
        {
            for (bool const isDynamic : {false, true})
            {
                probe.at(combination.text() + (isDynamic ? ", dynamic shapes" : ", static shapes"));
                Owned plugin = subject.configured(probe);
                Given const given = facts.given();
                subject.configure(probe, *plugin,
                    isDynamic ? subject.profile(combination, given) : subject.tensors(combination, given).all());
                auto& build = buildOf(probe, *plugin);
                probe.equal("getValidTactics of 0", build.getValidTactics(nullptr, 0), 0);
                int32_t const count = build.getNbTactics();
                probe.need(count >= 0 && count <= 1024, show(count) + " tactics", "0 to 1024");
                probe.equal("getNbTactics", build.getNbTactics(), count);
                constexpr int32_t kCANARY = -0x5EED;
                std::vector<int32_t> tactics(static_cast<size_t>(count) + 1, kCANARY);
                probe.equal("getValidTactics", build.getValidTactics(tactics.data(), count), 0);
                probe.equal("the element after the last", tactics.back(), kCANARY);
                tactics.pop_back();
                std::set<int32_t> seen;
                for (int32_t tactic : tactics)
                {
                    probe.that(tactic > 0, "tactic " + show(tactic), "more than 0: TensorRT rejects others");
                    probe.that(seen.insert(tactic).second, "tactic " + show(tactic) + " twice", "each once");
                }
                if (facts.tactics && !isDynamic)
                {
                    probe.equal("tactics", text(tactics), text(facts.tactics(combination, given)));
                }
            }
        }
    });
}

std::string idOf(Subject const& subject, Probe& probe, Fields const& attributes, char const* name = "node")
{
    Collection const collection(attributes);
    Owned plugin(subject.op.createPlugin(name, collection.get(), nvinfer1::TensorRTPhase::kBUILD));
    probe.need(plugin != nullptr, "null from createPlugin", "a plugin");
    char const* id = buildOf(probe, *plugin).getTimingCacheID();
    return id == nullptr ? "" : id;
}

void checkTimingId(Subject const& subject)
{
    Facts const& facts = subject.facts;
    subject.check("getTimingCacheID is stable, on clones too", [&](Probe& probe) {
        Owned plugin = subject.configured(probe);
        char const* first = buildOf(probe, *plugin).getTimingCacheID();
        std::string const kept = first == nullptr ? "" : first;
        probe.equal("an id", !kept.empty(), facts.isTimed);
        probe.text("id at a second call", buildOf(probe, *plugin).getTimingCacheID(), first == nullptr ? nullptr : kept.c_str());
        Owned clone = cloneOf(probe, *plugin);
        probe.text("id of a clone", buildOf(probe, *clone).getTimingCacheID(), first == nullptr ? nullptr : kept.c_str());
        probe.that(first == nullptr || kept == first, "a first answer that changed", "the same text");
    });
    if (!facts.isTimed)
    {
        return;
    }
    subject.check("equal nodes share one id for the timing cache, others never do", [&](Probe& probe) {
        std::string const id = idOf(subject, probe, facts.attributes());
        probe.equal("id of a node of another name", idOf(subject, probe, facts.attributes(), "another"), id);
        for (Pair const& pair : facts.alike)
        {
            probe.equal("id of a node that is alike", idOf(subject, probe, pair.other), idOf(subject, probe, pair.one));
        }
        for (Pair const& pair : facts.different)
        {
            probe.that(idOf(subject, probe, pair.one) != idOf(subject, probe, pair.other), "one id for other attributes", "two");
        }
    });
    subject.check("the id for the timing cache is fixed at creation", [&](Probe& probe) {
        // TensorRT prefixes shapes, types and formats, and may ask at any time.
        std::string const id = idOf(subject, probe, facts.attributes());
        Owned plugin = subject.create(probe);
        auto& build = buildOf(probe, *plugin);
        probe.equal("getOutputShapes", subject.outputShapes(probe, *plugin, facts.given()), 0);
        for (Combination const& combination : facts.combinations())
        {
            probe.at(combination.text());
            probe.equal("configurePlugin", subject.configure(probe, *plugin, subject.tensors(combination, facts.given()).all()), 0);
            probe.text("id", build.getTimingCacheID(), id.c_str());
        }
    });
}

void checkWords(Subject const& subject)
{
    Facts const& facts = subject.facts;
    subject.check("getMetadataString is a stable text that names the plugin", [&](Probe& probe) {
        Owned plugin = subject.configured(probe);
        auto& build = buildOf(probe, *plugin);
        char const* first = build.getMetadataString();
        std::string const kept = first == nullptr ? "" : first;
        probe.text("second answer", build.getMetadataString(), first == nullptr ? nullptr : kept.c_str());
        probe.that(first == nullptr || kept == first, "a first answer that changed", "the same text");
        bool const isNamed = kept.find(facts.op.name) != std::string::npos;
        probe.that(isNamed || !facts.hasMetadata, show(kept), "a text with " + show(facts.op.name) + " in it");
    });
    subject.check("getAliasedInput returns the aliased inputs", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        auto& build = buildOf(probe, *plugin);
        std::vector<int32_t> aliases = facts.aliases;
        aliases.resize(static_cast<size_t>(facts.outputs), -1);
        bool const isAliasing = std::any_of(aliases.begin(), aliases.end(), [](int32_t input) { return input >= 0; });
        probe.that(!isAliasing || build.getInterfaceInfo().major >= kBUILD_VERSION, "an interface without getAliasedInput",
            "version 2");
        if (build.getInterfaceInfo().major < 2)
        {
            return;
        }
        auto& second = static_cast<BuildInterface&>(build);
        for (int32_t output : {facts.outputs, -1, INT32_MAX, INT32_MIN})
        {
            probe.at("output " + show(output));
            probe.equal("input", second.getAliasedInput(output), -1);
        }
        for (int32_t output = 0; output < facts.outputs; ++output)
        {
            probe.at("output " + show(output));
            probe.equal("input", second.getAliasedInput(output), aliases[static_cast<size_t>(output)]);
        }
    });
}

}

void checkOffer(Subject const& subject)
{
    checkOutputTypes(subject);
    checkFormats(subject);
    checkConfiguration(subject);
    checkWorkspace(subject);
    checkTactics(subject);
    checkTimingId(subject);
    checkWords(subject);
}

}
