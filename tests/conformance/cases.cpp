// Copyright of the Cubinder authors; Apache-2.0.
#include "cases.hpp"

#include "general_cases.hpp"

#include <algorithm>

namespace oracle
{

// `Kernel2` for code in fields; `Kernel-` and 16 digits of the bundle's digest for a library.
std::string cubinderCoreFault(Identity const& core)
{
    if (core.version != "2" || core.space != "cubinder")
    {
        return "version `2` in namespace `cubinder`";
    }
    std::string const prefix = "Kernel-";
    bool const isUnique = core.name.size() == prefix.size() + 16 && core.name.compare(0, prefix.size(), prefix) == 0
        && std::all_of(core.name.begin() + static_cast<long>(prefix.size()), core.name.end(),
            [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
    return core.name == "Kernel2" || isUnique ? "" : "`Kernel2`, or `Kernel-` and 16 hexadecimal digits";
}

namespace
{

Shape padded(Shape const& x, std::vector<int32_t> const& pads)
{
    Shape y = x;
    for (size_t i = 0; 2 * i + 1 < pads.size(); ++i)
    {
        y[x.size() - 1 - i] += pads[2 * i] + pads[2 * i + 1];
    }
    return y;
}

std::vector<std::vector<int32_t>> padsFor(int32_t rank)
{
    std::vector<int32_t> all;
    for (int32_t i = 0; i < 2 * rank; ++i)
    {
        all.push_back(i % 5);
    }
    return {{}, {1, 2}, all};
}

std::vector<Refusal> refusedPads()
{
    std::vector<Refusal> refusals{
        {"an odd number of pads", {ints("pads", {1, 1, 1})}},
        {"negative pads", {ints("pads", {1, -1, 1, 1})}, true},
        {"more pads than the rank has", {ints("pads", {1, 1, 1, 1, 1, 1, 1, 1, 1, 1})}, true},
        {"more pads than any rank has", {ints("pads", std::vector<int32_t>(18, 1))}, true},
        {"floats for pads", {floats("pads", {1.0F, 1.0F})}},
        {"no attribute at all", {}},
    };
    Field character = ints("pads", {1, 1});
    character.type = nvinfer1::PluginFieldType::kCHAR;
    refusals.push_back({"characters for pads", {character}});
    Field negative = ints("pads", {1, 1});
    negative.length = -2;
    refusals.push_back({"a negative length", {negative}});
    Field null = ints("pads", {1, 1});
    null.nullData = true;
    refusals.push_back({"null data with a length", {null}});
    refusals.push_back({"pads twice", {ints("pads", {1, 1}), ints("pads", {2, 2})}});
    return refusals;
}

std::vector<Refusal> refusedBlockSizes()
{
    return {
        {"no attribute at all", {}},
        {"floats for block_size", {floats("block_size", {256.0F})}},
        {"two block sizes", {ints("block_size", {256, 256})}},
        {"a block size of 0", {ints("block_size", {0})}, true},
        {"a negative block size", {ints("block_size", {-256})}, true},
        {"a block size above any GPU's maximum", {ints("block_size", {1 << 20})}, true},
    };
}

Facts circPad()
{
    Facts facts;
    facts.label = "circ_pad";
    facts.op = {"circ_pad_plugin", "1", "sample"};
    facts.attribute = "pads";
    facts.attributeValue = {1, 1, 1, 1};
    facts.attributesFor = padsFor;
    facts.refusals = refusedPads();
    facts.shape = {10, 3, 32, 32};
    facts.output = padded;
    facts.alike = {{facts.attributes(), facts.attributes()}};
    facts.different = {{facts.attributes(), facts.attributesOf({1, 2})}};
    facts.coreFault = cubinderCoreFault;
    return facts;
}

Facts elemwiseAdd()
{
    Facts facts;
    facts.label = "elemwise_add";
    facts.op = {"elemwise_add_plugin", "1", "sample"};
    facts.attribute = "block_size";
    facts.attributeValue = {256};
    facts.attributesFor = [](int32_t) { return std::vector<std::vector<int32_t>>{{256}}; };
    facts.refusals = refusedBlockSizes();
    facts.leastRank = 0;
    facts.shape = {10, 3, 32, 32};
    facts.output = [](Shape const& x, std::vector<int32_t> const&) { return x; };
    facts.coreFault = cubinderCoreFault;
    return facts;
}

// Shares the input's memory. Single precision may be channels-last.
Facts elemwiseAddInPlace()
{
    Facts facts;
    facts.label = "elemwise_add_inplace";
    facts.op = {"elemwise_add_plugin_", "1", "sample"};
    facts.attribute = "delta";
    facts.attributeValue = {1};
    facts.attributesFor = [](int32_t) { return std::vector<std::vector<int32_t>>{{1}, {-16777216}}; };
    facts.refusals = {
        {"no attribute at all", {}},
        {"floats for delta", {floats("delta", {1.0F})}},
        {"two deltas", {ints("delta", {1, 2})}},
        {"a delta that no float represents", {ints("delta", {16777217})}},
        {"a negative one", {ints("delta", {-16777217})}},
    };
    constexpr int32_t kHWC = 8;
    facts.offered = {{{0, 0}, {0, 0}}, {{0, 0}, {kHWC, kHWC}}, {{1, 1}, {0, 0}}};
    facts.aliases = {0};
    facts.leastRank = 0;
    facts.shape = {10, 3, 32, 32};
    facts.output = [](Shape const& x, std::vector<int32_t> const&) { return x; };
    facts.coreFault = cubinderCoreFault;
    facts.alike = {{facts.attributes(), facts.attributes()}, {facts.attributes(), facts.attributesOf({-3})}};
    return facts;
}

// One row per nonzero element, and their count.
Facts nonZero()
{
    constexpr uint64_t kALIGNMENT = 256;
    constexpr int64_t kTILE = 1024;
    constexpr int64_t kPARTS = 1024;
    Facts facts;
    facts.label = "non_zero";
    facts.op = {"non_zero_plugin", "1", "sample"};
    facts.attributesFor = [](int32_t) { return std::vector<std::vector<int32_t>>{{}}; };
    facts.outputs = 2;
    constexpr int32_t kI32 = 3;
    constexpr int32_t kI64 = 8;
    facts.offered = {{{0, kI32, kI64}, {0, 0, 0}}, {{1, kI32, kI64}, {0, 0, 0}}};
    facts.shape = {10, 3, 32, 32};
    facts.shapes = [](Given const& node) {
        return std::vector<Shape>{{sizeIn(1), static_cast<int64_t>(node.inputs[0].size())}, {}};
    };
    facts.sizes = [](Given const& node) {
        int64_t const count = elementsOf(node.inputs[0]);
        return std::vector<SizeBound>{{1, count / 2, count}};
    };
    facts.workspace = [](Combination const&, Given const& most) {
        int64_t const count = std::max<int64_t>(elementsOf(most.inputs[0]), 1);
        int64_t const part = (count + kPARTS * kTILE - 1) / (kPARTS * kTILE) * kTILE;
        auto const bytes = static_cast<uint64_t>((count + part - 1) / part * 4);
        return (bytes + kALIGNMENT - 1) / kALIGNMENT * kALIGNMENT;
    };
    facts.coreFault = cubinderCoreFault;
    facts.alike = {{facts.attributes(), facts.attributes()}};
    return facts;
}

// The handwritten plugin of `tests/reference-plugin`, float32 only.
Facts reference()
{
    Facts facts = circPad();
    facts.label = "reference";
    facts.op = {"CircPadReference", "1", "reference"};
    facts.half = false;
    facts.aot = false;
    facts.hasMetadata = false;
    facts.isTimed = false;
    facts.coreFault = [](Identity const& core) {
        return core == Identity{"CircPadReference", "1", "reference"} ? "" : "the creator's own names";
    };
    return facts;
}

}

std::string Combination::text() const
{
    std::string text;
    for (size_t i = 0; i < types.size(); ++i)
    {
        text += (i == 0 ? "" : ", ") + std::to_string(types[i]) + " in format " + std::to_string(formats[i]);
    }
    return text;
}

Fields Facts::attributesOf(std::vector<int32_t> const& value) const
{
    Fields fields;
    if (!attribute.empty())
    {
        fields.push_back(ints(attribute, value));
    }
    fields.insert(fields.end(), further.begin(), further.end());
    return fields;
}

std::vector<Combination> Facts::combinations() const
{
    if (!offered.empty())
    {
        return offered;
    }
    std::vector<Combination> all;
    auto const count = static_cast<size_t>(inputs + outputs);
    for (int32_t type : {0, 1})
    {
        if (takes(type))
        {
            all.push_back({std::vector<int32_t>(count, type), std::vector<int32_t>(count, 0)});
        }
    }
    return all;
}

Given Facts::given() const
{
    return cases.empty() ? Given{std::vector<Shape>(static_cast<size_t>(inputs), shape), attributeValue, {}} : cases[0];
}

std::vector<Given> Facts::nodes() const
{
    if (!cases.empty())
    {
        return cases;
    }
    std::vector<Given> all;
    for (int32_t rank = leastRank; rank <= nvinfer1::Dims::MAX_DIMS; ++rank)
    {
        Shape x;
        for (int32_t i = 0; i < rank; ++i)
        {
            x.push_back(3 + 2 * i);
        }
        for (auto const& value : attributesFor(rank))
        {
            all.push_back({std::vector<Shape>(static_cast<size_t>(inputs), x), value, {}});
        }
    }
    return all;
}

std::vector<Shape> Facts::outputShapes(Given const& node) const
{
    return shapes ? shapes(node) : std::vector<Shape>{output(node.inputs[0], node.attribute)};
}

std::vector<Facts> const& knownCases()
{
    static std::vector<Facts> const cases = [] {
        std::vector<Facts> all{circPad(), elemwiseAdd(), elemwiseAddInPlace(), nonZero(), reference()};
        for (Facts const& facts : generalCases())
        {
            all.push_back(facts);
        }
        return all;
    }();
    return cases;
}

}
