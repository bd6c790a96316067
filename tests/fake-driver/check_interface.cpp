// Copyright of the Cubinder authors; Apache-2.0.
//
// The C interface of `cubinder_runtime.h` queues what engines queue.
#include "../../runtime-plugin/include/cubinder_runtime.h"
#include "general.hpp"

#include <algorithm>
#include <dlfcn.h>

namespace oracle
{

namespace
{

constexpr int32_t kSHAPE_INPUT_TYPE = 8;

class Interface
{
public:
    Interface(Probe& probe, std::string const& path)
        : mLibrary(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
    {
        probe.need(mLibrary != nullptr, show(dlerror()), "an open library");
        find(probe, "cubinder_interface_version", version);
        find(probe, "cubinder_free_message", free);
        find(probe, "cubinder_operator_create", create);
        find(probe, "cubinder_operator_destroy", destroy);
        find(probe, "cubinder_operator_output_types", types);
        find(probe, "cubinder_operator_output_shapes", shapes);
        find(probe, "cubinder_operator_shape_program", program);
        find(probe, "cubinder_operator_run", run);
    }
    Interface(Interface const&) = delete;
    Interface& operator=(Interface const&) = delete;
    ~Interface()
    {
        dlclose(mLibrary);
    }

    std::string text(char* message) const
    {
        std::string const text = message == nullptr ? "" : message;
        free(message);
        return text;
    }

    decltype(&cubinder_interface_version) version;
    decltype(&cubinder_free_message) free;
    decltype(&cubinder_operator_create) create;
    decltype(&cubinder_operator_destroy) destroy;
    decltype(&cubinder_operator_output_types) types;
    decltype(&cubinder_operator_output_shapes) shapes;
    decltype(&cubinder_operator_shape_program) program;
    decltype(&cubinder_operator_run) run;

private:
    template <class F>
    void find(Probe& probe, char const* name, F& function)
    {
        function = reinterpret_cast<F>(dlsym(mLibrary, name));
        probe.need(function != nullptr, "no " + show(name), "a function");
    }

    void* mLibrary;
};

// With linear tensors. Shape inputs follow the others.
class Operator
{
public:
    Operator(Probe& probe, Interface const& interface, Facts const& facts, Combination const& combination, Given const& given)
        : mInterface(interface)
        , mFacts(facts)
    {
        Collection const fields(facts.attributesOf(given.attribute));
        std::vector<CubinderAttribute> attributes;
        for (int32_t i = 0; i < fields.get()->nbFields; ++i)
        {
            nvinfer1::PluginField const& field = fields.get()->fields[i];
            attributes.push_back({field.name, field.data, static_cast<int32_t>(field.type), field.length});
        }
        std::vector<int32_t> types(combination.types.begin(), combination.types.begin() + facts.inputs);
        types.insert(types.end(), static_cast<size_t>(facts.shapeInputs), kSHAPE_INPUT_TYPE);
        std::string const name = facts.op.space + "::" + facts.op.name + "@" + facts.op.version;
        std::string const error = interface.text(interface.create(name.c_str(), attributes.data(),
            static_cast<int32_t>(attributes.size()), types.data(), static_cast<int32_t>(types.size()), &mOperator));
        probe.need(error.empty(), error, "an operator");
    }
    Operator(Operator const&) = delete;
    Operator& operator=(Operator const&) = delete;
    ~Operator()
    {
        mInterface.destroy(mOperator);
    }

    CubinderOperator* get() const
    {
        return mOperator;
    }

