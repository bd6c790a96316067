// Copyright of the Cubinder authors; Apache-2.0.
#include "general_cases.hpp"

#include <cstdint>

namespace oracle
{

int64_t elementsOf(Shape const& shape)
{
    int64_t count = 1;
    for (int64_t extent : shape)
    {
        count *= extent;
    }
    return count;
}

namespace
{

enum Type : int32_t
{
    kF32 = 0,
    kF16 = 1,
    kI32 = 3,
    kU8 = 5,
    kI64 = 8
};

enum Format : int32_t
{
    kLINEAR = 0,
    kHWC8 = 2,
    kHWC = 8
};

constexpr int32_t kAUTO_TACTIC = INT32_MAX;
constexpr uint64_t kSCRATCH_ALIGNMENT = 256;

uint64_t rounded(int64_t bytes)
{
    return (static_cast<uint64_t>(bytes) + kSCRATCH_ALIGNMENT - 1) / kSCRATCH_ALIGNMENT * kSCRATCH_ALIGNMENT;
}

// `level` affects the time, `seed` does not.
Facts levelled(std::string const& label)
{
    Facts facts;
    facts.label = label;
    facts.op = {label + "_plugin", "1", "test"};
    facts.attribute = "level";
    facts.attributeValue = {3};
    facts.further = {ints("seed", {0})};
    facts.attributesFor = [](int32_t) { return std::vector<std::vector<int32_t>>{{3}, {4}}; };
    facts.refusals = {
        {"no level", {ints("seed", {0})}},
        {"two levels", {ints("level", {3, 3})}},
        {"floats for level", {floats("level", {3.0F})}},
        {"a negative level", {ints("level", {-1})}},
        {"a level outside its range", {ints("level", {1001})}},
    };
    facts.coreFault = cubinderCoreFault;
    facts.alike = {{facts.attributes(), facts.attributes()}, {facts.attributes(), {ints("level", {3}), ints("seed", {9})}}};
    facts.different = {{facts.attributes(), facts.attributesOf({4})}};
    return facts;
}

// All features: y aliases x, z's shape depends on all inputs, `indices` has `count` rows. x is linear or
// channels-last; `target` is a shape input.
Facts everything()
{
    Facts facts = levelled("everything");
    facts.inputs = 2;
    facts.shapeInputs = 1;
    facts.outputs = 4;
    facts.aliases = {0, -1, -1, -1};
    for (int32_t type : {kF32, kF16})
    {
        for (int32_t format : {kLINEAR, type == kF32 ? kHWC : kHWC8})
        {
            facts.offered.push_back({{type, type, type, type, kI64, kI32}, {format, kLINEAR, format, kLINEAR, kLINEAR, kLINEAR}});
        }
    }
    facts.cases = {
        {{{2, 3, 8, 8}, {4}}, {3}, {{5, 7}}},
        {{{3, 5, 7}, {1}}, {0}, {{0, 1}}},
        {{{1, 2, 3, 4, 5, 6, 7, 8}, {9}}, {1000}, {{65536, 2}}},
    };
    facts.leastRank = 3;
    facts.shape = facts.cases[0].inputs[0];
    facts.shapes = [](Given const& node) {
        Shape const& x = node.inputs[0];
        std::vector<int64_t> const& target = node.values[0];
        return std::vector<Shape>{x, {node.inputs[1][0] + node.attribute[0], 2 * target[0], target[1]}, {},
            {sizeIn(2), static_cast<int64_t>(x.size())}};
    };
    facts.sizes = [](Given const& node) {
        int64_t const count = elementsOf(node.inputs[0]);
        return std::vector<SizeBound>{{2, count / 2, count}};
    };
    facts.workspace = [](Combination const&, Given const& most) {
        return rounded(4 * ((elementsOf(most.inputs[0]) + 3) / 4)) + rounded(8);
    };
    facts.tactics = [](Combination const& combination, Given const& node) {
        bool const isVector = combination.formats[0] == kLINEAR && node.inputs[0].back() % 4 == 0;
        return isVector ? std::vector<int32_t>{kAUTO_TACTIC, 1, 2} : std::vector<int32_t>{};
    };
    return facts;
}

Facts sequence()
{
    Facts facts = levelled("sequence");
    facts.outputs = 2;
    for (int32_t type : {kF32, kF16})
    {
        facts.offered.push_back({{type, type, kU8}, {kLINEAR, kLINEAR, kLINEAR}});
    }
    facts.cases = {{{{2, 8, 16}}, {3}, {}}, {{{7}}, {0}, {}}, {{{1, 2, 3, 44}}, {1000}, {}}};
    facts.shape = facts.cases[0].inputs[0];
    facts.shapes = [](Given const& node) { return std::vector<Shape>{node.inputs[0], {4 + node.attribute[0]}}; };
    facts.workspace = [](Combination const&, Given const& most) {
        return rounded(4 * ((elementsOf(most.inputs[0]) + 3) / 4)) + rounded(8);
    };
    facts.tactics = [](Combination const&, Given const&) { return std::vector<int32_t>{}; };
    facts.alike = {{facts.attributes(), facts.attributes()}};
    facts.different.push_back({facts.attributes(), {ints("level", {3}), ints("seed", {9})}});
    return facts;
}

Facts layouts()
{
    Facts facts = levelled("layouts");
    for (int32_t type : {kF32, kF16})
    {
        for (int32_t format : {kLINEAR, type == kF32 ? kHWC : kHWC8})
        {
            facts.offered.push_back({{type, type}, {format, format}});
        }
    }
    facts.cases = {{{{2, 3, 8, 8}}, {3}, {}}, {{{3, 5, 7}}, {0}, {}}, {{{1, 2, 3, 4, 5, 6, 7, 8}}, {1000}, {}}};
    facts.leastRank = 3;
    facts.shape = facts.cases[0].inputs[0];
    facts.shapes = [](Given const& node) { return node.inputs; };
    facts.tactics = [](Combination const& combination, Given const& node) {
        bool const isVector = combination.formats[0] == kLINEAR && node.inputs[0].back() % 4 == 0;
        return isVector ? std::vector<int32_t>{kAUTO_TACTIC, 1, 2} : std::vector<int32_t>{};
    };
    return facts;
}

}

std::vector<Facts> generalCases()
{
    return {everything(), sequence(), layouts()};
}

}
