// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: the checks of a run, their output, and their crashes and hangs. Never: knows what is checked.
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

// Thrown by `Probe::need`.
struct Stop
{
};

// Keeps the first mismatch: later ones usually follow from it.
class Probe
{
public:
    Probe() = default;
    // Creates a probe that does not report its position.
    static Probe forThread()
    {
        Probe probe;
        probe.mQuiet = true;
        return probe;
    }

    // The place in a check of many inputs, also printed on a crash.
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

// One line each: `ok NAME`, `FAILED NAME: found X, expected Y` or `skipped NAME: REASON`.
class Report
{
public:
    // Redirects the library's output to memory (`printed`): it must log only through TensorRT.
    Report();

    void run(std::string const& name, std::function<void(Probe&)> const& body);
    void skip(std::string const& name, std::string const& reason);

    std::string printed();

    // Prints totals and returns the exit code.
    int finish();

private:
    size_t mSeen{0};
};

}
