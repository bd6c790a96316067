// Copyright of the Cubinder authors; Apache-2.0.
//
// Drives plugin registries of full TensorRT by commands on standard input, one per line. Several releases can be open.
// Needs no GPU. Never: judges answers; `tests/tests/it/registry.rs` does.
//
//   open T FILE                      opens a TensorRT library as T
//   close T                          closes it; "gone" or "still mapped"
//   load T L FILE                    registry of T: loadLibrary, as L
//   unload T L                       deregisterLibrary
//   list T                           creators with a namespace, which TensorRT's own lack
//   create T P NS::NAME:VERSION PHASE [FIELD]...   createPlugin, as P; PHASE is build or run
//   clone P Q                        P's clone, as Q
//   configure P IN... -- OUT...      configurePlugin with f32 tensors such as 1x3x8x8
//   restore T P Q                    createPlugin in phase run from P's serialized fields, as Q
//   delete P
//   offer FILE S                     the stand-in S of another release, compiled from `tensorrt.c`, loads the plugin library FILE
//
// A FIELD is name=1,2 (int32), name=1.5f (float32), name=text' (char).

#include <NvInferRuntime.h>
#include <impl/NvInferPythonPlugin.h>

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

using namespace nvinfer1;

namespace
{

[[noreturn]] void fail(std::string const& why)
{
    std::fprintf(stderr, "registry: %s\n", why.c_str());
    std::exit(2);
}

void say(std::string const& text)
{
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
}

// TensorRT 10's `IPluginRegistry` has more methods: its slots differ from these TensorRT 11 headers.
template <typename Result, typename... Arguments>
Result callSlot(void* object, size_t slot, Arguments... arguments)
{
    auto* const table = *static_cast<void***>(object);
    return reinterpret_cast<Result (*)(void*, Arguments...)>(table[slot])(object, arguments...);
}

class TensorRt
{
public:
    explicit TensorRt(std::string const& file)
        : mHandle(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL))
        , mFile(file)
    {
        if (mHandle == nullptr)
        {
            fail(dlerror());
        }
        mVersion = symbol<int32_t (*)()>("getInferLibVersion")();
        mRegistry = symbol<void* (*)()>("getPluginRegistry")();
        mShift = mVersion < 110000 ? 4 : 0;
    }
    int32_t version() const
    {
        return mVersion;
    }
    void* load(std::string const& file)
    {
        return callSlot<void*>(mRegistry, 6 + mShift, file.c_str());
    }
    void unload(void* library)
    {
        callSlot<void>(mRegistry, 7 + mShift, library);
    }
    std::vector<IPluginCreatorInterface*> creators()
    {
        int32_t count = 0;
        auto* const all = callSlot<IPluginCreatorInterface* const*>(mRegistry, 9 + mShift, &count);
        return {all, all + count};
    }
    IPluginCreatorInterface* creator(char const* name, char const* version, char const* space)
    {
        return callSlot<IPluginCreatorInterface*>(mRegistry, 10 + mShift, name, version, space);
    }
    bool close()
    {
        dlclose(mHandle);
        void* const left = dlopen(mFile.c_str(), RTLD_NOLOAD | RTLD_LAZY);
        if (left != nullptr)
        {
            dlclose(left);
        }
        return left == nullptr;
    }

private:
    template <typename Function>
    Function symbol(char const* name)
    {
        void* const found = dlsym(mHandle, name);
        if (found == nullptr)
        {
            fail(std::string("no symbol ") + name);
        }
        return reinterpret_cast<Function>(found);
    }

    void* mHandle;
    std::string mFile;
    int32_t mVersion;
    void* mRegistry;
    size_t mShift;
};

struct Field
{
    explicit Field(std::string const& text)
    {
        size_t const equals = text.find('=');
        if (equals == std::string::npos)
        {
            fail("a field without a value: " + text);
        }
        name = text.substr(0, equals);
        std::string value = text.substr(equals + 1);
        if (!value.empty() && value.back() == '\'')
        {
            value.pop_back();
            type = PluginFieldType::kCHAR;
            bytes.assign(value.begin(), value.end());
            count = static_cast<int32_t>(bytes.size());
            return;
        }
        std::istringstream items(value);
        std::string item;
        while (std::getline(items, item, ','))
        {
            ++count;
            if (item.back() == 'f')
            {
                type = PluginFieldType::kFLOAT32;
                add(std::stof(item));
            }
            else
            {
                add(static_cast<int32_t>(std::stol(item)));
            }
        }
    }
    PluginField raw() const
    {
        return {name.c_str(), bytes.data(), type, count};
    }