    std::vector<Shape> outputs(Probe& probe, Given const& given, int64_t const* sizes) const
    {
        Inputs const in(given);
        size_t const count = static_cast<size_t>(mFacts.outputs);
        std::vector<int32_t> ranks(count);
        std::vector<int64_t> extents(count * CUBINDER_MAX_RANK);
        std::string const error = mInterface.text(mInterface.shapes(mOperator, in.ranks.data(), in.count(),
            in.extents.data(), in.total(), sizes, ranks.data(), extents.data(), mFacts.outputs));
        probe.need(error.empty(), error, "shapes");
        std::vector<Shape> shapes;
        for (size_t i = 0; i < count; ++i)
        {
            auto const first = extents.begin() + static_cast<std::ptrdiff_t>(i * CUBINDER_MAX_RANK);
            shapes.emplace_back(first, first + ranks[i]);
        }
        return shapes;
    }

    // Returns the error's text.
    std::string run(Given const& given, Memory const& memory, uint64_t workspace, uint64_t& needed) const
    {
        Inputs const in(given);
        std::vector<void const*> inputs;
        std::vector<void*> outputs;
        for (int32_t i = 0; i < mFacts.inputs + mFacts.outputs; ++i)
        {
            void* const address = reinterpret_cast<void*>(memory.address(static_cast<size_t>(i)));
            i < mFacts.inputs ? inputs.push_back(address) : outputs.push_back(address);
        }
        CubinderCall call{in.ranks.data(), in.extents.data(), inputs.data(), outputs.data(),
            reinterpret_cast<void*>(memory.workspace()), workspace, stream(), in.count(), in.total(), mFacts.inputs,
            mFacts.outputs};
        return mInterface.text(mInterface.run(mOperator, &call, &needed));
    }

private:
    struct Inputs
    {
        explicit Inputs(Given const& given)
        {
            std::vector<Shape> all = given.inputs;
            all.insert(all.end(), given.values.begin(), given.values.end());
            for (Shape const& part : all)
            {
                ranks.push_back(static_cast<int32_t>(part.size()));
                extents.insert(extents.end(), part.begin(), part.end());
            }
        }
        int32_t count() const
        {
            return static_cast<int32_t>(ranks.size());
        }
        int32_t total() const
        {
            return static_cast<int32_t>(extents.size());
        }
        std::vector<int32_t> ranks;
        std::vector<int64_t> extents;
    };

