// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: the part of TensorRT's library that plugin libraries see. Never: looks into a plugin.
//
// The headers' base classes determine vtables: `ILogger::log` is slot 0 up to TensorRT-RTX 1.4 and TensorRT 10, then
// slot 4.
#pragma once

#include <NvInferRuntime.h>

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace oracle
{

struct Line
{
    int32_t severity;
    std::string text;

    bool isError() const
    {
        return severity <= static_cast<int32_t>(nvinfer1::ILogger::Severity::kERROR);
    }
};

class Logger final : public nvinfer1::ILogger
{
public:
    void log(Severity severity, nvinfer1::AsciiChar const* text) noexcept override;

    std::vector<Line> take();

    // Invalid severity, null or empty text.
    std::vector<std::string> faults();

private:
    std::mutex mMutex;
    std::vector<Line> mLines;
    std::vector<std::string> mFaults;
};

class Finder final : public nvinfer1::ILoggerFinder
{
public:
    explicit Finder(Logger& logger)
        : mLogger(&logger)
    {
    }
    nvinfer1::ILogger* findLogger() override;

    void hide(bool hidden)
    {
        mHidden = hidden;
    }

private:
    Logger* mLogger;
    bool mHidden{false};
};

// TensorRT passes this if it has no allocator.
class Context final : public nvinfer1::IPluginResourceContext
{
public:
    nvinfer1::IGpuAllocator* getGpuAllocator() const noexcept override
    {
        return nullptr;
    }
    nvinfer1::IErrorRecorder* getErrorRecorder() const noexcept override
    {
        return nullptr;
    }
};

std::string firstError(std::vector<Line> const& lines);

bool driverPresent();

}
