// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: expected facts about plugins, as C++ formulas. Never: takes a fact from the library under test.
#pragma once

#include "fields.hpp"
#include "library.hpp"

#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace oracle
{

using Shape = std::vector<int64_t>;

// Equal to the size in `output`, known after a run.
constexpr int64_t sizeIn(int32_t output)
{
    return std::numeric_limits<int64_t>::min() + 1 + output;
}
constexpr bool isSize(int64_t extent)
{
    return extent < std::numeric_limits<int64_t>::min() / 2;
}

struct Refusal
{
    std::string label;
    Fields fields;
    // A rule about the rank may only fail at shape or type queries.
    bool mayBeLate{false};
    bool namesAttribute{true};
};

// TensorRT's numbers: inputs, then outputs, without shape inputs.
struct Combination
{
    std::vector<int32_t> types;
    std::vector<int32_t> formats;

    std::string text() const;
};

struct Given
{
    // Shapes of inputs, without shape inputs.
    std::vector<Shape> inputs;
    std::vector<int32_t> attribute;
    // Shape inputs' values.
    std::vector<std::vector<int64_t>> values;
};

struct SizeBound
{
    int32_t output;
    int64_t opt;
    int64_t upper;
};

struct Pair
{
    Fields one;
    Fields other;
};

struct Facts
{
    std::string label;
    Identity op;
    // Empty if it has no attributes.
    std::string attribute;
    std::vector<int32_t> attributeValue;
    // Further attributes, in every node.
    Fields further;
    std::function<std::vector<std::vector<int32_t>>(int32_t rank)> attributesFor;
    std::vector<Refusal> refusals;
    // Number of inputs, without shape inputs.
    int32_t inputs{1};
    int32_t shapeInputs{0};
    int32_t outputs{1};
    int32_t leastRank{1};
    bool half{true};
    // Whether the creator declares `aot`.
    bool aot{true};
    Shape shape;
    std::function<Shape(Shape const& x, std::vector<int32_t> const& attribute)> output;
    // Why the plugin may not use this core identity, or empty.
    std::function<std::string(Identity const&)> coreFault;

    // Defaults: one input and one output of the same type, linear.

    std::vector<Combination> offered;
    // Beside `given()`; by default shapes of every rank.
    std::vector<Given> cases;
    std::function<std::vector<Shape>(Given const&)> shapes;
    std::function<std::vector<SizeBound>(Given const&)> sizes;
    // Each output's aliased input, or -1.
    std::vector<int32_t> aliases;
    // Bytes for inputs up to those; unset: 0.
    std::function<uint64_t(Combination const&, Given const& most)> workspace;
    // The offered tactics of a static node; unknown if unset.
    std::function<std::vector<int32_t>(Combination const&, Given const&)> tactics;
    bool isTimed{true};
    std::vector<Pair> alike;
    std::vector<Pair> different;
    // Whether metadata name the op.
    bool hasMetadata{true};

    Fields attributes() const
    {
        return attributesOf(attributeValue);
    }
    Fields attributesOf(std::vector<int32_t> const& value) const;
    bool takes(int32_t dataType) const
    {
        return dataType == 0 || (half && dataType == 1);
    }
    std::vector<Combination> combinations() const;
    Given given() const;
    std::vector<Given> nodes() const;
    std::vector<Shape> outputShapes(Given const& node) const;
};

std::vector<Facts> const& knownCases();

}
