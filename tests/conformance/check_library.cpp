// Copyright of the Cubinder authors; Apache-2.0.
#include "check_library.hpp"

#include "fields.hpp"
#include "quick.hpp"

#include <climits>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fstream>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>
#include <unistd.h>

namespace oracle
{

using nvinfer1::IPluginCreatorInterface;
using nvinfer1::TensorRTPhase;

namespace
{

constexpr int32_t kLOADS = 50;

std::string absolute(std::string const& path)
{
    char resolved[PATH_MAX];
    return realpath(path.c_str(), resolved) == nullptr ? path : resolved;
}

size_t mappingsOf(std::string const& path)
{
    std::ifstream maps("/proc/self/maps");
    std::string line;
    size_t count = 0;
    while (std::getline(maps, line))
    {
        count += line.find(path) != std::string::npos ? 1 : 0;
    }
    return count;
}

class TemporaryCopy
{
public:
    explicit TemporaryCopy(std::string const& original)
    {
        char const* folder = std::getenv("TMPDIR");
        std::string name = std::string(folder == nullptr ? "/tmp" : folder) + "/pluginLibraryXXXXXX";
        int const file = mkstemp(name.data());
        if (file < 0)
        {
            throw std::runtime_error("cannot write to " + name);
        }
        close(file);
        std::ifstream in(original, std::ios::binary);
        std::ofstream(name, std::ios::binary) << in.rdbuf();
        path = name;
    }
    ~TemporaryCopy()
    {
        remove();
    }
    void remove()
    {
        unlink(path.c_str());
    }
    TemporaryCopy(TemporaryCopy const&) = delete;
    TemporaryCopy& operator=(TemporaryCopy const&) = delete;

