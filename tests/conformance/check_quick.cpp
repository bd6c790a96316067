// Copyright of the Cubinder authors; Apache-2.0.
//
// Quick plugins, called as by full TensorRT's builds.
#include "check_library.hpp"
#include "expressions.hpp"
#include "quick.hpp"

#include <cstring>
#include <set>
#include <thread>

namespace oracle
{

bool isQuick(nvinfer1::IPluginCreatorInterface& creator)
{
    nvinfer1::InterfaceInfo const info = creator.getInterfaceInfo();
    return info.kind != nullptr && std::strcmp(info.kind, kQUICK_KIND) == 0;
}

#if ORACLE_HAS_QUICK

namespace
{

using namespace nvinfer1;

using Request = QuickPluginCreationRequest;

Identity const kQUICK{"quick_scale_plugin", "1", "sample"};
constexpr int32_t kBLOCK = 128;
constexpr std::array<Request, 4> kAHEAD_OF_TIME{
    Request::kUNKNOWN, Request::kPREFER_JIT, Request::kPREFER_AOT, Request::kSTRICT_AOT};

class OtherExpression final : public ISymExpr
{
public:
    PluginArgType getType() const noexcept override
    {
        return PluginArgType::kINT;
    }
    PluginArgDataType getDataType() const noexcept override
    {
        return PluginArgDataType::kINT8;
    }
    void* getExpr() noexcept override
    {
        return nullptr;
    }
};

std::string quickText(Probe& probe, char const* what, char const* text)
{
    probe.need(text != nullptr, std::string(what) + " null", "a text");
    return text;
}

template <class T>
Identity quickIdentity(Probe& probe, T& named)
{
    return {quickText(probe, "name", named.getPluginName()), quickText(probe, "version", named.getPluginVersion()),
        quickText(probe, "namespace", named.getPluginNamespace())};
}

template <class T>
T& quickCapability(Probe& probe, IPluginV3& plugin, PluginCapabilityType type, char const* kind)
{
    IPluginCapability* found = plugin.getCapabilityInterface(type);
    probe.need(found != nullptr, std::string("no capability ") + kind + " (null)", "a capability");
    InterfaceInfo const info = found->getInterfaceInfo();
    probe.need(info.kind != nullptr && std::strcmp(info.kind, kind) == 0, "kind " + show(info.kind), show(kind));
    probe.equal("major version", info.major, 1);
    probe.equal("minor version", info.minor, 0);
    probe.equal("language", static_cast<int32_t>(found->getAPILanguage()), 0);
    return *static_cast<T*>(found);
}

IPluginV3QuickAOTBuild& quickBuild(Probe& probe, IPluginV3& plugin)
{
    return quickCapability<IPluginV3QuickAOTBuild>(probe, plugin, PluginCapabilityType::kBUILD, "PLUGIN_V3QUICKAOT_BUILD");
}

IPluginV3QuickRuntime& quickRuntime(Probe& probe, IPluginV3& plugin)
{
    return quickCapability<IPluginV3QuickRuntime>(probe, plugin, PluginCapabilityType::kRUNTIME, "PLUGIN_V3QUICK_RUNTIME");
}

struct QuickNode
{
    std::vector<DynamicPluginTensorDesc> inOut;

    explicit QuickNode(DataType type)
    {
        for (int64_t rows : {10, 20, 10})
        {
            DynamicPluginTensorDesc tensor{};
            tensor.desc.dims = Dims{2, {rows, 7}};
            tensor.desc.type = type;
            tensor.desc.format = TensorFormat::kLINEAR;
            tensor.min = tensor.max = tensor.opt = tensor.desc.dims;
            inOut.push_back(tensor);
        }
    }
    std::vector<PluginTensorDesc> descs() const
    {
        return {inOut[0].desc, inOut[1].desc, inOut[2].desc};
    }
};

// Seven launch parameters, then the scalars.
std::vector<int64_t> expectedLaunch(int64_t block, int64_t tactic, int64_t a, int64_t b)
{
    int64_t const count = a * b;
    int64_t const blocks = (count + block * tactic - 1) / (block * tactic);
    return {blocks, a, 2, block, 3, 4, 16 * b, count, a, tactic};
}

struct Launched
{
    Calls calls;
    LaunchParams params{calls};
    Scalars scalars{calls};
    int32_t code{0};

