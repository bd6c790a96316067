// Copyright of the Cubinder authors; Apache-2.0.
//
// Output shapes compared with C++ formulas.
#include "subject.hpp"

#include <stdexcept>

namespace oracle
{

using nvinfer1::DimsExprs;

namespace
{

enum class Known
{
    kALL,
    kSOME,
    kNONE
};

// Keeps products of eight extents within 64 bits.
constexpr int64_t kFAR = 20;

struct Asked
{
    int32_t code{-1};
    std::vector<DimsExprs> outputs;
};

// Each unknown extent or shape input value is a symbol.
struct Question
{
    std::vector<DimsExprs> inputs;
    std::vector<DimsExprs> values;
    std::vector<int64_t> usual;
    std::vector<int64_t> far;
    Given farGiven;
};

DimsExprs described(Expressions& expressions, Question& question, Shape const& shape, Shape& far, Known known, int64_t factor)
{
    DimsExprs dims{};
    dims.nbDims = static_cast<int32_t>(shape.size());
    for (size_t i = 0; i < shape.size(); ++i)
    {
        if (known == Known::kALL || (known == Known::kSOME && i % 2 == 1))
        {
            dims.d[i] = expressions.IExprBuilder::constant(shape[i]);
            continue;
        }
        dims.d[i] = expressions.symbol(static_cast<int32_t>(question.usual.size()));
        far[i] *= factor;
        question.usual.push_back(shape[i]);
        question.far.push_back(far[i]);
    }
    return dims;
}

Question question(Expressions& expressions, Given const& given, Known known)
{
    Question asked;
    asked.farGiven = given;
    for (size_t i = 0; i < given.inputs.size(); ++i)
    {
        asked.inputs.push_back(described(expressions, asked, given.inputs[i], asked.farGiven.inputs[i], known, kFAR));
    }
    for (size_t i = 0; i < given.values.size(); ++i)
    {
        asked.values.push_back(described(expressions, asked, given.values[i], asked.farGiven.values[i], known, 1));
    }
    return asked;
}

Asked ask(Subject const& subject, Probe& probe, nvinfer1::IPluginV3& plugin, Expressions& expressions, Question const& question)
{
    Asked asked;
    asked.outputs.resize(static_cast<size_t>(subject.facts.outputs));
    asked.code = buildOf(probe, plugin).getOutputShapes(question.inputs.data(), subject.facts.inputs,
        question.values.empty() ? nullptr : question.values.data(), subject.facts.shapeInputs, asked.outputs.data(),
        subject.facts.outputs, expressions);
    return asked;
}

std::string text(std::vector<Shape> const& shapes)
{
    std::string text;
    for (Shape const& shape : shapes)
    {
        text += (text.empty() ? "" : ", ") + show(shape);
    }
    return text;
}

void expectSizes(Probe& probe, Expressions const& expressions, std::vector<SizeBound> const& expected, std::vector<int64_t> const& values)
{
    std::vector<SizeBound> const found = expressions.sizes(values);
    probe.equal("sizes declared", static_cast<uint64_t>(found.size()), static_cast<uint64_t>(expected.size()));
    for (SizeBound const& bound : expected)
    {
        for (SizeBound const& declared : found)
        {
            if (declared.output == bound.output)
            {
                probe.equal("optimum of output " + show(bound.output), declared.opt, bound.opt);
                probe.equal("most of output " + show(bound.output), declared.upper, bound.upper);
            }
        }
    }
}

void compare(Subject const& subject, Probe& probe, Given const& given, Known known)
{
    Facts const& facts = subject.facts;
    Owned plugin = subject.create(probe, facts.attributesOf(given.attribute));
    // No state may remain.
    for (int32_t round = 0; round < 2; ++round)
    {
        Expressions expressions(facts.outputs);
        Question const asking = question(expressions, given, known);
        Asked const asked = ask(subject, probe, *plugin, expressions, asking);
        if (asked.code != 0)
        {
            std::string const error = firstError(subject.logger.take());
            probe.need(false, "getOutputShapes " + show(asked.code) + " " + show(error), "0");
        }
        for (bool const isFar : {false, true})
        {
            std::vector<int64_t> const& values = isFar ? asking.far : asking.usual;
            Given const& node = isFar ? asking.farGiven : given;
            std::vector<Shape> const expected = facts.outputShapes(node);
            std::vector<Shape> const found = expressions.evaluate(probe, asked.outputs, values);
            probe.equal("shapes", text(found), text(expected));
            expectSizes(probe, expressions, facts.sizes ? facts.sizes(node) : std::vector<SizeBound>{}, values);
            for (size_t i = 0; i < expected.size() && i < found.size(); ++i)
            {
                for (size_t d = 0; d < expected[i].size() && d < found[i].size(); ++d)
                {
                    auto const* dimension = asked.outputs[i].d[d];
                    probe.equal("size tensor", dimension->isSizeTensor(), isSize(expected[i][d]));
                    probe.that(known != Known::kALL || dimension->isConstant() != isSize(expected[i][d]), "an expression of constants",
                        "a constant");
                }
            }
        }
        for (std::string const& fault : expressions.faults())
        {
            probe.that(false, fault + " passed to the expression builder", "its own expressions, each size once");
        }
        plugin = cloneOf(probe, *plugin);
    }
}

void expectSymbols(Subject const& subject, Probe& probe, Given const& given)
{
    Facts const& facts = subject.facts;
    Owned plugin = subject.create(probe, facts.attributesOf(given.attribute));
    Expressions expressions(facts.outputs);
    Question const asking = question(expressions, given, Known::kNONE);
    Asked const asked = ask(subject, probe, *plugin, expressions, asking);
    std::vector<Shape> const usual = facts.outputShapes(given);
    std::vector<Shape> const far = facts.outputShapes(asking.farGiven);
    for (size_t i = 0; i < usual.size(); ++i)
    {
        for (size_t d = 0; d < usual[i].size(); ++d)
        {
            bool const depends = usual[i][d] != far[i][d];
            probe.that(!depends || !asked.outputs[i].d[d]->isConstant(), "a constant", "an expression");
        }
    }
}

void checkRefusals(Subject const& subject)
{
    Facts const& facts = subject.facts;
    subject.check("getOutputShapes rejects other ranks, other counts and null", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        auto& build = buildOf(probe, *plugin);
        Expressions expressions(facts.outputs);
        Question const good = question(expressions, facts.given(), Known::kALL);
        std::vector<DimsExprs> inputs = good.inputs;
        inputs.resize(inputs.size() + 8, inputs[0]);
        std::vector<DimsExprs> values = good.values;
        values.resize(values.size() + 8, inputs[0]);
        std::vector<DimsExprs> outputs(static_cast<size_t>(facts.outputs) + 8);
        auto refused = [&](std::string const& what, DimsExprs const* in, int32_t count, DimsExprs const* held, int32_t holders,
                           DimsExprs* out, int32_t results) {
            probe.at(what);
            probe.that(build.getOutputShapes(in, count, held, holders, out, results, expressions) != 0, "0", "a failure");
            subject.expectError(probe);
        };
        for (int32_t count : {0, facts.inputs - 1, facts.inputs + 1, -1})
        {
            refused(show(count) + " inputs", inputs.data(), count, values.data(), facts.shapeInputs, outputs.data(), facts.outputs);
        }
        for (int32_t count : {0, facts.outputs - 1, facts.outputs + 1, -1})
        {
            refused(show(count) + " outputs", inputs.data(), facts.inputs, values.data(), facts.shapeInputs, outputs.data(), count);
        }
        for (int32_t rank : {facts.leastRank - 1, 9, -1})
        {
            std::vector<DimsExprs> strange = inputs;
            strange[0].nbDims = rank;
            refused("rank " + show(rank), strange.data(), facts.inputs, values.data(), facts.shapeInputs, outputs.data(), facts.outputs);
        }
        refused("null inputs", nullptr, facts.inputs, values.data(), facts.shapeInputs, outputs.data(), facts.outputs);
        refused("null outputs", inputs.data(), facts.inputs, values.data(), facts.shapeInputs, nullptr, facts.outputs);
        if (facts.shapeInputs == 0)
        {
            return;
        }
        for (int32_t count : {0, facts.shapeInputs - 1, facts.shapeInputs + 1, -1})
        {
            refused(show(count) + " shape inputs", inputs.data(), facts.inputs, values.data(), count, outputs.data(), facts.outputs);
        }
        refused("null shape inputs", inputs.data(), facts.inputs, nullptr, facts.shapeInputs, outputs.data(), facts.outputs);
    });
    subject.check("a builder that returns null is an error", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        Expressions expressions(facts.outputs);
        Question const asking = question(expressions, facts.given(), Known::kNONE);
        expressions.fail(true);
        Asked const asked = ask(subject, probe, *plugin, expressions, asking);
        if (asked.code != 0)
        {
            subject.expectError(probe);
            return;
        }
        for (DimsExprs const& output : asked.outputs)
        {
            for (int32_t i = 0; i < output.nbDims; ++i)
            {
                probe.that(expressions.owns(output.d[i]), "a null dimension", "a failure");
            }
        }
    });
}

}

void checkShapes(Subject const& subject)
{
    struct
    {
        char const* label;
        Known known;
    } const kinds[] = {{"static", Known::kALL}, {"symbolic", Known::kNONE}, {"partly symbolic", Known::kSOME}};
    for (auto const& kind : kinds)
    {
        subject.check(std::string("output shapes, ") + kind.label, [&](Probe& probe) {
            for (Given const& given : subject.facts.nodes())
            {
                probe.at("inputs " + text(given.inputs) + ", " + subject.facts.attribute + " of length "
                    + show(static_cast<int32_t>(given.attribute.size())));
                compare(subject, probe, given, kind.known);
                if (kind.known == Known::kNONE)
                {
                    expectSymbols(subject, probe, given);
                }
            }
        });
    }
    checkRefusals(subject);
}

}
