// Copyright of the Cubinder authors; Apache-2.0.
//
// Plugin libraries with a stand-in driver: loading, launching, failures. Does not judge kernels.
//
//   run --library LIB.so --runtime-library LIB2.so    every check of the plugins
//   run --other LIB.so --runtime-library LIB2.so      a library without code for the device
//   run --ranges LIB.so --runtime-library LIB2.so     NVTX ranges, with CUBINDER_NVTX and NVTX_INJECTION64_PATH
//   run --faults LIB.so --runtime-library LIB2.so     driver faults
//   run --captures LIB.so --runtime-library LIB2.so   libraries closed during a capture
//   run --threads LIB.so --runtime-library LIB2.so    faults in many threads
//   run --ends LIB.so --runtime-library LIB2.so       process exit while threads work
//   run --general LIB.so --runtime-library LIB2.so    plugins of `general_cases.cpp`, with a builder that times
//
// The stand-in must be first in LD_LIBRARY_PATH. Output and exit code: as the conformance oracle's.
#include "checks.hpp"
#include "general.hpp"
#include "workload.hpp"

#include <cstdio>
#include <cstring>
#include <dlfcn.h>

namespace oracle
{

namespace
{

FakeDriver* standIn()
{
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    auto const driver = library == nullptr ? nullptr : reinterpret_cast<FakeDriver* (*) ()>(dlsym(library, "fakeDriver"));
    return driver == nullptr ? nullptr : driver();
}

enum class What
{
    kPLUGINS,
    kOTHER,
    kRANGES
};

int run(FakeDriver& driver, std::vector<std::string> const& paths, What what)
{
    static std::vector<Launching> const plugins{
        tiles(), circPadLaunches(), elemwiseAddLaunches(), vectors(), aligned()};
    static std::vector<FakeSignature> signatures;
    for (Launching const& plugin : plugins)
    {
        signatures.push_back(plugin.signature);
    }
    signatures.push_back(copiedSignature());
    signatures.push_back(biasedSignature());
    signatures.push_back(finishedSignature());
    signatures.push_back(eightSignature());
    driver.signatures = signatures.data();
    driver.signatureCount = static_cast<uint32_t>(signatures.size());

    Report report;
    Logger logger;
    Finder finder(logger);
    Bench const bench{report, logger, finder, driver, paths};
    if (what != What::kPLUGINS)
    {
        what == What::kOTHER ? checkOtherDevice(bench, plugins[0]) : checkRanges(bench, plugins[3]);
        return report.finish();
    }
    for (Launching const& plugin : plugins)
    {
        checkGood(bench, plugin);
        checkAlike(bench, plugin);
        checkFailures(bench, plugin);
    }
    checkRefusals(bench, plugins[0]);
    checkRefusedLaunch(bench, plugins[0]);
    checkAlikeLogs(bench, plugins[3]);
    checkGuards(bench, plugins[3]);
    checkNoVariant(bench, plugins[4]);
    checkSteps(bench);
    checkUnchanged(bench);
    checkScalars(bench, plugins[0]);
    checkScalars(bench, plugins[2]);
    return report.finish();
}

int runGeneral(FakeDriver& driver, std::vector<std::string> const& paths)
{
    static std::vector<General> const plugins = generalPlugins();
    static std::vector<FakeSignature> signatures;
    for (General const& plugin : plugins)
    {
        signatures.insert(signatures.end(), plugin.signatures.begin(), plugin.signatures.end());
    }
    driver.signatures = signatures.data();
    driver.signatureCount = static_cast<uint32_t>(signatures.size());

    Report report;
    Logger logger;
    Finder finder(logger);
    Bench const bench{report, logger, finder, driver, paths};
    for (General const& plugin : plugins)
    {
        bool isThere = false;
        {
            Probe probe;
            isThere = Library(paths[0]).find(probe, plugin.facts.op) != nullptr;
        }
        if (!isThere)
        {
            report.skip(plugin.facts.op.name, "the library has no such plugin");
            continue;
        }
        checkTiming(bench, plugin);
        checkEngine(bench, plugin);
        checkHostile(bench, plugin);
        checkInterface(bench, plugin);
    }
    return report.finish();
}

int runFaults(FakeDriver& driver, std::vector<std::string> const& paths, std::string const& option)
{
    // Leaked, like the logger: threads may use it during exit.
    static auto const& signatures = *new std::vector<FakeSignature>(faultSignatures());
    driver.signatures = signatures.data();
    driver.signatureCount = static_cast<uint32_t>(signatures.size());

    Report report;
    Logger& logger = *new Logger;
    Finder& finder = *new Finder(logger);
    Bench const bench{report, logger, finder, driver, paths};
    if (option == "--ends")
    {
        leaveThreads(bench, threadWorkloads());
        return report.finish();
    }
    if (option == "--captures")
    {
        checkCaptures(bench, threadWorkloads());
        return report.finish();
    }
    if (option == "--threads")
    {
        checkThreads(bench, threadWorkloads());
        return report.finish();
    }
    for (Workload const& workload : faultWorkloads())
    {
        checkFaults(bench, workload);
    }
    return report.finish();
}

}

}

extern "C" __attribute__((visibility("default"))) int oracleMain(int argc, char** argv)
{
    using oracle::What;
    std::string const option = argc == 5 && std::strcmp(argv[3], "--runtime-library") == 0 ? argv[1] : "";
    bool const isGeneral = option == "--general";
    bool const isFaults = option == "--faults" || option == "--captures" || option == "--threads" || option == "--ends";
    if (!isGeneral && !isFaults && option != "--other" && option != "--library" && option != "--ranges")
    {
        std::fprintf(stderr, "usage: run --library|--other|--ranges|--faults|--captures|--threads|--ends|--general LIB.so --runtime-library LIB2.so\n");
        return 2;
    }
    FakeDriver* driver = oracle::standIn();
    if (driver == nullptr)
    {
        std::fprintf(stderr, "error: `libcuda.so.1` is not the stand-in; put its folder first in LD_LIBRARY_PATH\n");
        return 2;
    }
    if (isFaults)
    {
        return oracle::runFaults(*driver, {argv[2], argv[4]}, option);
    }
    What const what = option == "--other" ? What::kOTHER : option == "--ranges" ? What::kRANGES : What::kPLUGINS;
    return isGeneral ? oracle::runGeneral(*driver, {argv[2], argv[4]}) : oracle::run(*driver, {argv[2], argv[4]}, what);
}
