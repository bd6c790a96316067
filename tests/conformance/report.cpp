// Copyright of the Cubinder authors; Apache-2.0.
#include "report.hpp"

#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <sys/mman.h>
#include <unistd.h>

namespace oracle
{

namespace
{

// State of the signal handler: plain memory and file descriptors.
int gOut = STDOUT_FILENO;
int gCaptured = -1;
char gCurrent[512] = "start";
int gPassed = 0;
int gFailed = 0;
int gSkipped = 0;

constexpr unsigned kSECONDS_TO_HANG = 120;
constexpr int32_t kMOST_PLACES = 6;

void setCurrent(std::string const& name, std::string const& place)
{
    std::snprintf(gCurrent, sizeof gCurrent, "%s%s%s", name.c_str(), place.empty() ? "" : " at ", place.c_str());
}

std::string gName;

// `dprintf` is not async-signal-safe, but the process exits.
void onFatal(int signal)
{
    char const* what = signal == SIGALRM ? "no answer within 120 s" : strsignal(signal);
    dprintf(gOut, "FAILED %s: found a crash (%s), expected an answer\n", gCurrent, what);
    dprintf(gOut, "%d passed, %d failed, %d skipped\n", gPassed, gFailed + 1, gSkipped);
    _exit(1);
}

void catchFatal()
{
    static char stack[65536];
    stack_t alternative{};
    alternative.ss_sp = stack;
    alternative.ss_size = sizeof stack;
    sigaltstack(&alternative, nullptr);
    struct sigaction action
    {
    };
    action.sa_handler = onFatal;
    action.sa_flags = SA_ONSTACK;
    for (int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGALRM, SIGTRAP})
    {
        sigaction(signal, &action, nullptr);
    }
}

}

std::string show(char const* text)
{
    return text == nullptr ? "null" : "`" + std::string(text) + "`";
}
std::string show(std::string const& text)
{
    return "`" + text + "`";
}
std::string show(bool value)
{
    return value ? "true" : "false";
}
std::string show(int32_t value)
{
    return std::to_string(value);
}
std::string show(int64_t value)
{
    return std::to_string(value);
}
std::string show(uint64_t value)
{
    return std::to_string(value);
}
std::string show(void const* pointer)
{
    char text[32];
    std::snprintf(text, sizeof text, "0x%" PRIxPTR, reinterpret_cast<uintptr_t>(pointer));
    return pointer == nullptr ? "null" : text;
}
std::string show(std::vector<int64_t> const& values)
{
    std::string text = "[";
    for (size_t i = 0; i < values.size(); ++i)
    {
        text += (i == 0 ? "" : ", ") + std::to_string(values[i]);
    }
    return text + "]";
}

void Probe::at(std::string const& place)
{
    mPlace = place;
    if (!mQuiet)
    {
        setCurrent(gName, place);
    }
}

bool Probe::that(bool condition, std::string const& found, std::string const& expected)
{
    if (condition)
    {
        return true;
    }
    if (!mFailed)
    {
        mMessage = "found " + found + (mPlace.empty() ? "" : " at " + mPlace) + ", expected " + expected;
    }
    if (!mFailed || mPlace != mLastPlace)
    {
        ++mPlaces;
        mLastPlace = mPlace;
        mOthers += mPlaces == 1 || mPlaces > kMOST_PLACES ? "" : (mOthers.empty() ? "" : "; ") + mPlace;
    }
    mFailed = true;
    return false;
}

std::string Probe::message() const
{
    std::string const more = mPlaces > kMOST_PLACES ? " and more" : "";
    return mPlaces < 2 ? mMessage : mMessage + " (also at " + mOthers + more + ")";
}

bool Probe::text(std::string const& what, char const* found, char const* expected)
{
    bool const same = (found == nullptr || expected == nullptr) ? found == expected : std::strcmp(found, expected) == 0;
    return that(same, what + " " + show(found), show(expected));
}

void Probe::need(bool condition, std::string const& found, std::string const& expected)
{
    if (!that(condition, found, expected))
    {
        throw Stop{};
    }
}

Report::Report()
{
    std::fflush(nullptr);
    gOut = dup(STDOUT_FILENO);
    gCaptured = memfd_create("printed", 0);
    dup2(gCaptured, STDOUT_FILENO);
    dup2(gCaptured, STDERR_FILENO);
    catchFatal();
}

void Report::run(std::string const& name, std::function<void(Probe&)> const& body)
{
    gName = name;
    setCurrent(name, "");
    alarm(kSECONDS_TO_HANG);
    Probe probe;
    try
    {
        body(probe);
    }
    catch (Stop const&)
    {
    }
    catch (std::exception const& error)
    {
        probe.that(false, std::string("an exception, ") + show(error.what()), "none");
    }
    catch (...)
    {
        probe.that(false, "an exception of unknown type", "none");
    }
    alarm(0);
    if (probe.failed())
    {
        ++gFailed;
        dprintf(gOut, "FAILED %s: %s\n", name.c_str(), probe.message().c_str());
    }
    else
    {
        ++gPassed;
        dprintf(gOut, "ok %s\n", name.c_str());
    }
}

void Report::skip(std::string const& name, std::string const& reason)
{
    ++gSkipped;
    dprintf(gOut, "skipped %s: %s\n", name.c_str(), reason.c_str());
}

std::string Report::printed()
{
    std::fflush(nullptr);
    std::string text;
    char buffer[4096];
    ssize_t read = 0;
    while ((read = pread(gCaptured, buffer, sizeof buffer, static_cast<off_t>(mSeen))) > 0)
    {
        text.append(buffer, static_cast<size_t>(read));
        mSeen += static_cast<size_t>(read);
    }
    return text;
}

int Report::finish()
{
    dprintf(gOut, "%d passed, %d failed, %d skipped\n", gPassed, gFailed, gSkipped);
    return gFailed == 0 ? 0 : 1;
}

}
