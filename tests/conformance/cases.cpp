// Copyright of the Cubinder authors; Apache-2.0.
#include "cases.hpp"

#include "general_cases.hpp"

#include <algorithm>

namespace oracle
{

// `Kernel2` for an engine that carries its code in fields; `Kernel-` and 16 digits of the bundle's digest for a plan
// that carries the code library.
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
        {"a block size beyond any GPU", {ints("block_size", {1 << 20})}, true},
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

// The hand-written plugin of `tests/reference-plugin`: one creator for building and running, float32 only.
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

} // namespace

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
    Fields fields{ints(attribute, value)};
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
        std::vector<Facts> all{circPad(), elemwiseAdd(), reference()};
        for (Facts const& facts : generalCases())
        {
            all.push_back(facts);
        }
        return all;
    }();
    return cases;
}

} // namespace oracle
