// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: an expression builder as TensorRT has one: constants fold, everything else stays symbolic and can be evaluated; size tensors
// are declared, each once.
// Never: forgives. A foreign or null operand, arithmetic on a size, or a size declared wrongly is recorded as a fault of the plugin.
#pragma once

#include "cases.hpp"

#include <NvInferRuntime.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace oracle
{

class Expression;

class Expressions final : public nvinfer1::IExprBuilder, private nvinfer1::apiv::VExprBuilder
{
public:
    // For a plugin of so many outputs.
    explicit Expressions(int32_t outputs);
    ~Expressions() noexcept override;

    // A dimension whose value is known only when the engine runs; `index` numbers the values given to `evaluate`.
    nvinfer1::IDimensionExpr const* symbol(int32_t index);

    // The shapes, each dimension a constant.
    std::vector<nvinfer1::DimsExprs> constants(std::vector<Shape> const& shapes);

    // From now on every request is answered with null, as TensorRT does where it runs out of memory.
    void fail(bool failing)
    {
        mFailing = failing;
    }

    // The value of `expression` under `values`. Throws `std::runtime_error` for a pointer that this builder never made.
    int64_t evaluate(nvinfer1::IDimensionExpr const* expression, std::vector<int64_t> const& values) const;

    // What `outputs` come to: `sizeIn(output)` for a size. Ends the check where a rank is impossible.
    std::vector<Shape> evaluate(
        Probe& probe, std::vector<nvinfer1::DimsExprs> const& outputs, std::vector<int64_t> const& values) const;

    // The sizes that were declared, in that order, under `values`.
    std::vector<SizeBound> sizes(std::vector<int64_t> const& values) const;

    // Whether this builder made `expression`.
    bool owns(nvinfer1::IDimensionExpr const* expression) const;

    std::vector<std::string> const& faults() const
    {
        return mFaults;
    }

private:
    nvinfer1::IDimensionExpr const* constant(int64_t value) override;
    nvinfer1::IDimensionExpr const* operation(nvinfer1::DimensionOperation operation,
        nvinfer1::IDimensionExpr const& first, nvinfer1::IDimensionExpr const& second) override;
    nvinfer1::IDimensionExpr const* declareSizeTensor(
        int32_t outputIndex, nvinfer1::IDimensionExpr const& opt, nvinfer1::IDimensionExpr const& upper) override;

    nvinfer1::IDimensionExpr const* keep(std::unique_ptr<Expression> expression);
    Expression const* own(nvinfer1::IDimensionExpr const* expression);

    struct Declared
    {
        int32_t output;
        Expression const* opt;
        Expression const* upper;
    };

    int32_t mOutputs;
    std::vector<std::unique_ptr<Expression>> mKept;
    std::vector<Declared> mSizes;
    std::set<nvinfer1::IDimensionExpr const*> mOwned;
    std::vector<std::string> mFaults;
    bool mFailing{false};
};

} // namespace oracle