    explicit Launched(int32_t refused = -1)
        : calls(refused)
    {
    }
    Launched(Launched const&) = delete;
    Launched& operator=(Launched const&) = delete;

    void by(IPluginV3QuickAOTBuild& build, Expressions& expressions, DimsExprs const& input)
    {
        QuickNode const node(DataType::kFLOAT);
        code = build.getLaunchParams(&input, node.inOut.data(), 1, 2, &params, &scalars, expressions);
    }

    std::vector<int64_t> evaluated(Probe& probe, Expressions const& expressions, std::vector<int64_t> const& extents)
    {
        std::vector<int64_t> values;
        std::vector<ISymExpr*> all(params.all().begin(), params.all().end());
        all.insert(all.end(), scalars.all().begin(), scalars.all().end());
        for (ISymExpr* expression : all)
        {
            probe.need(expression != nullptr, "null instead of a symbolic expression", "an expression");
            probe.equal("type", static_cast<int32_t>(expression->getType()), static_cast<int32_t>(PluginArgType::kINT));
            probe.equal("data type", static_cast<int32_t>(expression->getDataType()),
                static_cast<int32_t>(PluginArgDataType::kINT32));
            probe.that(dynamic_cast<OtherExpression*>(expression) == nullptr, "another class from dynamic_cast", "null");
            values.push_back(expressions.evaluate(static_cast<IDimensionExpr*>(expression->getExpr()), extents));
        }
        return values;
    }
};

DimsExprs symbolicInput(Expressions& expressions)
{
    DimsExprs dims{};
    dims.nbDims = 2;
    dims.d[0] = expressions.symbol(0);
    dims.d[1] = expressions.symbol(1);
    return dims;
}

class QuickSubject
{
public:
    QuickSubject(Report& report, Logger& logger, QuickCreator& creator)
        : mReport(&report)
        , mLogger(&logger)
        , mCreator(&creator)
    {
    }

    void check(std::string const& name, std::function<void(Probe&)> const& body) const
    {
        mReport->run(kQUICK.name + ": " + name, body);
    }

    Owned make(Probe& probe, int32_t block = kBLOCK) const
    {
        Owned plugin = made({ints("block", {block})}, Request::kSTRICT_AOT);
        probe.need(plugin != nullptr, "null from createPlugin", "a plugin");
        return plugin;
    }

    Owned made(Fields const& fields, Request request) const
    {
        Collection const collection(fields);
        return Owned(mCreator->createPlugin("node", "sample", collection.get(), TensorRTPhase::kBUILD, request));
    }

