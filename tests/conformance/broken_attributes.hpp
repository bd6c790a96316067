// Copyright of the Cubinder authors; Apache-2.0.
//
// A handwritten creator of `tests/data/run/attributes.toml` with planted faults. Its plugins are never built.
#pragma once

#include "broken_everything.hpp"

#include <cmath>
#include <set>

namespace
{

class AttributesCreator final : public IPluginCreatorV3One
{
public:
    AsciiChar const* getPluginName() const noexcept override
    {
        return "attributes_plugin";
    }
    AsciiChar const* getPluginVersion() const noexcept override
    {
        return "1";
    }
    AsciiChar const* getPluginNamespace() const noexcept override
    {
        return "sample";
    }
    PluginFieldCollection const* getFieldNames() noexcept override
    {
        return &mNames;
    }
    IPluginV3* createPlugin(AsciiChar const*, PluginFieldCollection const* fields, TensorRTPhase phase) noexcept override
    {
        if (phase != TensorRTPhase::kBUILD || fields == nullptr || fields->nbFields < 0 || (fields->fields == nullptr && fields->nbFields > 0))
        {
            refuse("no fields, or no build");
            return nullptr;
        }
        std::set<std::string> seen;
        std::string shown;
        bool isShown = false;
        for (int32_t i = 0; i < fields->nbFields; ++i)
        {
            PluginField const& field = fields->fields[i];
            Kind const* kind = field.name == nullptr ? nullptr : kindOf(field.name);
            std::string value;
            bool const isNew = kind != nullptr && (seen.insert(kind->name).second || fault("attribute twice"));
            if (!isNew || !read(*kind, field, value))
            {
                refuse(fault("attribute unnamed") ? "an attribute" : std::string("the attribute ") + (kind == nullptr ? "?" : kind->name));
                return nullptr;
            }
            isShown = isShown || (std::string(kind->name) == "show" && value == " true");
            shown += value;
        }
        if (isShown)
        {
            refuse("the node asks for its values:" + shown);
            return nullptr;
        }
        return new Everything(EverythingNode{});
    }

private:
    struct Kind
    {
        char const* name;
        // i: integer, f: float, b: boolean, s: string, o: bytes.
        char holds;
        bool isList;
        int32_t width;
    };

    static Kind const* kindOf(char const* name)
    {
        static constexpr Kind kKINDS[] = {{"tiny", 'i', false, 1}, {"small", 'i', false, 2}, {"count", 'i', false, 4},
            {"large", 'i', false, 8}, {"half", 'f', false, 2}, {"single", 'f', false, 4}, {"double", 'f', false, 8}, {"show", 'b', false, 1},
            {"mode", 's', false, 1}, {"table", 'o', false, 1}, {"axes", 'i', true, 8}, {"halves", 'f', true, 2}, {"scales", 'f', true, 4},
            {"flags", 'b', true, 1}, {"modes", 's', true, 1}};
        for (Kind const& kind : kKINDS)
        {
            if (std::strcmp(kind.name, name) == 0)
            {
                return &kind;
            }
        }
        return nullptr;
    }

    static bool number(PluginField const& field, int32_t index, bool isFloat, double& value)
    {
        auto const* at = static_cast<uint8_t const*>(field.data);
        auto get = [&](auto zero) {
            std::memcpy(&zero, at + static_cast<size_t>(index) * sizeof zero, sizeof zero);
            value = static_cast<double>(zero);
            return true;
        };
        switch (static_cast<int32_t>(field.type))
        {
        case 1: return isFloat && get(0.0F);
        case 2: return isFloat && get(0.0);
        case 3: return !isFloat && get(int8_t{});
        case 4: return !isFloat && get(int16_t{});
        case 5: return (!isFloat || fault("integers for floats")) && get(int32_t{});
        case 10: return !isFloat && get(int64_t{});
        default: return false;
        }
    }

    static bool read(Kind const& kind, PluginField const& field, std::string& shown)
    {
        if (field.length < 0 || (field.length > 0 && field.data == nullptr))
        {
            return fault("attribute without data");
        }
        if (field.length == 0 && (kind.isList || kind.holds == 'o'))
        {
            return !fault("empty lists refused");
        }
        auto const* text = static_cast<char const*>(field.data);
        if (kind.holds == 's' || kind.holds == 'o')
        {
            bool const isBytes = kind.holds == 'o' && field.type == PluginFieldType::kINT8;
            if (!isBytes && field.type != PluginFieldType::kCHAR)
            {
                return false;
            }
            int32_t const end = !isBytes && field.length > 0 && text[field.length - 1] == '\0' ? field.length - 1 : field.length;
            std::string const value(text, static_cast<size_t>(fault("last letter lost") ? end - 1 : end));
            bool const isOne = kind.isList || kind.holds == 'o' || value.find('\0') == std::string::npos || fault("two texts for one");
            shown += kind.holds == 's' ? " " + value : " " + std::to_string(static_cast<int32_t>(value.empty() ? 0 : value[0]));
            return isOne && (value != "\xC3(" || fault("any bytes for text"));
        }
        bool isGood = kind.isList || field.length == 1 || fault("two values for one");
        for (int32_t i = 0; i < field.length && isGood; ++i)
        {
            double value = 0.0;
            isGood = number(field, i, kind.holds == 'f', value);
            double const most = std::pow(2.0, 8 * kind.width - 1);
            bool const isFitting = kind.holds == 'b' ? value == 0.0 || value == 1.0 || fault("any boolean")
                : kind.holds == 'i'                  ? (value < most && value >= -most) || fault("numbers cut")
                                                     : kind.width > 2 || std::abs(value) <= 65504.0 || fault("half beyond its range");
            isGood = isGood && isFitting;
            shown += kind.holds == 'b' ? (value == 1.0 ? " true" : " false") : " " + std::to_string(value);
        }
        return isGood;
    }

    PluginFieldCollection mNames{};
};

}
