// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: what is known of a plugin without asking it: names, attributes, types, and its shapes as plain C++ formulas.
// Never: takes a fact from the library under test.
#pragma once

#include "fields.hpp"
#include "library.hpp"

#include <functional>
#include <string>
#include <vector>

namespace oracle
{

using Shape = std::vector<int64_t>;

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

struct Facts
{
    // How the case is called on the command line.
    std::string label;
    Identity op;
    std::string attribute;
    std::vector<int32_t> attributeValue;
    // Attribute values that fit the rank.
    std::function<std::vector<std::vector<int32_t>>(int32_t rank)> attributesFor;
    std::vector<Refusal> refusals;
    int32_t inputs{1};
    bool half{true};
    // Whether the creator declares the ONNX attribute `aot`.
    bool aot{true};
    Shape shape;
    std::function<Shape(Shape const& x, std::vector<int32_t> const& attribute)> output;
    // Why the identity is not one that this plugin may carry in an engine, or an empty text.
    std::function<std::string(Identity const&)> coreFault;

    Fields attributes() const
    {
        return {ints(attribute, attributeValue)};
    }
    bool takes(int32_t dataType) const
    {
        return dataType == 0 || (half && dataType == 1);
    }
};

// Every plugin whose semantics the oracle knows.
std::vector<Facts> const& knownCases();

} // namespace oracle