    std::string path;
};

std::string const kSTRANGE = "no_such_field";

// Any fields must be survived; with `logger`, rejections must log a reason.
void askStrangely(Probe& probe, Creator& creator, Logger* logger = nullptr)
{
    Field bytes;
    bytes.name = kSTRANGE;
    bytes.type = nvinfer1::PluginFieldType::kINT8;
    bytes.bytes.assign(257, 0x7F);
    bytes.length = 257;
    for (auto phase : {TensorRTPhase::kBUILD, TensorRTPhase::kRUNTIME})
    {
        for (Fields const& fields : {Fields{}, Fields{bytes}, Fields{bytes, bytes}})
        {
            Collection const collection(fields);
            Owned plugin(creator.createPlugin("node", collection.get(), phase));
            if (plugin != nullptr)
            {
                coreIdentityOf(probe, *plugin);
            }
            else if (logger != nullptr)
            {
                probe.that(!firstError(logger->take()).empty(), "a rejection without an error in the log",
                    "the plugin's own message");
            }
        }
    }
}

void expectFieldNames(Probe& probe, Creator& creator)
{
    nvinfer1::PluginFieldCollection const* first = creator.getFieldNames();
    probe.need(first != nullptr, "null from getFieldNames", "a collection");
    probe.need(first->nbFields >= 0 && (first->nbFields == 0 || first->fields != nullptr), "a null list of fields",
        "an array");
    std::vector<std::string> names;
    for (int32_t i = 0; i < first->nbFields; ++i)
    {
        probe.need(first->fields[i].name != nullptr, "a field without a name", "a name");
        names.emplace_back(first->fields[i].name);
        // Declared fields have no value; a length without data would be read.
        probe.that(first->fields[i].data != nullptr || first->fields[i].length <= 1,
            "a declared length of " + show(first->fields[i].length) + " without data", "0 or 1");
    }
    probe.that(std::set<std::string>(names.begin(), names.end()).size() == names.size(), "a field declared twice", "once");
    nvinfer1::PluginFieldCollection const* second = creator.getFieldNames();
    probe.equal("collection", static_cast<void const*>(second), static_cast<void const*>(first));
    probe.need(second->nbFields == static_cast<int32_t>(names.size()), "another number of fields", "the same");
    for (int32_t i = 0; i < second->nbFields; ++i)
    {
        probe.text("field", second->fields[i].name, names[static_cast<size_t>(i)].c_str());
    }
}

}

size_t openFiles()
{
    DIR* folder = opendir("/proc/self/fd");
    size_t count = 0;
    while (folder != nullptr && readdir(folder) != nullptr)
    {
        ++count;
    }
    if (folder != nullptr)
    {
        closedir(folder);
    }
    return count;
}

void checkLibrary(Report& report, Logger& logger, Finder& finder, Library const& library, std::string const& role)
{
    report.run(role + ": getCreators returns the same at every call", [&](Probe& probe) {
        auto const first = library.creators(probe);
        std::set<IPluginCreatorInterface*> const distinct(first.begin(), first.end());
        probe.equal("distinct creators", static_cast<uint64_t>(distinct.size()), static_cast<uint64_t>(first.size()));
        for (int32_t i = 0; i < 3; ++i)
        {
            library.setLoggerFinder(&finder);
            probe.that(library.creators(probe) == first, "other creators at a later call", "the same");
        }
    });
    report.run(role + ": every creator is a V3One or a quick creator", [&](Probe& probe) {
        for (auto* any : library.creators(probe))
        {
            nvinfer1::InterfaceInfo const info = any->getInterfaceInfo();
            probe.text("kind", info.kind, isQuick(*any) ? kQUICK_KIND : "PLUGIN CREATOR_V3ONE");
            probe.equal("major version", info.major, 1);
            probe.equal("minor version", info.minor, 0);
            probe.equal("language", static_cast<int32_t>(any->getAPILanguage()), 0);
            auto* cast = dynamic_cast<Creator*>(any);
            probe.that(cast == nullptr || cast == static_cast<Creator*>(any), "another object from dynamic_cast",
                "null or the same");
        }
    });
    report.run(role + ": creators have names that stay", [&](Probe& probe) {
        for (Creator* creator : library.v3One(probe))
        {
            Identity const first = identityOf(probe, *creator);
            char const* pointer = creator->getPluginName();
            probe.that(!first.name.empty() && !first.version.empty(), "an empty name or version", "some text");
            for (int32_t i = 0; i < 3; ++i)
            {
                probe.that(identityOf(probe, *creator) == first, "other names at a later call", first.text());
            }
            probe.text("the first answer, read again", pointer, first.name.c_str());
        }
    });
    report.run(role + ": creators declare their fields", [&](Probe& probe) {
        for (Creator* creator : library.v3One(probe))
        {
            probe.at(identityOf(probe, *creator).text());
            expectFieldNames(probe, *creator);
        }
    });
    report.run(role + ": unknown fields are harmless", [&](Probe& probe) {
        for (Creator* creator : library.v3One(probe))
        {
            probe.at(identityOf(probe, *creator).text());
            logger.take();
            askStrangely(probe, *creator, &logger);
        }
    });
    report.run(role + ": works without a logger", [&](Probe& probe) {
        auto ask = [&] {
            for (Creator* creator : library.v3One(probe))
            {
                askStrangely(probe, *creator);
            }
        };
        // May print to standard error only without a logger.
        std::string const before = report.printed();
        probe.at("a finder that finds none");
        finder.hide(true);
        ask();
        probe.at("no finder");
        library.setLoggerFinder(nullptr);
        ask();
        finder.hide(false);
        library.setLoggerFinder(&finder);
        report.printed();
        probe.equal("printed with a logger at hand", before, std::string());
        logger.take();
    });
}

void checkTogether(Report& report, std::vector<Library const*> const& libraries)
{
    report.run("together: no two creators of one name", [&](Probe& probe) {
        std::set<std::string> seen;
        for (Library const* library : libraries)
        {
            for (Creator* creator : library->v3One(probe))
            {
                std::string const identity = identityOf(probe, *creator).text();
                probe.that(seen.insert(identity).second, show(identity) + " twice",
                    "once: a registry rejects the second library completely");
            }
        }
    });
}

void checkCopy(Report& report, Finder& finder, Library const& library, std::string const& role)
{
    report.run(role + ": a second copy without a file works beside the first", [&](Probe& probe) {
        TemporaryCopy copy(library.path());
        {
            Library const second(copy.path);
            copy.remove();
            second.setLoggerFinder(&finder);
            auto const creators = second.creators(probe);
            auto const originals = library.creators(probe);
            probe.need(creators.size() == originals.size(), "another number of creators", "the same");
            for (size_t i = 0; i < creators.size(); ++i)
            {
                probe.that(creators[i] != originals[i], "a creator of the first copy", "its own");
            }
            for (Creator* creator : second.v3One(probe))
            {
                askStrangely(probe, *creator);
            }
        }
        for (Creator* creator : library.v3One(probe))
        {
            askStrangely(probe, *creator);
        }
        probe.equal("mappings of the copy left", static_cast<uint64_t>(mappingsOf(copy.path)), uint64_t{0});
    });
}

void checkUnloading(Report& report, Finder& finder, std::vector<std::string> const& paths, size_t openFilesBefore)
{
    auto expectGone = [](Probe& probe, std::string const& path) {
        probe.equal("mappings left", static_cast<uint64_t>(mappingsOf(absolute(path))), uint64_t{0});
    };
    report.run("unloading: nothing stays mapped after use", [&](Probe& probe) {
        for (std::string const& path : paths)
        {
            expectGone(probe, path);
        }
    });
    report.run("unloading: nothing stays mapped after 50 loads", [&](Probe& probe) {
        for (int32_t i = 0; i < kLOADS; ++i)
        {
            for (std::string const& path : paths)
            {
                {
                    Library const library(path);
                    library.setLoggerFinder(&finder);
                    // Also from a thread that exits before the library closes.
                    Probe own = Probe::forThread();
                    std::thread([&] {
                        for (Creator* creator : library.v3One(own))
                        {
                            askStrangely(own, *creator);
                        }
                    }).join();
                    probe.that(!own.failed(), own.message(), "an answer");
                    library.creators(probe);
                }
                probe.at("load " + show(i));
                expectGone(probe, path);
            }
        }
    });
    std::string const name = "unloading: no file stays open";
    if (driverPresent())
    {
        report.skip(name, "the driver of this machine keeps files open");
        return;
    }
    report.run(name, [&](Probe& probe) {
        probe.equal("open files", static_cast<uint64_t>(openFiles()), static_cast<uint64_t>(openFilesBefore));
    });
}

}
