// Copyright of the Cubinder authors; Apache-2.0.
#include "host.hpp"

#include <dlfcn.h>

// Plugin libraries read it from the finder's library: the logger's layout depends on it. `ORACLE_VERSION` selects a
// release of equal layout.
#ifndef ORACLE_VERSION
#define ORACLE_VERSION NV_TENSORRT_VERSION
#endif

extern "C" __attribute__((visibility("default"))) int32_t getInferLibVersion() noexcept
{
    return static_cast<int32_t>(ORACLE_VERSION);
}

namespace oracle
{

void Logger::log(Severity severity, nvinfer1::AsciiChar const* text) noexcept
{
    std::lock_guard<std::mutex> lock(mMutex);
    auto const number = static_cast<int32_t>(severity);
    if (number < 0 || number > static_cast<int32_t>(Severity::kVERBOSE))
    {
        mFaults.push_back("severity " + std::to_string(number));
    }
    if (text == nullptr || *text == '\0')
    {
        mFaults.push_back(text == nullptr ? "a null message" : "an empty message");
        return;
    }
    mLines.push_back({number, text});
}

std::vector<Line> Logger::take()
{
    std::lock_guard<std::mutex> lock(mMutex);
    return std::exchange(mLines, {});
}

std::vector<std::string> Logger::faults()
{
    std::lock_guard<std::mutex> lock(mMutex);
    return mFaults;
}

nvinfer1::ILogger* Finder::findLogger()
{
    return mHidden ? nullptr : mLogger;
}

std::string firstError(std::vector<Line> const& lines)
{
    for (Line const& line : lines)
    {
        if (line.isError())
        {
            return line.text;
        }
    }
    return "";
}

bool driverPresent()
{
    static bool const present = [] {
        void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        if (driver == nullptr)
        {
            return false;
        }
        auto const init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
        return init != nullptr && init(0) == 0;
    }();
    return present;
}

}
