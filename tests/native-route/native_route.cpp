// Copyright of the Cubinder authors; Apache-2.0.
//
// Full TensorRT for plugins that it launches itself. Never: knows a plugin or the expected results. Reads nodes from
// standard input and answers each with lines that end with `end`.
//
//   node NAME NAMESPACE VERSION
//   attr NAME TYPE COUNT VALUE...        (TensorRT's number of the type; i32, i64, f32, f64, i8, and char by its code)
//   in TYPE FORMAT RANK EXTENT...        (for each input)
//   out TYPE FORMAT                      (for each output)
//   also EXTENT...                       (of all inputs: other shapes; the profile spans them all)
//   run
//
//   shape EXTENT...                      (for each output)
//   launch TACTIC SHAPES GRID GRID GRID BLOCK BLOCK BLOCK SHARED COUNT SCALAR... SYMBOL BYTES DIGEST
//                                        (SHAPES is 0 for the node's, 1 for the first of the others)
//   undefined TACTIC SHAPES              (TensorRT would divide by zero)
//   refused TEXT
//   end
#include "../conformance/expressions.hpp"
#include "../conformance/fields.hpp"
#include "../conformance/host.hpp"
#include "../conformance/library.hpp"
#include "../conformance/quick.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>

using namespace nvinfer1;
using namespace oracle;

namespace
{

struct Tensor
{
    DataType type;
    TensorFormat format;
    Shape shape;
};

struct Node
{
    Identity op;
    Fields attributes;
    std::vector<Tensor> inputs;
    std::vector<Tensor> outputs;
    // All inputs' extents: the node's, then others.
    std::vector<Shape> points;
};

template <class T>
T word(std::istream& from)
{
    T value{};
    if (!(from >> value))
        throw std::runtime_error("a word is missing");
    return value;
}

template <class T>
void appendNumber(std::vector<uint8_t>& bytes, T value)
{
    auto const* first = reinterpret_cast<uint8_t const*>(&value);
    bytes.insert(bytes.end(), first, first + sizeof(T));
}

Field attribute(std::istream& from)
{
    Field field;
    field.name = word<std::string>(from);
    field.type = static_cast<PluginFieldType>(word<int32_t>(from));
    field.length = word<int32_t>(from);
    for (int32_t i = 0; i < field.length; ++i)
    {
        switch (field.type)
        {
        case PluginFieldType::kINT8:
        case PluginFieldType::kCHAR: appendNumber(field.bytes, static_cast<char>(word<int32_t>(from))); break;
        case PluginFieldType::kINT32: appendNumber(field.bytes, word<int32_t>(from)); break;
        case PluginFieldType::kINT64: appendNumber(field.bytes, word<int64_t>(from)); break;
        case PluginFieldType::kFLOAT32: appendNumber(field.bytes, word<float>(from)); break;
        case PluginFieldType::kFLOAT64: appendNumber(field.bytes, word<double>(from)); break;
        default: throw std::runtime_error("an attribute of another type");
        }
    }
    return field;
}

Tensor tensor(std::istream& from, bool withShape)
{
    Tensor tensor{};
    tensor.type = static_cast<DataType>(word<int32_t>(from));
    tensor.format = static_cast<TensorFormat>(word<int32_t>(from));
    if (withShape)
        for (int32_t rank = word<int32_t>(from); rank > 0; --rank)
            tensor.shape.push_back(word<int64_t>(from));
    return tensor;
}

DynamicPluginTensorDesc described(Tensor const& tensor, Shape const& least, Shape const& most)
{
    DynamicPluginTensorDesc found{};
    found.desc.type = tensor.type;
    found.desc.format = tensor.format;
    found.desc.dims.nbDims = static_cast<int32_t>(least.size());
    found.min = found.max = found.desc.dims;
    for (size_t i = 0; i < least.size(); ++i)
    {
        found.desc.dims.d[i] = -1;
        found.min.d[i] = least[i];
        found.max.d[i] = most[i];
    }
    found.opt = found.max;
    return found;
}

Shape ends(std::vector<Shape> const& points, int64_t const& (*end)(int64_t const&, int64_t const&))
{
    Shape found = points.front();
    for (Shape const& point : points)
        for (size_t i = 0; i < found.size(); ++i)
            found[i] = end(found[i], point.at(i));
    return found;
}

std::vector<PluginTensorDesc> descs(std::vector<DynamicPluginTensorDesc> const& tensors)
{
    std::vector<PluginTensorDesc> found;
    for (auto const& tensor : tensors)
        found.push_back(tensor.desc);
    return found;
}

uint64_t digestOf(char const* bytes, int32_t size)
{
    uint64_t hash = 1469598103934665603ULL;
    for (int32_t i = 0; i < size; ++i)
        hash = (hash ^ static_cast<uint8_t>(bytes[i])) * 1099511628211ULL;
    return hash;
}

class Refusal : public std::runtime_error
{
    using std::runtime_error::runtime_error;
};

class Player
{
public:
    Player(Library const& library, Logger& logger)
        : mLibrary(&library)
        , mLogger(&logger)
    {
    }

