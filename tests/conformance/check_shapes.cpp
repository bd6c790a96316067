// Copyright of the Cubinder authors; Apache-2.0.
//
// Output shapes against plain C++ formulas: static, symbolic, mixed, and where the builder fails.
#include "subject.hpp"

#include <stdexcept>

namespace oracle
{

using nvinfer1::DimsExprs;

namespace
{

constexpr int32_t kMOST_DIMENSIONS = 8;

Shape shapeOf(int32_t rank)
{
    Shape shape;
    for (int32_t i = 0; i < rank; ++i)
    {
        shape.push_back(3 + 2 * i);
    }
    return shape;
}

struct Asked
{
    int32_t code{-1};
    DimsExprs output{};
};

Asked ask(Subject const& subject, Probe& probe, nvinfer1::IPluginV3& plugin, Expressions& expressions,
    DimsExprs const& input)
{
    std::vector<DimsExprs> const inputs(static_cast<size_t>(subject.facts.inputs), input);
    Asked asked;
    asked.code = buildOf(probe, plugin).getOutputShapes(
        inputs.data(), subject.facts.inputs, nullptr, 0, &asked.output, 1, expressions);
    return asked;
}

// Every second dimension symbolic, or all, or none.
DimsExprs described(Expressions& expressions, Shape const& shape, int32_t symbolicEvery)
{
    DimsExprs dims{};
    dims.nbDims = static_cast<int32_t>(shape.size());
    for (int32_t i = 0; i < dims.nbDims; ++i)
    {
        bool const isSymbolic = symbolicEvery != 0 && i % symbolicEvery == 0;
        dims.d[i] = isSymbolic ? expressions.symbol(i)
                               : expressions.IExprBuilder::constant(shape[static_cast<size_t>(i)]);
    }
    return dims;
}

void compare(Subject const& subject, Probe& probe, int32_t rank, std::vector<int32_t> const& attribute, int32_t every)
{
    Owned plugin = subject.create(probe, {ints(subject.facts.attribute, attribute)});
    Expressions expressions;
    Shape const shape = shapeOf(rank);
    DimsExprs const input = described(expressions, shape, every);
    // Twice: the builder asks again for a clone, and nothing may be left over from the first time.
    for (int32_t round = 0; round < 2; ++round)
    {
        Asked const asked = ask(subject, probe, *plugin, expressions, input);
        if (asked.code != 0)
        {
            std::string const error = firstError(subject.logger.take());
            probe.need(false, "getOutputShapes " + show(asked.code) + " " + show(error), "0");
        }
        probe.need(asked.output.nbDims == rank, "rank " + show(asked.output.nbDims), show(rank));
        // A symbol may be anything: two assignments, the second far from the first.
        for (int64_t factor : {1, 1000})
        {
            Shape x = shape;
            Shape y;
            for (int32_t i = 0; i < rank; ++i)
            {
                bool const isSymbolic = every != 0 && i % every == 0;
                x[static_cast<size_t>(i)] *= isSymbolic ? factor : 1;
            }
            for (int32_t i = 0; i < rank; ++i)
            {
                y.push_back(expressions.evaluate(asked.output.d[i], x));
            }
            probe.equal("shape", y, subject.facts.output(x, attribute));
        }
        for (int32_t i = 0; i < rank; ++i)
        {
            bool const isSymbolic = every != 0 && i % every == 0;
            probe.equal("constant dimension", asked.output.d[i]->isConstant(), !isSymbolic);
        }
    }
    for (std::string const& fault : expressions.faults())
    {
        probe.that(false, fault + " given to the expression builder", "its own expressions");
    }
}

} // namespace

void checkShapes(Subject const& subject)
{
    Facts const& facts = subject.facts;
    struct
    {
        char const* label;
        int32_t every;
    } const kinds[] = {{"static", 0}, {"symbolic", 1}, {"partly symbolic", 2}};
    for (auto const& kind : kinds)
    {
        subject.check(std::string("output shapes, ") + kind.label, [&](Probe& probe) {
            for (int32_t rank = 1; rank <= kMOST_DIMENSIONS; ++rank)
            {
                for (auto const& attribute : facts.attributesFor(rank))
                {
                    probe.at("rank " + show(rank) + ", " + facts.attribute + " of length "
                        + show(static_cast<int32_t>(attribute.size())));
                    compare(subject, probe, rank, attribute, kind.every);
                }
            }
        });
    }
    subject.check("getOutputShapes refuses rank 0, other counts and null", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        auto& build = buildOf(probe, *plugin);
        Expressions expressions;
        DimsExprs const good = described(expressions, facts.shape, 0);
        std::vector<DimsExprs> const inputs(8, good);
        std::vector<DimsExprs> outputs(8);
        for (int32_t count : {0, facts.inputs - 1, facts.inputs + 1, -1})
        {
            probe.at(show(count) + " inputs");
            probe.that(build.getOutputShapes(inputs.data(), count, nullptr, 0, outputs.data(), 1, expressions) != 0, "0",
                "a failure");
            subject.expectError(probe);
        }
        for (int32_t count : {0, 2, -1})
        {
            probe.at(show(count) + " outputs");
            int32_t const code
                = build.getOutputShapes(inputs.data(), facts.inputs, nullptr, 0, outputs.data(), count, expressions);
            probe.that(code != 0, "0", "a failure");
            subject.expectError(probe);
        }
        for (int32_t rank : {0, 9, -1})
        {
            probe.at("rank " + show(rank));
            std::vector<DimsExprs> strange = inputs;
            for (DimsExprs& dims : strange)
            {
                dims.nbDims = rank;
            }
            int32_t const code
                = build.getOutputShapes(strange.data(), facts.inputs, nullptr, 0, outputs.data(), 1, expressions);
            probe.that(code != 0, "0", "a failure");
            subject.expectError(probe);
        }
        probe.at("null inputs");
        probe.that(
            build.getOutputShapes(nullptr, facts.inputs, nullptr, 0, outputs.data(), 1, expressions) != 0, "0", "a failure");
        subject.expectError(probe);
        probe.at("null outputs");
        probe.that(build.getOutputShapes(inputs.data(), facts.inputs, nullptr, 0, nullptr, 1, expressions) != 0, "0",
            "a failure");
        subject.expectError(probe);
    });
    subject.check("a builder that answers null is an error", [&](Probe& probe) {
        Owned plugin = subject.create(probe);
        Expressions expressions;
        DimsExprs const input = described(expressions, facts.shape, 1);
        expressions.fail(true);
        Asked const asked = ask(subject, probe, *plugin, expressions, input);
        if (asked.code != 0)
        {
            subject.expectError(probe);
            return;
        }
        // A plugin that needs no arithmetic hands its inputs on.
        for (int32_t i = 0; i < asked.output.nbDims; ++i)
        {
            probe.that(expressions.owns(asked.output.d[i]), "a null dimension", "a failure");
        }
    });
}

} // namespace oracle