    Interface const& mInterface;
    Facts const& mFacts;
    CubinderOperator* mOperator{nullptr};
};

std::vector<Combination> linear(Facts const& facts)
{
    std::vector<Combination> all = facts.combinations();
    auto const isOther = [](Combination const& one) {
        return std::any_of(one.formats.begin(), one.formats.end(), [](int32_t format) { return format != 0; });
    };
    all.erase(std::remove_if(all.begin(), all.end(), isOther), all.end());
    return all;
}

bool hasInterface(std::string const& path)
{
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    bool const has = library != nullptr && dlsym(library, "cubinder_interface_version") != nullptr;
    if (library != nullptr)
    {
        dlclose(library);
    }
    return has;
}

// Data-dependent sizes are at their bounds.
std::vector<Shape> bounded(Facts const& facts, Given const& given)
{
    std::vector<Shape> shapes = facts.outputShapes(given);
    for (SizeBound const& bound : facts.sizes ? facts.sizes(given) : std::vector<SizeBound>{})
    {
        for (Shape& shape : shapes)
        {
            std::replace(shape.begin(), shape.end(), sizeIn(bound.output), bound.upper);
        }
    }
    return shapes;
}

void runOperator(Session const& session, Probe& probe, Operator const& op, General const& plugin,
    Combination const& combination, Given const& given)
{
    Facts const& facts = plugin.facts;
    probe.that(op.outputs(probe, given, nullptr) == bounded(facts, given), "other output shapes", "those of the facts");
    uint64_t needed = 0;
    session.forget();
    std::string error = op.run(given, Memory(facts, combination, given, 0), 0, needed);
    probe.need(error.empty(), error, "the needed workspace");
    if (needed > 0)
    {
        expectQueued(session, probe, {});
    }
    for (bool const apart : {false, true})
    {
        Memory const memory(facts, combination, given, needed, apart);
        memory.announce(session.bench.driver);
        session.forget();
        error = op.run(given, memory, needed, needed);
        probe.need(error.empty(), error, "queued work");
        expectQueued(session, probe, plugin.steps(combination, given, 0, memory));
    }
}

void checkMistakes(Session const& session, Probe& probe, Interface const& interface, General const& plugin)
{
    Bench const& bench = session.bench;
    Facts const& facts = plugin.facts;
    Combination const combination = linear(facts)[0];
    Given const given = facts.given();
    CubinderOperator* created = nullptr;
    auto const expect = [&](char* message, std::string const& part) {
        std::string const text = interface.text(message);
        probe.that(text.find(part) != std::string::npos, show(text), "an error with " + show(part));
    };
    expect(interface.create("test::missing", nullptr, 0, nullptr, 0, &created), "this library has no plugin `test::missing`");
    expect(interface.create(nullptr, nullptr, 0, nullptr, 0, &created), "the plugin's name is null");
    std::string const name = facts.op.space + "::" + facts.op.name;
    expect(interface.create((name + "@0").c_str(), nullptr, 0, nullptr, 0, &created), "it has ");
    expect(interface.create(name.c_str(), nullptr, 0, nullptr, 0, nullptr), "a result's pointer is null");
    expect(interface.create(name.c_str(), nullptr, 1, nullptr, 0, &created), "attributes: a null pointer");
    probe.equal("an operator", static_cast<void const*>(created), static_cast<void const*>(nullptr));
    Operator const op(probe, interface, facts, combination, given);
    uint64_t needed = 0;
    CubinderCall call{};
    call.rank_count = 1;
    expect(interface.run(nullptr, &call, &needed), "the operator is null");
    expect(interface.run(op.get(), nullptr, &needed), "the call is null");
    expect(interface.run(op.get(), &call, &needed), "ranks: a null pointer");
    Given other = given;
    other.inputs[0][0] = -4;
    session.forget();
    std::string const error = op.run(other, Memory(facts, combination, given, 0), 0, needed);
    probe.that(error.find("is impossible") != std::string::npos, show(error), "a rejected shape");
    expectQueued(session, probe, {});
    // Without a context the workspace is unknown.
    bench.driver.context = 0;
    session.forget();
    std::string const homeless = op.run(given, Memory(facts, combination, given, 0), 0, needed);
    probe.that(homeless.find("no current CUDA context") != std::string::npos, show(homeless), "an error about the context");
    expectQueued(session, probe, {});
    bench.driver.context = 1;
    interface.destroy(nullptr);
    interface.free(nullptr);
}

}

void checkInterface(Bench const& bench, General const& plugin)
{
    Facts const& facts = plugin.facts;
    if (!hasInterface(bench.paths[0]))
    {
        bench.report.skip(facts.op.name, "the library has no C interface");
        return;
    }
    check(bench, facts, "an operator of the C interface queues the steps of an engine", [&](Session const& session, Probe& probe) {
        Interface const interface(probe, bench.paths[0]);
        probe.equal("version", static_cast<uint64_t>(interface.version()), uint64_t{CUBINDER_INTERFACE_VERSION});
        for (Combination const& combination : linear(facts))
        {
            probe.at(combination.text());
            Given const given = facts.given();
            Operator const op(probe, interface, facts, combination, given);
            std::vector<int32_t> types(static_cast<size_t>(facts.outputs));
            probe.equal("types", interface.text(interface.types(op.get(), types.data(), facts.outputs)), std::string());
            std::vector<int32_t> const expected(combination.types.begin() + facts.inputs, combination.types.end());
            probe.that(types == expected, "other output types", "those of the combination");
            for (Given const& shapes : {given, session.subject.greatest(given), given})
            {
                runOperator(session, probe, op, plugin, combination, shapes);
            }
        }
    });
    check(bench, facts, "mistakes in calls of the C interface are errors", [&](Session const& session, Probe& probe) {
        Interface const interface(probe, bench.paths[0]);
        checkMistakes(session, probe, interface, plugin);
    });
}

}
