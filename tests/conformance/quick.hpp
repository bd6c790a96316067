// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: TensorRT's side of quick plugins: recognizes creators and records launches.
//
// Only full TensorRT ships `impl/NvInferPythonPlugin.h`; with other headers quick creators cannot be called.
#pragma once

#include "library.hpp"

#if __has_include(<impl/NvInferPythonPlugin.h>)
#define ORACLE_HAS_QUICK 1
#include <impl/NvInferPythonPlugin.h>
#else
#define ORACLE_HAS_QUICK 0
#endif

#include <array>
#include <string>
#include <vector>

namespace oracle
{

constexpr char const* kQUICK_KIND = "PLUGIN CREATOR_V3QUICK";

bool isQuick(nvinfer1::IPluginCreatorInterface& creator);

#if ORACLE_HAS_QUICK

using QuickCreator = nvinfer1::IPluginCreatorV3Quick;

// Counts calls on both outputs.
class Calls
{
public:
    // Call `refused`, from 0, returns false; negative: none.
    explicit Calls(int32_t refused = -1)
        : mRefused(refused)
    {
    }
    bool answer(std::string const& name)
    {
        mNames.push_back(name);
        return static_cast<int32_t>(mNames.size()) - 1 != mRefused;
    }
    std::vector<std::string> const& names() const
    {
        return mNames;
    }

private:
    int32_t mRefused;
    std::vector<std::string> mNames;
};

class LaunchParams final : public nvinfer1::IKernelLaunchParams, private nvinfer1::IKernelLaunchParamsImpl
{
public:
    explicit LaunchParams(Calls& calls)
        : mCalls(&calls)
    {
        mImpl = this;
    }
    ~LaunchParams() noexcept override = default;

    std::array<nvinfer1::ISymExpr*, 7> const& all() const
    {
        return mAll;
    }

private:
    bool set(size_t index, char const* name, nvinfer1::ISymExpr* expression) noexcept
    {
        mAll[index] = expression;
        return mCalls->answer(name);
    }
    nvinfer1::ISymExpr* getGridX() noexcept override
    {
        return mAll[0];
    }
    bool setGridX(nvinfer1::ISymExpr* x) noexcept override
    {
        return set(0, "setGridX", x);
    }
    nvinfer1::ISymExpr* getGridY() noexcept override
    {
        return mAll[1];
    }
    bool setGridY(nvinfer1::ISymExpr* y) noexcept override
    {
        return set(1, "setGridY", y);
    }
    nvinfer1::ISymExpr* getGridZ() noexcept override
    {
        return mAll[2];
    }
    bool setGridZ(nvinfer1::ISymExpr* z) noexcept override
    {
        return set(2, "setGridZ", z);
    }
    nvinfer1::ISymExpr* getBlockX() noexcept override
    {
        return mAll[3];
    }
    bool setBlockX(nvinfer1::ISymExpr* x) noexcept override
    {
        return set(3, "setBlockX", x);
    }
    nvinfer1::ISymExpr* getBlockY() noexcept override
    {
        return mAll[4];
    }
    bool setBlockY(nvinfer1::ISymExpr* y) noexcept override
    {
        return set(4, "setBlockY", y);
    }
    nvinfer1::ISymExpr* getBlockZ() noexcept override
    {
        return mAll[5];
    }
    bool setBlockZ(nvinfer1::ISymExpr* z) noexcept override
    {
        return set(5, "setBlockZ", z);
    }
    nvinfer1::ISymExpr* getSharedMem() noexcept override
    {
        return mAll[6];
    }
    bool setSharedMem(nvinfer1::ISymExpr* bytes) noexcept override
    {
        return set(6, "setSharedMem", bytes);
    }

    Calls* mCalls;
    std::array<nvinfer1::ISymExpr*, 7> mAll{};
};

// Starts with another launch's stale element.
class Scalars final : public nvinfer1::ISymExprs, private nvinfer1::ISymExprsImpl
{
public:
    explicit Scalars(Calls& calls)
        : mCalls(&calls)
        , mAll(1)
    {
        mImpl = this;
    }
    ~Scalars() noexcept override = default;

    std::vector<nvinfer1::ISymExpr*> const& all() const
    {
        return mAll;
    }

private:
    nvinfer1::ISymExpr* getSymExpr(int32_t index) const noexcept override
    {
        return isIndex(index) ? mAll[static_cast<size_t>(index)] : nullptr;
    }
    bool setSymExpr(int32_t index, nvinfer1::ISymExpr* expression) noexcept override
    {
        bool const isAnswered = mCalls->answer("setSymExpr");
        if (!isIndex(index))
        {
            return false;
        }
        mAll[static_cast<size_t>(index)] = expression;
        return isAnswered;
    }
    int32_t getNbSymExprs() const noexcept override
    {
        return static_cast<int32_t>(mAll.size());
    }
    bool setNbSymExprs(int32_t count) noexcept override
    {
        bool const isAnswered = mCalls->answer("setNbSymExprs");
        if (count < 0)
        {
            return false;
        }
        mAll.assign(static_cast<size_t>(count), nullptr);
        return isAnswered;
    }
    bool isIndex(int32_t index) const
    {
        return index >= 0 && static_cast<size_t>(index) < mAll.size();
    }

    Calls* mCalls;
    std::vector<nvinfer1::ISymExpr*> mAll;
};

#endif

}
