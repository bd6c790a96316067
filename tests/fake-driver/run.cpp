// Copyright of the Cubinder authors; Apache-2.0.
//
// The run path of plugin libraries above a stand-in for NVIDIA's driver: what is loaded and launched, and what becomes of
// failures. It needs no GPU, and judges no kernel.
//
//   run --library LIB.so --runtime-library LIB2.so    every check of the plugins
//   run --other LIB.so --runtime-library LIB2.so      what a library without code for the device answers
//
// The stand-in must come first on LD_LIBRARY_PATH. Output and exit code are those of the conformance oracle.
#include "checks.hpp"

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

int run(FakeDriver& driver, std::vector<std::string> const& paths, bool isOther)
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
    driver.signatures = signatures.data();
    driver.signatureCount = static_cast<uint32_t>(signatures.size());

    Report report;
    Logger logger;
    Finder finder(logger);
    Bench const bench{report, logger, finder, driver, paths};
    if (isOther)
    {
        checkOtherDevice(bench, plugins[0]);
        return report.finish();
    }
    for (Launching const& plugin : plugins)
    {
        checkGood(bench, plugin);
        checkFailures(bench, plugin);
    }
    checkRefusals(bench, plugins[0]);
    checkGuards(bench, plugins[3]);
    checkNoVariant(bench, plugins[4]);
    checkSteps(bench);
    checkScalars(bench, plugins[0]);
    checkScalars(bench, plugins[2]);
    return report.finish();
}

} // namespace

} // namespace oracle

extern "C" __attribute__((visibility("default"))) int oracleMain(int argc, char** argv)
{
    bool const isOther = argc == 5 && std::strcmp(argv[1], "--other") == 0;
    bool const isLibrary = argc == 5 && std::strcmp(argv[1], "--library") == 0;
    if ((!isOther && !isLibrary) || std::strcmp(argv[3], "--runtime-library") != 0)
    {
        std::fprintf(stderr, "usage: run --library|--other LIB.so --runtime-library LIB2.so\n");
        return 2;
    }
    FakeDriver* driver = oracle::standIn();
    if (driver == nullptr)
    {
        std::fprintf(stderr, "error: `libcuda.so.1` is not the stand-in; put its folder first in LD_LIBRARY_PATH\n");
        return 2;
    }
    return oracle::run(*driver, {argv[2], argv[4]}, isOther);
}