    void play(Node const& node)
    {
        mLogger->take();
        try
        {
            playIt(node);
        }
        catch (Refusal const& refusal)
        {
            std::string said = firstError(mLogger->take());
            for (char& c : said)
                c = c == '\n' ? ' ' : c;
            std::cout << "refused " << refusal.what() << ": " << said << "\n";
        }
        std::cout << "end" << std::endl;
    }

private:
    QuickCreator& creatorOf(Identity const& op)
    {
        Probe probe;
        for (IPluginCreatorInterface* creator : mLibrary->creators(probe))
        {
            if (!isQuick(*creator))
                continue;
            auto& quick = static_cast<QuickCreator&>(*creator);
            if (op == Identity{quick.getPluginName(), quick.getPluginVersion(), quick.getPluginNamespace()})
                return quick;
        }
        throw Refusal("no creator");
    }

    void playIt(Node const& node)
    {
        QuickCreator& creator = creatorOf(node.op);
        Collection const collection(node.attributes);
        Owned const plugin(creator.createPlugin("node", node.op.space.c_str(), collection.get(), TensorRTPhase::kBUILD,
            QuickPluginCreationRequest::kSTRICT_AOT));
        if (plugin == nullptr)
            throw Refusal("createPlugin");
        auto* capability = plugin->getCapabilityInterface(PluginCapabilityType::kBUILD);
        if (capability == nullptr || std::strcmp(capability->getInterfaceInfo().kind, "PLUGIN_V3QUICKAOT_BUILD") != 0)
            throw Refusal("getCapabilityInterface");
        auto& build = static_cast<IPluginV3QuickAOTBuild&>(*capability);
        auto const inputs = static_cast<int32_t>(node.inputs.size());
        auto const outputs = build.getNbOutputs();
        if (outputs != static_cast<int32_t>(node.outputs.size()))
            throw Refusal("getNbOutputs");

        std::vector<DataType> types(outputs), given;
        std::vector<int32_t> ranks;
        int32_t known = 0;
        Expressions expressions(outputs);
        std::vector<DimsExprs> shapes;
        for (Tensor const& input : node.inputs)
        {
            given.push_back(input.type);
            ranks.push_back(static_cast<int32_t>(input.shape.size()));
            DimsExprs dims{};
            dims.nbDims = ranks.back();
            for (int32_t i = 0; i < dims.nbDims; ++i)
            {
                dims.d[i] = expressions.symbol(known++);
            }
            shapes.push_back(dims);
        }
        if (build.getOutputDataTypes(types.data(), outputs, given.data(), ranks.data(), inputs) != 0)
            throw Refusal("getOutputDataTypes");
        std::vector<DimsExprs> made(outputs);
        if (build.getOutputShapes(shapes.data(), inputs, nullptr, 0, made.data(), outputs, expressions) != 0)
            throw Refusal("getOutputShapes");
        Probe probe;
        std::vector<Shape> const extents = expressions.evaluate(probe, made, node.points.front());

        std::vector<DynamicPluginTensorDesc> inOut;
        Shape const least = ends(node.points, std::min<int64_t>), most = ends(node.points, std::max<int64_t>);
        auto from = least.begin(), to = most.begin();
        for (Tensor const& input : node.inputs)
        {
            auto const rank = static_cast<std::ptrdiff_t>(input.shape.size());
            inOut.push_back(described(input, Shape(from, from + rank), Shape(to, to + rank)));
            from += rank;
            to += rank;
        }
        for (int32_t i = 0; i < outputs; ++i)
        {
            Tensor const& output = node.outputs[i];
            inOut.push_back(described(output, extents[i], extents[i]));
            std::cout << "shape";
            for (int64_t extent : extents[i])
                std::cout << " " << extent;
            std::cout << "\n";
        }
        int32_t const count = build.getNbSupportedFormatCombinations(inOut.data(), inputs, outputs);
        if (count <= 0)
            throw Refusal("getNbSupportedFormatCombinations");
        std::vector<PluginTensorDesc> rows(static_cast<size_t>(count) * inOut.size());
        if (build.getSupportedFormatCombinations(inOut.data(), inputs, outputs, rows.data(), count) != 0)
            throw Refusal("getSupportedFormatCombinations");
        if (!isOffered(node, rows))
            throw Refusal("the combination is not offered");
        if (build.configurePlugin(inOut.data(), inputs, inOut.data() + inputs, outputs) != 0)
            throw Refusal("configurePlugin");
        std::vector<int32_t> tactics(static_cast<size_t>(build.getNbTactics()));
        if (build.getValidTactics(tactics.data(), static_cast<int32_t>(tactics.size())) != 0)
            throw Refusal("getValidTactics");
        std::vector<PluginTensorDesc> const all = descs(inOut);
        for (int32_t tactic : tactics)
        {
            if (build.setTactic(tactic) != 0)
                throw Refusal("setTactic");
            Calls calls;
            LaunchParams params(calls);
            Scalars scalars(calls);
            if (build.getLaunchParams(shapes.data(), inOut.data(), inputs, outputs, &params, &scalars, expressions) != 0)
                throw Refusal("getLaunchParams");
            char const* symbol = nullptr;
            char* code = nullptr;
            int32_t size = 0;
            if (build.getKernel(all.data(), inputs, all.data() + inputs, outputs, &symbol, &code, &size) != 0)
                throw Refusal("getKernel");
            // TensorRT 11.4 reads a C string.
            if (code[size] != '\0')
                throw Refusal("the code ends without a NUL");
            for (size_t point = 0; point < node.points.size(); ++point)
            {
                std::ostringstream line;
                try
                {
                    line << "launch " << tactic << " " << point;
                    for (ISymExpr* expression : params.all())
                        line << " " << valueOf(expressions, expression, node.points[point]);
                    line << " " << scalars.all().size();
                    for (ISymExpr* expression : scalars.all())
                        line << " " << valueOf(expressions, expression, node.points[point]);
                    line << " " << symbol << " " << size << " " << digestOf(code, size);
                }
                catch (Refusal const&)
                {
                    throw;
                }
                catch (std::runtime_error const&)
                {
                    line.str("undefined " + std::to_string(tactic) + " " + std::to_string(point));
                }
                std::cout << line.str() << "\n";
            }
        }
        for (std::string const& fault : expressions.faults())
            throw Refusal("a fault of the expressions, " + fault);
    }

