// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: an expression builder like TensorRT's: folds constants. Records foreign or null operands, arithmetic on sizes
// and invalid sizes as plugin faults.
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
    explicit Expressions(int32_t outputs);
    ~Expressions() noexcept override;

    // `index` selects the value in `evaluate`.
    nvinfer1::IDimensionExpr const* symbol(int32_t index);

    std::vector<nvinfer1::DimsExprs> constants(std::vector<Shape> const& shapes);

    // Later requests return null, as if out of memory.
    void fail(bool failing)
    {
        mFailing = failing;
    }

    // Throws `std::runtime_error` for foreign pointers.
    int64_t evaluate(nvinfer1::IDimensionExpr const* expression, std::vector<int64_t> const& values) const;

    // `sizeIn(output)` for a size. Ends the check on an invalid rank.
    std::vector<Shape> evaluate(
        Probe& probe, std::vector<nvinfer1::DimsExprs> const& outputs, std::vector<int64_t> const& values) const;

    std::vector<SizeBound> sizes(std::vector<int64_t> const& values) const;

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

}
