// Copyright of the Cubinder authors; Apache-2.0.
//
// Reports results: a summary, a table and JSON Lines, flushed per line, so a crash loses none. Never: calls TensorRT.
#pragma once

#include "list.hpp"

#include <fstream>

namespace proof
{

class Differences
{
public:
    void expect(bool isSo, std::string const& otherwise)
    {
        if (!isSo)
            mTexts.push_back(otherwise);
    }

    std::vector<std::string> const& texts() const
    {
        return mTexts;
    }

private:
    std::vector<std::string> mTexts;
};

struct Creator
{
    Plugin plugin;
    std::string kind;
    std::vector<std::string> fields;
};

struct Loaded
{
    std::string library;
    bool isLoaded{};
    double milliseconds{};
    std::vector<Creator> creators;
    Differences differences;
};

struct Layer
{
    std::string name;
    std::string core;
    std::string build;
    Plugin plugin;
};

struct Outcome
{
    bool isParsed{};
    double parseMilliseconds{};
    std::vector<std::string> parserErrors;
    // Number of creations that the parser logged.
    size_t created{};
    std::vector<Layer> plugins;
    std::vector<std::string> layers;
    std::vector<Tensor> tensors;
    std::vector<std::string> log;
    bool isBuildTried{};
    double buildMilliseconds{};
    size_t planBytes{};
    std::string buildError;
    std::vector<std::string> buildLog;
    Differences differences;
};

class Report
{
public:
    explicit Report(Options const& options);

    void versions(int32_t library, int32_t parser);
    void loaded(Loaded const& loaded);
    void said(std::string const& when, std::vector<std::string> const& lines);
    void noBuilder();
    // Shows the model in the table even if the process crashes.
    void begin(Model const& model);
    void tried(Model const& model, Outcome const& outcome);
    // Prints the summary. Exit code: 0 as expected, 1 differences, 3 no builder.
    int32_t end();

private:
    struct Group
    {
        size_t models{};
        size_t created{};
        size_t refused{};
        size_t wrong{};
        double parseMilliseconds{};
    };

    void tabulate(Model const& model, Outcome const& outcome);
    void write(Model const& model, Outcome const& outcome);
    void differ(std::string const& place, Differences const& differences);

    std::ofstream mTable;
    std::ofstream mJson;
    bool mIsBuilding;
    bool mHasBuilder{true};
    std::map<std::string, Group> mGroups;
    std::map<std::string, size_t> mBuildErrors;
    std::map<std::string, size_t> mKinds;
    std::vector<std::string> mDifferences;
    size_t mModels{};
    size_t mLibraries{};
};

}
