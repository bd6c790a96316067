// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: what is known of a plugin without asking it: names, attributes, types, formats, and its answers as plain C++ formulas.
// Never: takes a fact from the library under test.
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

// The extent that is the size in output `output`, known only after a run.
constexpr int64_t sizeIn(int32_t output)
{
    return std::numeric_limits<int64_t>::min() + 1 + output;
}
constexpr bool isSize(int64_t extent)
{
    return extent < std::numeric_limits<int64_t>::min() / 2;
}

// Attributes that the plugin must refuse.
struct Refusal
{
    std::string label;
    Fields fields;
    // A rule that needs the rank can only answer when shapes or types are asked for.
    bool mayBeLate{false};
    // Whether the message has to name the attribute.
    bool namesAttribute{true};
};

// One combination of types and formats that a plugin offers, by TensorRT's numbers: inputs, then outputs, without shape inputs.
struct Combination
{
    std::vector<int32_t> types;
    std::vector<int32_t> formats;

    std::string text() const;
};

// What a node is asked with.
struct Given
{
    // Of the inputs without shape inputs.
    std::vector<Shape> inputs;
    std::vector<int32_t> attribute;
    // What the shape inputs hold.
    std::vector<std::vector<int64_t>> values;
};

// What TensorRT is told of an output that holds a size.
struct SizeBound
{
    int32_t output;
    int64_t opt;
    int64_t upper;
};

// Two lists of attributes, both good.
struct Pair
{
    Fields one;
    Fields other;
};

struct Facts
{
    // How the case is called on the command line.
    std::string label;
    Identity op;
    // Empty for a plugin without.
    std::string attribute;
    std::vector<int32_t> attributeValue;
    // Attributes beside that one, in every node.
    Fields further;
    // Attribute values that fit the rank.
    std::function<std::vector<std::vector<int32_t>>(int32_t rank)> attributesFor;
    std::vector<Refusal> refusals;
    // Without shape inputs.
    int32_t inputs{1};
    int32_t shapeInputs{0};
    int32_t outputs{1};
    int32_t leastRank{1};
    bool half{true};
    // Whether the creator declares the ONNX attribute `aot`.
    bool aot{true};
    Shape shape;
    std::function<Shape(Shape const& x, std::vector<int32_t> const& attribute)> output;
    // Why the identity is not one that this plugin may carry in an engine, or an empty text.
    std::function<std::string(Identity const&)> coreFault;

    // What a plugin of one input and one output of the same type, in rows, need not say:

    // Every combination that it offers.
    std::vector<Combination> offered;
    // What it is asked with beside `given()`; of one input and one output: shapes of every rank.
    std::vector<Given> cases;
    std::function<std::vector<Shape>(Given const&)> shapes;
    // What is declared of the outputs that hold sizes.
    std::function<std::vector<SizeBound>(Given const&)> sizes;
    // For each output the input whose memory it shares, or -1.
    std::vector<int32_t> aliases;
    // The workspace in bytes, for inputs up to those; none: 0.
    std::function<uint64_t(Combination const&, Given const& most)> workspace;
    // The tactics, in order, for a static node; none: not known.
    std::function<std::vector<int32_t>(Combination const&, Given const&)> tactics;
    // Whether nodes have an id for TensorRT's timing cache.
    bool isTimed{true};
    // Nodes whose ids are the same, and nodes whose ids are not.
    std::vector<Pair> alike;
    std::vector<Pair> different;
    // Whether the metadata name the op.
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
    // The node of most checks.
    Given given() const;
    // Every node whose shapes are asked for.
    std::vector<Given> nodes() const;
    std::vector<Shape> outputShapes(Given const& node) const;
};

// Every plugin whose semantics the oracle knows.
std::vector<Facts> const& knownCases();

} // namespace oracle