    void expectError(Probe& probe, std::string const& words, std::function<bool()> const& refuses) const
    {
        mLogger->take();
        probe.that(refuses(), "success", "a refusal");
        std::string const said = firstError(mLogger->take());
        probe.that(said.find(words) != std::string::npos, "the error " + show(said), "one with " + show(words));
    }

private:
    Report* mReport;
    Logger* mLogger;
    QuickCreator* mCreator;
};

void checkQuickCreation(QuickSubject const& subject)
{
    subject.check("a plugin for every request except a strict one for another kind", [&](Probe& probe) {
        for (Request request : kAHEAD_OF_TIME)
        {
            probe.at("request " + show(static_cast<int32_t>(request)));
            probe.that(subject.made({ints("block", {kBLOCK})}, request) != nullptr, "null", "a plugin");
        }
        probe.at("strict JIT");
        subject.expectError(probe, "ahead-of-time",
            [&] { return subject.made({ints("block", {kBLOCK})}, Request::kSTRICT_JIT) == nullptr; });
        probe.at("an unknown request");
        subject.expectError(probe, "77",
            [&] { return subject.made({ints("block", {kBLOCK})}, static_cast<Request>(77)) == nullptr; });
    });
    subject.check("invalid attributes are rejected", [&](Probe& probe) {
        for (Fields const& fields : {Fields{}, Fields{floats("block", {128.0F})}, Fields{ints("block", {0})}})
        {
            subject.expectError(probe, "block", [&] { return subject.made(fields, Request::kSTRICT_AOT) == nullptr; });
        }
    });
    subject.check("interfaces and names", [&](Probe& probe) {
        Owned plugin = subject.make(probe);
        probe.text("kind", plugin->getInterfaceInfo().kind, "PLUGIN");
        auto& core = quickCapability<IPluginV3QuickCore>(
            probe, *plugin, PluginCapabilityType::kCORE, "PLUGIN_V3QUICK_CORE");
        probe.that(quickIdentity(probe, core) == kQUICK, quickIdentity(probe, core).text(), kQUICK.text());
        quickRuntime(probe, *plugin);
        auto const unknown = static_cast<PluginCapabilityType>(3);
        probe.that(plugin->getCapabilityInterface(unknown) == nullptr, "an unknown capability", "null");
        // The parser requests both about a dozen times.
        for (int32_t i = 0; i < 12; ++i)
        {
            for (auto type : {PluginCapabilityType::kCORE, PluginCapabilityType::kBUILD, PluginCapabilityType::kRUNTIME})
            {
                IPluginCapability* again = plugin->getCapabilityInterface(type);
                probe.that(again != nullptr && again == plugin->getCapabilityInterface(type), "another capability", "the same");
                auto* cast = dynamic_cast<IPluginV3QuickRuntime*>(again);
                probe.that(cast == nullptr || static_cast<IPluginCapability*>(cast) == again, "another object from dynamic_cast",
                    "null or the same");
            }
        }
    });
}

void checkQuickOutputs(QuickSubject const& subject)
{
    subject.check("outputs: number, types and shapes", [&](Probe& probe) {
        Owned plugin = subject.make(probe);
        auto& build = quickBuild(probe, *plugin);
        probe.equal("outputs", build.getNbOutputs(), 2);
        for (DataType type : {DataType::kHALF, DataType::kFLOAT})
        {
            DataType types[2]{DataType::kINT8, DataType::kINT8};
            int32_t rank = 2;
            probe.equal("code", build.getOutputDataTypes(types, 2, &type, &rank, 1), 0);
            probe.that(types[0] == type && types[1] == type, "other types", "the input's");
            rank = 0;
            subject.expectError(probe, "rank", [&] { return build.getOutputDataTypes(types, 2, &type, &rank, 1) != 0; });
        }
        Expressions expressions(2);
        DimsExprs const input = symbolicInput(expressions);
        std::vector<DimsExprs> outputs(2);
        probe.equal("code", build.getOutputShapes(&input, 1, nullptr, 0, outputs.data(), 2, expressions), 0);
        std::vector<Shape> const shapes = expressions.evaluate(probe, outputs, {5, 7});
        probe.equal("output 0", shapes[0], Shape{10, 7});
        probe.equal("output 1", shapes[1], Shape{5, 7});
        probe.that(expressions.faults().empty(), "a fault of the expressions", "none");
    });
    subject.check("a builder that returns null is an error", [&](Probe& probe) {
        Owned plugin = subject.make(probe);
        Expressions expressions(2);
        DimsExprs const input = symbolicInput(expressions);
        expressions.fail(true);
        Launched launched;
        launched.by(quickBuild(probe, *plugin), expressions, input);
        probe.that(launched.code != 0, "success", "a code");
    });
    subject.check("getAliasedInput, tactics and texts", [&](Probe& probe) {
        Owned plugin = subject.make(probe);
        auto& build = quickBuild(probe, *plugin);
        QuickNode const node(DataType::kHALF);
        probe.equal("configured", build.configurePlugin(node.inOut.data(), 1, node.inOut.data() + 1, 2), 0);
        probe.equal("output 0", build.getAliasedInput(0), -1);
        probe.equal("output 1", build.getAliasedInput(1), 0);
        int32_t tactics[2]{};
        probe.equal("tactics", build.getNbTactics(), 2);
        probe.equal("code", build.getValidTactics(tactics, 2), 0);
        probe.that(tactics[0] == 2 && tactics[1] == 1, show(tactics[0]) + " and " + show(tactics[1]), "2 and 1");
        probe.text("timing cache ID", build.getTimingCacheID(), "block 128");
        probe.text("metadata", build.getMetadataString(), "quick_scale_plugin, blocks of 128");
        probe.text("metadata, asked again", build.getMetadataString(), "quick_scale_plugin, blocks of 128");
    });
}

void checkQuickFormats(QuickSubject const& subject)
{
    subject.check("format combinations, within the buffer", [&](Probe& probe) {
        Owned plugin = subject.make(probe);
        auto& build = quickBuild(probe, *plugin);
        QuickNode const node(DataType::kINT8);
        probe.need(build.getNbSupportedFormatCombinations(node.inOut.data(), 1, 2) == 2, "another number", "2");
        for (int32_t wanted : {2, 1})
        {
            // Surplus elements must stay unchanged.
            PluginTensorDesc const canary{Dims{-1, {}}, DataType::kE8M0, TensorFormat::kDLA_HWC4, 3.0F};
            std::vector<PluginTensorDesc> room(9, canary);
            int32_t const code
                = build.getSupportedFormatCombinations(node.inOut.data(), 1, 2, room.data(), wanted);
            probe.equal("code", code, 0);
            for (size_t i = 0; i < room.size(); ++i)
            {
                probe.at(show(wanted) + " rows, tensor " + show(static_cast<uint64_t>(i)));
                bool const isWritten = i < static_cast<size_t>(wanted) * 3;
                DataType const type = i < 3 ? DataType::kHALF : DataType::kFLOAT;
                probe.equal("type", static_cast<int32_t>(room[i].type), static_cast<int32_t>(isWritten ? type : canary.type));
                TensorFormat const format = isWritten ? TensorFormat::kLINEAR : canary.format;
                probe.equal("format", static_cast<int32_t>(room[i].format), static_cast<int32_t>(format));
            }
        }
        std::vector<PluginTensorDesc> room(9);
        subject.expectError(probe, "3 format combinations",
            [&] { return build.getSupportedFormatCombinations(node.inOut.data(), 1, 2, room.data(), 3) != 0; });
    });
}

void checkQuickLaunch(QuickSubject const& subject)
{
    subject.check("launch parameters and scalars, for every tactic", [&](Probe& probe) {
        Owned plugin = subject.make(probe);
        auto& build = quickBuild(probe, *plugin);
        Expressions expressions(2);
        DimsExprs const input = symbolicInput(expressions);
        Launched launches[3];
        for (int32_t tactic : {0, 1, 2})
        {
            probe.equal("setTactic", build.setTactic(tactic), 0);
            launches[tactic].by(build, expressions, input);
        }
        for (int64_t tactic : {0, 1, 2})
        {
            probe.at("tactic " + show(tactic));
            Launched& launched = launches[tactic];
            probe.need(launched.code == 0, "code " + show(launched.code), "0");
            probe.equal("calls", static_cast<uint64_t>(launched.calls.names().size()), uint64_t{11});
            for (std::vector<int64_t> const& extents : {std::vector<int64_t>{10, 7}, std::vector<int64_t>{4096, 33}})
            {
                int64_t const width = tactic == 0 ? 1 : tactic;
                probe.equal("launch", launched.evaluated(probe, expressions, extents),
                    expectedLaunch(kBLOCK, width, extents[0], extents[1]));
            }
        }
        probe.that(expressions.faults().empty(), "a fault of the expressions", "none");
    });
    subject.check("a rejected launch value is an error that names it", [&](Probe& probe) {
        Owned plugin = subject.make(probe);
        auto& build = quickBuild(probe, *plugin);
        Expressions expressions(2);
        DimsExprs const input = symbolicInput(expressions);
        for (int32_t refused = 0; refused < 11; ++refused)
        {
            probe.at("call " + show(refused));
            Launched launched(refused);
            std::string name;
            subject.expectError(probe, " returned false", [&] {
                launched.by(build, expressions, input);
                name = launched.calls.names().back();
                return launched.code != 0;
            });
            probe.equal("calls", static_cast<uint64_t>(launched.calls.names().size()), static_cast<uint64_t>(refused) + 1);
            Launched again(refused);
            subject.expectError(probe, name, [&] {
                again.by(build, expressions, input);
                return again.code != 0;
            });
        }
    });
    subject.check("8 threads launch at once", [&](Probe& probe) {
        Owned plugin = subject.make(probe);
        auto& build = quickBuild(probe, *plugin);
        constexpr size_t kTHREADS = 8;
        std::vector<Probe> own(kTHREADS, Probe::forThread());
        std::vector<std::thread> threads;
        for (size_t i = 0; i < kTHREADS; ++i)
        {
            threads.emplace_back([&build, &probe = own[i]] {
                Expressions expressions(2);
                DimsExprs const input = symbolicInput(expressions);
                for (int32_t round = 0; round < 50; ++round)
                {
                    Launched launched;
                    launched.by(build, expressions, input);
                    probe.equal("launch", launched.evaluated(probe, expressions, {10, 7}), expectedLaunch(kBLOCK, 1, 10, 7));
                }
            });
        }
        for (std::thread& thread : threads)
        {
            thread.join();
        }
        for (Probe const& one : own)
        {
            probe.that(!one.failed(), one.message(), "every launch");
        }
    });
}

struct Kernel
{
    int32_t code{0};
    char const* name{nullptr};
    char* compiled{nullptr};
    int32_t size{-1};

