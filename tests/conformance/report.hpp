// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: the checks of a run, their output, and handling crashes and hangs in them. Never: knows what is checked.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace oracle
{

std::string show(char const* text);
std::string show(std::string const& text);
std::string show(bool value);
std::string show(int32_t value);
std::string show(int64_t value);
std::string show(uint64_t value);
std::string show(void const* pointer);
std::string show(std::vector<int64_t> const& values);

// Thrown by `Probe::need` to end the check.
struct Stop
{
};

// Keeps the first mismatch, because later ones usually follow from it.
class Probe
{
public:
    Probe() = default;
    // For threads, which do not report their place.
    static Probe forThread()
    {
        Probe probe;
        probe.mQuiet = true;
        return probe;
    }

    // The place in a check of many inputs; also printed on a crash.
    void at(std::string const& place);

    bool that(bool condition, std::string const& found, std::string const& expected);

    template <class F, class E>
    bool equal(std::string const& what, F const& found, E const& expected)
    {
        return that(found == expected, what + " " + show(found), show(expected));
    }

    // Compares text; accepts null.
    bool text(std::string const& what, char const* found, char const* expected);

    void need(bool condition, std::string const& found, std::string const& expected);

    bool failed() const
    {
        return mFailed;
    }
    std::string message() const;

private:
    bool mQuiet{false};
    std::string mPlace;
    bool mFailed{false};
    std::string mMessage;
    std::string mLastPlace;
    std::string mOthers;
    int32_t mPlaces{0};
};

// `ok NAME`, `FAILED NAME: found X, expected Y` or `skipped NAME: REASON`, one per line.
class Report
{
public:
    // Redirects the library's output to memory (`printed`), because it must log only through TensorRT.
    Report();

    void run(std::string const& name, std::function<void(Probe&)> const& body);
    void skip(std::string const& name, std::string const& reason);

    std::string printed();

    // Prints the totals and returns the exit code.
    int finish();

private:
    size_t mSeen{0};
};

} // namespace oracle
