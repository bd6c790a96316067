// Copyright of the Cubinder authors; Apache-2.0.
#include "expressions.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace oracle
{

using nvinfer1::DimensionOperation;
using nvinfer1::IDimensionExpr;

class Expression final : public IDimensionExpr, private nvinfer1::apiv::VDimensionExpr
{
public:
    enum class Kind
    {
        kCONSTANT,
        kSYMBOL,
        kSIZE_TENSOR,
        kOPERATION
    };

    Kind kind;
    int64_t value{0};
    DimensionOperation operation{};
    Expression const* first{nullptr};
    Expression const* second{nullptr};

    Expression(Kind kind_, int64_t value_)
        : kind(kind_)
        , value(value_)
    {
        mImpl = this;
    }
    ~Expression() noexcept override = default;

    bool isSize() const
    {
        return kind == Kind::kSIZE_TENSOR;
    }

private:
    bool isConstant() const override
    {
        return kind == Kind::kCONSTANT;
    }
    // TensorRT returns this for non-constants.
    int64_t getConstantValue() const override
    {
        return isConstant() ? value : std::numeric_limits<int64_t>::min();
    }
    bool isSizeTensor() const override
    {
        return isSize();
    }
};

namespace
{

int64_t floorDivide(int64_t a, int64_t b)
{
    int64_t const quotient = a / b;
    return (a % b != 0 && ((a < 0) != (b < 0))) ? quotient - 1 : quotient;
}

int64_t apply(DimensionOperation operation, int64_t a, int64_t b)
{
    bool const divides = operation == DimensionOperation::kFLOOR_DIV || operation == DimensionOperation::kCEIL_DIV;
    if (divides && b == 0)
    {
        throw std::runtime_error("Divide by zero");
    }
    switch (operation)
    {
    case DimensionOperation::kSUM: return a + b;
    case DimensionOperation::kPROD: return a * b;
    case DimensionOperation::kMAX: return std::max(a, b);
    case DimensionOperation::kMIN: return std::min(a, b);
    case DimensionOperation::kSUB: return a - b;
    case DimensionOperation::kEQUAL: return a == b ? 1 : 0;
    case DimensionOperation::kLESS: return a < b ? 1 : 0;
    case DimensionOperation::kFLOOR_DIV: return floorDivide(a, b);
    case DimensionOperation::kCEIL_DIV: return -floorDivide(-a, b);
    }
    throw std::runtime_error("unknown dimension operation " + std::to_string(static_cast<int32_t>(operation)));
}

int64_t evaluated(Expression const& expression, std::vector<int64_t> const& values)
{
    switch (expression.kind)
    {
    case Expression::Kind::kCONSTANT: return expression.value;
    case Expression::Kind::kSYMBOL: return values.at(static_cast<size_t>(expression.value));
    case Expression::Kind::kSIZE_TENSOR: return sizeIn(static_cast<int32_t>(expression.value));
    case Expression::Kind::kOPERATION: break;
    }
    return apply(expression.operation, evaluated(*expression.first, values), evaluated(*expression.second, values));
}

}

Expressions::Expressions(int32_t outputs)
    : mOutputs(outputs)
{
    mImpl = this;
}

Expressions::~Expressions() noexcept = default;

IDimensionExpr const* Expressions::keep(std::unique_ptr<Expression> expression)
{
    if (mFailing)
    {
        return nullptr;
    }
    mKept.push_back(std::move(expression));
    mOwned.insert(mKept.back().get());
    return mKept.back().get();
}

Expression const* Expressions::own(IDimensionExpr const* expression)
{
    if (owns(expression))
    {
        return static_cast<Expression const*>(expression);
    }
    mFaults.push_back(expression == nullptr ? "a null operand" : "a foreign operand");
    return nullptr;
}

bool Expressions::owns(IDimensionExpr const* expression) const
{
    return mOwned.count(expression) != 0;
}

IDimensionExpr const* Expressions::symbol(int32_t index)
{
    return keep(std::make_unique<Expression>(Expression::Kind::kSYMBOL, index));
}

IDimensionExpr const* Expressions::constant(int64_t value)
{
    return keep(std::make_unique<Expression>(Expression::Kind::kCONSTANT, value));
}

IDimensionExpr const* Expressions::operation(
    DimensionOperation operation, IDimensionExpr const& first, IDimensionExpr const& second)
{
    Expression const* a = own(&first);
    Expression const* b = own(&second);
    if (a == nullptr || b == nullptr)
    {
        return nullptr;
    }
    if (a->isSize() || b->isSize())
    {
        mFaults.push_back("arithmetic on a size");
    }
    if (a->kind == Expression::Kind::kCONSTANT && b->kind == Expression::Kind::kCONSTANT)
    {
        return constant(apply(operation, a->value, b->value));
    }
    auto made = std::make_unique<Expression>(Expression::Kind::kOPERATION, 0);
    made->operation = operation;
    made->first = a;
    made->second = b;
    return keep(std::move(made));
}

IDimensionExpr const* Expressions::declareSizeTensor(
    int32_t output, IDimensionExpr const& opt, IDimensionExpr const& upper)
{
    std::string const which = "output " + show(output);
    if (output < 0 || output >= mOutputs)
    {
        mFaults.push_back(which + ", which is not one,");
    }
    for (Declared const& before : mSizes)
    {
        if (before.output == output)
        {
            mFaults.push_back(which + " declared twice as a size");
        }
    }
    Declared const declared{output, own(&opt), own(&upper)};
    if (declared.opt == nullptr || declared.upper == nullptr)
    {
        return nullptr;
    }
    if (declared.opt->isSize() || declared.upper->isSize())
    {
        mFaults.push_back("a size as the bound of " + which);
    }
    mSizes.push_back(declared);
    return keep(std::make_unique<Expression>(Expression::Kind::kSIZE_TENSOR, output));
}

std::vector<nvinfer1::DimsExprs> Expressions::constants(std::vector<Shape> const& shapes)
{
    std::vector<nvinfer1::DimsExprs> all;
    for (Shape const& shape : shapes)
    {
        nvinfer1::DimsExprs dims{};
        dims.nbDims = static_cast<int32_t>(shape.size());
        for (size_t i = 0; i < shape.size(); ++i)
        {
            dims.d[i] = constant(shape[i]);
        }
        all.push_back(dims);
    }
    return all;
}

std::vector<Shape> Expressions::evaluate(
    Probe& probe, std::vector<nvinfer1::DimsExprs> const& outputs, std::vector<int64_t> const& values) const
{
    std::vector<Shape> shapes;
    for (nvinfer1::DimsExprs const& output : outputs)
    {
        bool const isRank = output.nbDims >= 0 && output.nbDims <= nvinfer1::Dims::MAX_DIMS;
        probe.need(isRank, "rank " + show(output.nbDims), "0 to 8");
        Shape shape;
        for (int32_t i = 0; i < output.nbDims; ++i)
        {
            shape.push_back(evaluate(output.d[i], values));
        }
        shapes.push_back(shape);
    }
    return shapes;
}

std::vector<SizeBound> Expressions::sizes(std::vector<int64_t> const& values) const
{
    std::vector<SizeBound> all;
    for (Declared const& declared : mSizes)
    {
        all.push_back({declared.output, evaluated(*declared.opt, values), evaluated(*declared.upper, values)});
    }
    return all;
}

int64_t Expressions::evaluate(IDimensionExpr const* expression, std::vector<int64_t> const& values) const
{
    if (!owns(expression))
    {
        throw std::runtime_error(expression == nullptr ? "null instead of an expression" : "a foreign expression");
    }
    return evaluated(*static_cast<Expression const*>(expression), values);
}

}
