// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: the named checks of one run, their lines on standard output, and the answer to a crash or a hang inside one.
// Never: knows what is checked.
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

// Thrown by `Probe::need`: the rest of the check cannot be done.
struct Stop
{
};

// One check while it runs. It keeps the first mismatch: later ones are usually its echo.
class Probe
{
public:
    Probe() = default;
    // For one of many threads: keeps to itself where it is.
    static Probe forThread()
    {
        Probe probe;
        probe.mQuiet = true;
        return probe;
    }

    // Where in the check we are, for checks that try many inputs. Also shown when the library crashes there.
    void at(std::string const& place);

    bool that(bool condition, std::string const& found, std::string const& expected);

    template <class F, class E>
    bool equal(std::string const& what, F const& found, E const& expected)
    {
        return that(found == expected, what + " " + show(found), show(expected));
    }

    // As `equal` for C strings: compares the text, takes null as a value.
    bool text(std::string const& what, char const* found, char const* expected);

    // Ends the check if `condition` does not hold.
    void need(bool condition, std::string const& found, std::string const& expected);

    bool failed() const
    {
        return mFailed;
    }
    // The first mismatch, and where there were more.
    std::string message() const;

private:
    bool mQuiet{false};
    std::string mPlace;
    bool mFailed{false};
    std::string mMessage;
    // Where else there was a mismatch.
    std::string mLastPlace;
    std::string mOthers;
    int32_t mPlaces{0};
};

// All checks of a run. `ok NAME`, `FAILED NAME: found X, expected Y` or `skipped NAME: REASON`, one line each.
class Report
{
public:
    // Takes standard output for itself. What the library under test prints on either stream goes to a file in memory
    // (`printed`): nothing but TensorRT's logger may carry its words.
    Report();

    void run(std::string const& name, std::function<void(Probe&)> const& body);
    void skip(std::string const& name, std::string const& reason);

    // What was printed on standard output or standard error since the last call.
    std::string printed();

    // Prints the totals. The exit code of the process: 0 when nothing failed.
    int finish();

private:
    size_t mSeen{0};
};

} // namespace oracle
