// Copyright of the Cubinder authors; Apache-2.0.
#include "list.hpp"

#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>

namespace proof
{

namespace
{

std::string word(std::istream& from)
{
    std::string text;
    if (!(from >> text))
        throw std::runtime_error("a word is missing");
    return text;
}

Plugin plugin(std::istream& from)
{
    Plugin found;
    found.name = word(from);
    found.version = word(from);
    found.nameSpace = word(from);
    return found;
}

std::vector<int64_t> extents(std::istream& from)
{
    std::vector<int64_t> found;
    for (std::string text; from >> text;)
        found.push_back(std::stoll(text));
    return found;
}

// `1x3x4x4`; `scalar` has no extents.
std::vector<int64_t> shape(std::string text)
{
    if (text == "scalar")
        return {};
    for (auto& letter : text)
        letter = letter == 'x' ? ' ' : letter;
    std::istringstream words(text);
    return extents(words);
}

template <class T>
T& last(std::vector<T>& all)
{
    if (all.empty())
        throw std::runtime_error("this line belongs to no entry");
    return all.back();
}

void take(List& list, std::istringstream& line)
{
    auto const what = word(line);
    if (what == "library")
        list.libraries.push_back({word(line), {}});
    else if (what == "creator")
        last(list.libraries).plugins.push_back(plugin(line));
    else if (what == "model")
    {
        Model model;
        model.file = word(line);
        model.group = word(line);
        list.models.push_back(model);
    }
    else if (what == "flags")
        last(list.models).flags = static_cast<uint32_t>(std::stoul(word(line)));
    else if (what == "node")
    {
        auto const name = word(line);
        last(list.models).nodes.push_back({name, plugin(line)});
    }
    else if (what == "tensor")
    {
        auto const name = word(line);
        auto const type = word(line);
        last(list.models).tensors.push_back({name, type, {true, extents(line)}});
    }
    else if (what == "profile")
    {
        auto const name = word(line);
        auto& shapes = last(list.models).profile[name];
        for (auto& one : shapes)
            one = shape(word(line));
    }
    else if (what == "refused")
        std::getline(line >> std::ws, last(list.models).refused);
    else if (what == "build")
        last(list.models).isBuilt = true;
    else
        throw std::runtime_error("`" + what + "` is not a list entry");
}

}

std::string Tensor::text() const
{
    std::string shapes;
    for (auto const extent : shape.extents)
        shapes += (shapes.empty() ? "" : ", ") + std::to_string(extent);
    return name + " " + type + " " + (shape.isKnown ? "(" + shapes + ")" : "?");
}

List read(std::string const& path)
{
    std::ifstream file(path);
    if (!file)
        throw std::runtime_error("cannot read the list `" + path + "`");
    List list;
    int32_t number = 0;
    for (std::string text; std::getline(file, text);)
    {
        ++number;
        if (text.empty())
            continue;
        std::istringstream line(text);
        try
        {
            take(list, line);
        }
        catch (std::exception const& error)
        {
            throw std::runtime_error(path + ":" + std::to_string(number) + ": " + error.what());
        }
    }
    return list;
}

Options options(int argc, char** argv)
{
    Options found;
    std::map<std::string, std::function<void(std::string const&)>> const known = {
        {"--list", [&](auto const& value) { found.list = value; }},
        {"--libraries", [&](auto const& value) { found.libraries = value; }},
        {"--kind", [&](auto const& value) { found.kind = "PLUGIN CREATOR_" + value; }},
        {"--stops-at", [&](auto const& value) { found.stopsAt = value; }},
        {"--seconds", [&](auto const& value) { found.seconds = std::stod(value); }},
        {"--table", [&](auto const& value) { found.table = value; }},
        {"--json", [&](auto const& value) { found.json = value; }},
    };
    for (int32_t i = 1; i < argc; ++i)
    {
        std::string const option = argv[i];
        if (option == "--build")
        {
            found.isBuilding = true;
            continue;
        }
        auto const entry = known.find(option);
        if (entry == known.end() || i + 1 == argc)
            throw std::runtime_error("`" + option + "` is not an option, or has no value");
        entry->second(argv[++i]);
    }
    for (auto const* needed : {&found.list, &found.libraries, &found.kind, &found.table, &found.json})
        if (needed->empty())
            throw std::runtime_error("--list, --libraries, --kind, --table and --json are needed");
    auto const slash = found.list.rfind('/');
    found.models = slash == std::string::npos ? "." : found.list.substr(0, slash);
    return found;
}

}