    static bool isOffered(Node const& node, std::vector<PluginTensorDesc> const& rows)
    {
        std::vector<Tensor> tensors = node.inputs;
        tensors.insert(tensors.end(), node.outputs.begin(), node.outputs.end());
        for (size_t row = 0; row + tensors.size() <= rows.size(); row += tensors.size())
        {
            bool same = true;
            for (size_t i = 0; i < tensors.size(); ++i)
                same = same && rows[row + i].type == tensors[i].type && rows[row + i].format == tensors[i].format;
            if (same)
                return true;
        }
        return false;
    }

    static int64_t valueOf(Expressions const& expressions, ISymExpr* expression, std::vector<int64_t> const& values)
    {
        if (expression == nullptr || expression->getType() != PluginArgType::kINT
            || expression->getDataType() != PluginArgDataType::kINT32)
            throw Refusal("a symbolic expression of another kind");
        return expressions.evaluate(static_cast<IDimensionExpr*>(expression->getExpr()), values);
    }

    Library const* mLibrary;
    Logger* mLogger;
};

}

extern "C" __attribute__((visibility("default"))) int nativeRouteMain(int argc, char** argv)
{
    if (argc != 2)
    {
        std::cerr << "usage: native-route LIBRARY < NODES\n";
        return 2;
    }
    try
    {
        Logger logger;
        Finder finder(logger);
        Library const library(argv[1]);
        library.setLoggerFinder(&finder);
        Player player(library, logger);
        Node node;
        std::string what;
        while (std::cin >> what)
        {
            if (what == "node")
            {
                node = Node{};
                node.op.name = word<std::string>(std::cin);
                node.op.space = word<std::string>(std::cin);
                node.op.version = word<std::string>(std::cin);
            }
            else if (what == "attr")
                node.attributes.push_back(attribute(std::cin));
            else if (what == "in")
            {
                node.inputs.push_back(tensor(std::cin, true));
                node.points.resize(1);
                Shape const& shape = node.inputs.back().shape;
                node.points[0].insert(node.points[0].end(), shape.begin(), shape.end());
            }
            else if (what == "out")
                node.outputs.push_back(tensor(std::cin, false));
            else if (what == "also")
            {
                node.points.emplace_back();
                for (size_t i = 0; i < node.points[0].size(); ++i)
                    node.points.back().push_back(word<int64_t>(std::cin));
            }
            else if (what == "run")
                player.play(node);
            else
                throw std::runtime_error("unknown word " + what);
        }
        return 0;
    }
    catch (std::exception const& error)
    {
        std::cerr << "native-route: " << error.what() << "\n";
        return 2;
    }
}
