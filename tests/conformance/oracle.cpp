// Copyright of the Cubinder authors; Apache-2.0.
//
// The conformance oracle: loads a plugin library as TensorRT does and calls every slot of every interface.
//
//   oracle --library LIB.so [--runtime-library LIB2.so] [--case CASE]... [--damage sample|all]
//
// `--library` has the plugins for ONNX models, `--runtime-library` the creator for engines if separate. A case is a
// plugin with known semantics (`cases.cpp`, `general_cases.cpp`); default: all in the library (`any`). `--damage all`
// damages every byte of an engine's fields. Exit code: 0 passed, 1 a check failed, 2 invalid arguments.
//
// A shared library with a small program: plugin libraries read TensorRT's version from the finder's library.
#include "check_library.hpp"
#include "subject.hpp"

#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>

namespace oracle
{

namespace
{

struct Arguments
{
    std::string library;
    std::optional<std::string> runtimeLibrary;
    std::vector<std::string> cases;
    bool everyByte{false};
};

bool isKnown(std::string const& label)
{
    for (Facts const& facts : knownCases())
    {
        if (facts.label == label)
        {
            return true;
        }
    }
    return label == "any" || label == "attributes";
}

std::optional<Arguments> parse(int argc, char** argv)
{
    Arguments arguments;
    for (int i = 1; i < argc; i += 2)
    {
        std::string const option = argv[i];
        if (i + 1 == argc)
        {
            std::fprintf(stderr, "error: `%s` needs a value\n", argv[i]);
            return std::nullopt;
        }
        std::string const value = argv[i + 1];
        if (option == "--library")
        {
            arguments.library = value;
        }
        else if (option == "--runtime-library")
        {
            arguments.runtimeLibrary = value;
        }
        else if (option == "--damage" && (value == "all" || value == "sample"))
        {
            arguments.everyByte = value == "all";
        }
        else if (option == "--case" && isKnown(value))
        {
            arguments.cases.push_back(value);
        }
        else
        {
            std::fprintf(stderr, "error: unknown option `%s %s`\n", argv[i], argv[i + 1]);
            return std::nullopt;
        }
    }
    if (arguments.library.empty())
    {
        std::fprintf(stderr, "error: `--library` is missing\n");
        return std::nullopt;
    }
    return arguments;
}

bool isAsked(Arguments const& arguments, std::string const& label, bool isThere)
{
    if (arguments.cases.empty())
    {
        return isThere;
    }
    for (std::string const& asked : arguments.cases)
    {
        if (asked == label || (asked == "any" && isThere))
        {
            return true;
        }
    }
    return false;
}

void checkDeclared(Subject const& subject)
{
    subject.check("the creator declares its attributes", [&](Probe& probe) {
        bool found = subject.facts.attribute.empty();
        bool foundAot = false;
        auto const* names = subject.op.getFieldNames();
        probe.need(names != nullptr, "null from getFieldNames", "a collection");
        for (int32_t i = 0; i < names->nbFields; ++i)
        {
            nvinfer1::PluginField const& field = names->fields[i];
            bool const isAttribute = subject.facts.attribute == field.name;
            bool const isAot = std::strcmp(field.name, "aot") == 0;
            found = found || isAttribute;
            foundAot = foundAot || isAot;
            if (isAttribute || isAot)
            {
                probe.equal("type", static_cast<int32_t>(field.type),
                    static_cast<int32_t>(nvinfer1::PluginFieldType::kINT32));
            }
        }
        probe.that(found, "no " + show(subject.facts.attribute), "a field of that name");
        probe.that(foundAot == subject.facts.aot, foundAot ? "`aot`" : "no `aot`", subject.facts.aot ? "`aot`" : "none");
    });
}

void checkPlugin(Subject const& subject)
{
    checkDeclared(subject);
    checkBuild(subject);
    checkOffer(subject);
    checkShapes(subject);
    checkFields(subject);
    checkRuntime(subject);
    checkDamage(subject);
    checkStress(subject);
}

void checkPlugins(Report& report, Logger& logger, Arguments const& arguments, std::vector<Library const*> const& libraries)
{
    int32_t checked = 0;
    for (Facts const& facts : knownCases())
    {
        Creator* creator = nullptr;
        try
        {
            Probe probe;
            creator = libraries[0]->find(probe, facts.op);
        }
        catch (Stop const&)
        {
        }
        if (!isAsked(arguments, facts.label, creator != nullptr))
        {
            continue;
        }
        ++checked;
        report.run(facts.op.name + ": has a creator", [&](Probe& probe) {
            probe.that(creator != nullptr, "none", "a V3One creator " + show(facts.op.text()));
        });
        if (creator != nullptr)
        {
            Subject subject(report, logger, facts, *creator, libraries);
            subject.everyByte = arguments.everyByte;
            checkPlugin(subject);
        }
    }
    if (checked == 0 && !isAsked(arguments, "attributes", false))
    {
        report.skip("plugins", "the library has no plugin that the oracle supports");
    }
}

void checkKinds(Report& report, Logger& logger, Arguments const& arguments, Library const& library)
{
    Probe probe;
    Creator* const creator = library.find(probe, {"attributes_plugin", "1", "sample"});
    if (creator != nullptr && isAsked(arguments, "attributes", true))
    {
        checkAttributes(report, logger, *creator);
    }
}

void checkLogging(Report& report, Logger& logger)
{
    report.run("logger: every message has a severity and a text", [&](Probe& probe) {
        for (std::string const& fault : logger.faults())
        {
            probe.that(false, fault, "a known severity and some text");
        }
    });
    report.run("logger: nothing is printed past it", [&](Probe& probe) {
        probe.equal("printed", report.printed(), std::string());
    });
}

int run(Arguments const& arguments)
{
    Report report;
    Logger logger;
    Finder finder(logger);
    driverPresent();
    size_t const files = openFiles();

    std::vector<std::string> paths{arguments.library};
    if (arguments.runtimeLibrary)
    {
        paths.push_back(*arguments.runtimeLibrary);
    }
    std::vector<std::unique_ptr<Library>> owned;
    std::vector<Library const*> libraries;
    bool isLoaded = true;
    for (std::string const& path : paths)
    {
        report.run(std::string(owned.empty() ? "library" : "runtime library") + ": loads", [&](Probe& probe) {
            isLoaded = false;
            owned.push_back(std::make_unique<Library>(path));
            owned.back()->setLoggerFinder(&finder);
            owned.back()->creators(probe);
            libraries.push_back(owned.back().get());
            isLoaded = true;
        });
        if (!isLoaded)
        {
            return report.finish();
        }
    }
    for (size_t i = 0; i < libraries.size(); ++i)
    {
        std::string const role = i == 0 ? "library" : "runtime library";
        checkLibrary(report, logger, finder, *libraries[i], role);
        checkCopy(report, finder, *libraries[i], role);
    }
    checkTogether(report, libraries);
    checkLayout(report);
    checkPlugins(report, logger, arguments, libraries);
    checkKinds(report, logger, arguments, *libraries[0]);
    checkQuick(report, logger, *libraries[0]);
    checkLogging(report, logger);
    libraries.clear();
    owned.clear();
    checkUnloading(report, finder, paths, files);
    return report.finish();
}

}

}

extern "C" __attribute__((visibility("default"))) int oracleMain(int argc, char** argv)
{
    auto const arguments = oracle::parse(argc, argv);
    if (!arguments)
    {
        std::string labels;
        for (oracle::Facts const& facts : oracle::knownCases())
        {
            labels += facts.label + "|";
        }
        std::fprintf(stderr, "usage: oracle --library LIB.so [--runtime-library LIB2.so] [--case %sattributes|any]... [--damage sample|all]\n", labels.c_str());
        return 2;
    }
    return oracle::run(*arguments);
}
