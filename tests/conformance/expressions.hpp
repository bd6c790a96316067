// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: an expression builder as TensorRT has one: constants fold, everything else stays symbolic and can be evaluated.
// Never: forgives. A foreign or null operand is recorded as a fault of the plugin.
#pragma once

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
    Expressions();
    ~Expressions() noexcept override;

    // A dimension whose value is known only when the engine runs; `index` numbers the values given to `evaluate`.
    nvinfer1::IDimensionExpr const* symbol(int32_t index);

    // From now on every request is answered with null, as TensorRT does where it runs out of memory.
    void fail(bool failing)
    {
        mFailing = failing;
    }

    // The value of `expression` under `values`. Throws `std::runtime_error` for a pointer that this builder never made.
    int64_t evaluate(nvinfer1::IDimensionExpr const* expression, std::vector<int64_t> const& values) const;

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

    std::vector<std::unique_ptr<Expression>> mKept;
    std::set<nvinfer1::IDimensionExpr const*> mOwned;
    std::vector<std::string> mFaults;
    bool mFailing{false};
};

} // namespace oracle