    std::string name;
    PluginFieldType type{PluginFieldType::kINT32};
    int32_t count{0};
    std::vector<char> bytes;

private:
    template <typename T>
    void add(T value)
    {
        auto const* const first = reinterpret_cast<char const*>(&value);
        bytes.insert(bytes.end(), first, first + sizeof value);
    }
};

bool isKind(IPluginCreatorInterface& creator, char const* kind)
{
    return std::string(creator.getInterfaceInfo().kind) == kind;
}

constexpr char const* kONE = "PLUGIN CREATOR_V3ONE";
constexpr char const* kQUICK = "PLUGIN CREATOR_V3QUICK";

template <typename Creator>
std::string identity(Creator& creator)
{
    return std::string(creator.getPluginNamespace()) + "::" + creator.getPluginName() + ":" + creator.getPluginVersion();
}

std::string describe(IPluginCreatorInterface& creator)
{
    if (isKind(creator, kONE))
    {
        return "V3ONE " + identity(static_cast<IPluginCreatorV3One&>(creator));
    }
    if (isKind(creator, kQUICK))
    {
        return "V3QUICK " + identity(static_cast<IPluginCreatorV3Quick&>(creator));
    }
    return "other ::";
}

std::string core(IPluginV3& plugin, bool isQuick)
{
    auto* const found = plugin.getCapabilityInterface(PluginCapabilityType::kCORE);
    if (found == nullptr)
    {
        return "without a core";
    }
    return isQuick ? identity(*static_cast<IPluginV3QuickCore*>(found)) : identity(*static_cast<IPluginV3OneCore*>(found));
}

struct Plugin
{
    std::unique_ptr<IPluginV3> object;
    bool isQuick;
};

Dims dims(std::string const& text)
{
    Dims found{};
    std::istringstream items(text);
    std::string item;
    while (std::getline(items, item, 'x'))
    {
        found.d[found.nbDims++] = std::stol(item);
    }
    return found;
}

class Session
{
public:
    void run(std::string const& line)
    {
        std::istringstream words(line);
        std::vector<std::string> all;
        for (std::string word; words >> word;)
        {
            all.push_back(word);
        }
        std::string const command = all.at(0);
        if (command == "open")
        {
            auto const opened = mTensorRts.emplace(all.at(1), std::make_unique<TensorRt>(all.at(2)));
            say(all[1] + ": version " + std::to_string(opened.first->second->version()));
        }
        else if (command == "close")
        {
            say(all.at(1) + ": " + (tensorRt(all[1]).close() ? "gone" : "still mapped"));
            mTensorRts.erase(all[1]);
        }
        else if (command == "load")
        {
            void* const library = tensorRt(all.at(1)).load(all.at(3));
            mLibraries[all.at(2)] = library;
            say(all[2] + ": " + (library == nullptr ? "rejected" : "loaded"));
        }
        else if (command == "unload")
        {
            tensorRt(all.at(1)).unload(mLibraries.at(all.at(2)));
            say(all[2] + ": unloaded");
        }
        else if (command == "offer")
        {
            offer(all.at(1), all.at(2));
        }
        else if (command == "list")
        {
            std::multiset<std::string> sorted;
            for (auto* creator : tensorRt(all.at(1)).creators())
            {
                sorted.insert(describe(*creator));
            }
            for (std::string const& text : sorted)
            {
                if (text.find(" ::") == std::string::npos)
                {
                    say(text);
                }
            }
        }
        else if (command == "create")
        {
            create(all);
        }
        else if (command == "clone")
        {
            Plugin const& from = mPlugins.at(all.at(1));
            keep(all.at(2), from.object->clone(), from.isQuick);
        }
        else if (command == "configure")
        {
            configure(all);
        }
        else if (command == "restore")
        {
            restore(all);
        }
        else if (command == "delete")
        {
            mPlugins.erase(all.at(1));
            say(all[1] + ": deleted");
        }
        else
        {
            fail("what is `" + line + "`?");
        }
    }

private:
    TensorRt& tensorRt(std::string const& name)
    {
        return *mTensorRts.at(name);
    }

    void offer(std::string const& file, std::string const& standIn)
    {
        void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
        void* const release = dlopen(standIn.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr || release == nullptr)
        {
            fail(dlerror());
        }
        auto const finder = reinterpret_cast<void* (*)()>(dlsym(release, "staticFinder"));
        auto const call = reinterpret_cast<int (*)(void*, void*)>(dlsym(release, "callPlugin"));
        reinterpret_cast<void (*)(void*)>(dlsym(library, "setLoggerFinder"))(finder());
        int32_t count = 0;
        call(dlsym(library, "getCreators"), &count);
        say("offered " + std::to_string(count));
    }

