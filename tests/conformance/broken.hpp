// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: the fault selection, logging and checksums that both faulty plugins share.
#pragma once

#include "versions.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace nvinfer1;

namespace
{

ILoggerFinder* gFinder = nullptr;

bool fault(char const* name)
{
    static char const* const planted = std::getenv("ORACLE_FAULT");
    return planted != nullptr && std::strcmp(planted, name) == 0;
}

void say(ILogger::Severity severity, std::string const& text)
{
    ILogger* logger = gFinder == nullptr ? nullptr : gFinder->findLogger();
    if (logger != nullptr && !fault("no log"))
    {
        logger->log(severity, fault("empty messages") ? "" : text.c_str());
    }
    if (fault("prints"))
    {
        std::puts(text.c_str());
    }
}

int32_t refuse(std::string const& text)
{
    say(ILogger::Severity::kERROR, text);
    return 1;
}

int32_t checksum(int32_t const* words, size_t count)
{
    uint32_t hash = 0x811C9DC5U;
    for (size_t i = 0; i < 4 * count; ++i)
    {
        hash = (hash ^ reinterpret_cast<uint8_t const*>(words)[i]) * 0x01000193U;
    }
    return static_cast<int32_t>(hash);
}

}
