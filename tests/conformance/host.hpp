// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: the part of TensorRT's library that a plugin library sees: logger finder, logger, resource context, version.
// Never: looks into a plugin.
//
// The classes derive from the header set's own, so the compiler lays out their vtables: `ILogger::log` is slot 0 up to
// TensorRT-RTX 1.4 and TensorRT 10, slot 4 from TensorRT-RTX 1.5 and TensorRT 11 on.
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

    // What was logged since the last call.
    std::vector<Line> take();

    // Calls that no logger may get: unknown severity, null or empty text.
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

    // From now on no logger is to be found, as in a process whose logger is gone.
    void hide(bool hidden)
    {
        mHidden = hidden;
    }

private:
    Logger* mLogger;
    bool mHidden{false};
};

// An execution context without resources: what TensorRT hands over where it has no allocator to offer.
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

// The first error among `lines`, or an empty text.
std::string firstError(std::vector<Line> const& lines);

// Whether a CUDA driver answers on this machine.
bool driverPresent();

} // namespace oracle