    void keep(std::string const& name, IPluginV3* plugin, bool isQuick)
    {
        say(name + ": " + (plugin == nullptr ? "null" : core(*plugin, isQuick)));
        mPlugins[name] = Plugin{std::unique_ptr<IPluginV3>(plugin), isQuick};
    }

    void create(std::vector<std::string> const& all)
    {
        std::string const who = all.at(3);
        size_t const space = who.find("::");
        size_t const colon = who.rfind(':');
        auto* const creator = tensorRt(all.at(1)).creator(
            who.substr(space + 2, colon - space - 2).c_str(), who.substr(colon + 1).c_str(), who.substr(0, space).c_str());
        if (creator == nullptr)
        {
            say(all.at(2) + ": no creator");
            return;
        }
        std::vector<Field> const fields(all.begin() + 5, all.end());
        std::vector<PluginField> raw;
        for (Field const& field : fields)
        {
            raw.push_back(field.raw());
        }
        PluginFieldCollection const collection{static_cast<int32_t>(raw.size()), raw.data()};
        auto const phase = all.at(4) == "build" ? TensorRTPhase::kBUILD : TensorRTPhase::kRUNTIME;
        bool const isQuick = isKind(*creator, kQUICK);
        IPluginV3* const plugin = isQuick
            ? static_cast<IPluginCreatorV3Quick*>(creator)->createPlugin(
                "node", who.substr(0, space).c_str(), &collection, phase, QuickPluginCreationRequest::kSTRICT_AOT)
            : static_cast<IPluginCreatorV3One*>(creator)->createPlugin("node", &collection, phase);
        keep(all.at(2), plugin, isQuick);
    }

    void configure(std::vector<std::string> const& all)
    {
        std::vector<DynamicPluginTensorDesc> tensors[2];
        size_t side = 0;
        for (size_t i = 2; i < all.size(); ++i)
        {
            if (all[i] == "--")
            {
                side = 1;
                continue;
            }
            Dims const shape = dims(all[i]);
            DynamicPluginTensorDesc tensor{};
            tensor.desc = {shape, DataType::kFLOAT, TensorFormat::kLINEAR, 1.0F};
            tensor.min = tensor.max = tensor.opt = shape;
            tensors[side].push_back(tensor);
        }
        auto& plugin = *mPlugins.at(all.at(1)).object;
        auto& build = *static_cast<IPluginV3OneBuild*>(plugin.getCapabilityInterface(PluginCapabilityType::kBUILD));
        int32_t const code = build.configurePlugin(tensors[0].data(), static_cast<int32_t>(tensors[0].size()),
            tensors[1].data(), static_cast<int32_t>(tensors[1].size()));
        say(all[1] + ": configured, " + std::to_string(code) + ", build interface "
            + std::to_string(build.getInterfaceInfo().major));
    }

    void restore(std::vector<std::string> const& all)
    {
        auto& plugin = *mPlugins.at(all.at(2)).object;
        auto& runtime = *static_cast<IPluginV3OneRuntime*>(plugin.getCapabilityInterface(PluginCapabilityType::kRUNTIME));
        auto& core = *static_cast<IPluginV3OneCore*>(plugin.getCapabilityInterface(PluginCapabilityType::kCORE));
        auto* const creator = tensorRt(all.at(1)).creator(
            core.getPluginName(), core.getPluginVersion(), core.getPluginNamespace());
        PluginFieldCollection const* const fields = runtime.getFieldsToSerialize();
        if (creator == nullptr || fields == nullptr)
        {
            say(all.at(3) + ": " + (creator == nullptr ? "no creator" : "no fields"));
            return;
        }
        keep(all.at(3), static_cast<IPluginCreatorV3One*>(creator)->createPlugin("node", fields, TensorRTPhase::kRUNTIME), false);
    }

    std::map<std::string, std::unique_ptr<TensorRt>> mTensorRts;
    std::map<std::string, void*> mLibraries;
    std::map<std::string, Plugin> mPlugins;
};

}

int main()
{
    Session session;
    for (std::string line; std::getline(std::cin, line);)
    {
        session.run(line);
    }
    // Exits like a killed application, without closing libraries.
    std::fflush(nullptr);
    std::_Exit(0);
}