    Kernel(IPluginV3QuickAOTBuild& build, DataType type)
    {
        std::vector<PluginTensorDesc> const descs = QuickNode(type).descs();
        code = build.getKernel(descs.data(), 1, descs.data() + 1, 2, &name, &compiled, &size);
    }
};

void checkQuickKernel(QuickSubject const& subject)
{
    subject.check("a kernel for each type and tactic, at a stable address", [&](Probe& probe) {
        Owned plugin = subject.make(probe);
        auto& build = quickBuild(probe, *plugin);
        std::vector<std::pair<Kernel, std::string>> found;
        for (int32_t tactic : {1, 2})
        {
            for (DataType type : {DataType::kHALF, DataType::kFLOAT})
            {
                probe.equal("setTactic", build.setTactic(tactic), 0);
                Kernel const kernel(build, type);
                probe.need(kernel.code == 0 && kernel.compiled != nullptr, "code " + show(kernel.code), "a kernel");
                std::string const name = type == DataType::kHALF ? "scale_f16" : "scale_f32";
                probe.text("name", kernel.name, name.c_str());
                found.emplace_back(kernel, "// " + name + " " + show(tactic) + "\n.version 8.0\n");
            }
        }
        for (auto const& [kernel, text] : found)
        {
            probe.need(kernel.size == static_cast<int32_t>(text.size()), "size " + show(kernel.size), show(text));
            probe.equal("code", std::string(kernel.compiled, static_cast<size_t>(kernel.size)), text);
        }
        Kernel const again(build, DataType::kFLOAT);
        probe.that(again.compiled == found.back().first.compiled, "other memory at a later call", "the same");
        subject.expectError(probe, "type", [&] { return Kernel(build, DataType::kINT8).code != 0; });
    });
}

void checkQuickLife(QuickSubject const& subject)
{
    subject.check("the runtime interface has a tactic and no work", [&](Probe& probe) {
        Owned plugin = subject.make(probe);
        auto& runtime = quickRuntime(probe, *plugin);
        probe.equal("setTactic", runtime.setTactic(2), 0);
        subject.expectError(probe, "tactic", [&] { return runtime.setTactic(3) != 0; });
        PluginFieldCollection const* fields = runtime.getFieldsToSerialize();
        probe.need(fields != nullptr, "null from getFieldsToSerialize", "a collection");
        probe.equal("fields", fields->nbFields, 0);
        std::vector<PluginTensorDesc> const descs = QuickNode(DataType::kHALF).descs();
        Dims const strides{2, {7, 1}};
        void const* input = nullptr;
        void* outputs[2]{};
        subject.expectError(probe, "whose kernel TensorRT launches", [&] {
            return runtime.enqueue(descs.data(), descs.data() + 1, &input, outputs, &strides, &strides, 1, 2, nullptr) != 0;
        });
    });
    subject.check("clones are independent and outlive their original", [&](Probe& probe) {
        Owned plugin = subject.make(probe);
        probe.equal("setTactic", quickBuild(probe, *plugin).setTactic(2), 0);
        Owned copy = cloneOf(probe, *plugin);
        probe.equal("setTactic", quickBuild(probe, *copy).setTactic(1), 0);
        Expressions expressions(2);
        DimsExprs const input = symbolicInput(expressions);
        Launched original;
        original.by(quickBuild(probe, *plugin), expressions, input);
        probe.equal("the original", original.evaluated(probe, expressions, {10, 7}), expectedLaunch(kBLOCK, 2, 10, 7));
        Launched before;
        before.by(quickBuild(probe, *copy), expressions, input);
        plugin.reset();
        probe.equal("the clone, after its original", before.evaluated(probe, expressions, {10, 7}),
            expectedLaunch(kBLOCK, 1, 10, 7));
        Kernel const kernel(quickBuild(probe, *copy), DataType::kHALF);
        probe.text("its kernel", kernel.name, "scale_f16");
    });
    subject.check("two plugins share no attributes", [&](Probe& probe) {
        Owned one = subject.make(probe, 32);
        Owned other = subject.make(probe, 64);
        probe.text("timing cache ID", quickBuild(probe, *one).getTimingCacheID(), "block 32");
        probe.text("timing cache ID", quickBuild(probe, *other).getTimingCacheID(), "block 64");
    });
}

void checkQuickCreator(Probe& probe, Logger& logger, QuickCreator& creator, Identity& first)
{
    first = quickIdentity(probe, creator);
    probe.at(first.text());
    probe.that(!first.name.empty() && !first.version.empty(), "an empty name or version", "some text");
    probe.that(quickIdentity(probe, creator) == first, "other names at a later call", first.text());
    PluginFieldCollection const* names = creator.getFieldNames();
    probe.need(names != nullptr && names == creator.getFieldNames(), "no collection that stays", "a collection");
    for (int32_t i = 0; i < names->nbFields; ++i)
    {
        probe.need(names->fields != nullptr && names->fields[i].name != nullptr, "a field without a name", "a name");
    }
    Collection const strange({floats("no_such_field", {1.0F})});
    for (auto phase : {TensorRTPhase::kBUILD, TensorRTPhase::kRUNTIME})
    {
        for (int32_t request = -1; request < 6; ++request)
        {
            for (PluginFieldCollection const* fields : {strange.get(), static_cast<PluginFieldCollection const*>(nullptr)})
            {
                logger.take();
                Owned plugin(creator.createPlugin("node", "", fields, phase, static_cast<Request>(request)));
                probe.that(plugin != nullptr || !firstError(logger.take()).empty(), "a rejection without an error in the log",
                    "the plugin's own message");
            }
        }
    }
    Owned nameless(creator.createPlugin(nullptr, nullptr, strange.get(), TensorRTPhase::kBUILD, Request::kSTRICT_AOT));
    logger.take();
}

}

void checkQuick(Report& report, Logger& logger, Library const& library)
{
    Probe probe;
    for (IPluginCreatorInterface* any : library.creators(probe))
    {
        if (!isQuick(*any))
        {
            continue;
        }
        auto& creator = *static_cast<QuickCreator*>(any);
        Identity identity;
        report.run("quick: a creator keeps its names and tolerates invalid fields", [&](Probe& inner) {
            auto* cast = dynamic_cast<QuickCreator*>(any);
            inner.that(cast == nullptr || cast == &creator, "another object from dynamic_cast", "null or the same");
            checkQuickCreator(inner, logger, creator, identity);
        });
        if (!(identity == kQUICK))
        {
            continue;
        }
        QuickSubject const subject(report, logger, creator);
        checkQuickCreation(subject);
        checkQuickOutputs(subject);
        checkQuickFormats(subject);
        checkQuickLaunch(subject);
        checkQuickKernel(subject);
        checkQuickLife(subject);
    }
}

#else

void checkQuick(Report& report, Logger&, Library const& library)
{
    Probe probe;
    for (nvinfer1::IPluginCreatorInterface* any : library.creators(probe))
    {
        if (isQuick(*any))
        {
            report.skip("quick: a creator", "these headers have no quick plugins");
        }
    }
}

#endif

}
