// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: checks of a whole library. Never: knows what a plugin computes.
#pragma once

#include "host.hpp"
#include "library.hpp"
#include "report.hpp"

#include <string>
#include <vector>

namespace oracle
{

void checkLibrary(Report& report, Logger& logger, Finder& finder, Library const& library, std::string const& role);

// A registry rejects two creators of one name.
void checkTogether(Report& report, std::vector<Library const*> const& libraries);

// A second copy of a deleted file, as TensorRT opens a plan's library.
void checkCopy(Report& report, Finder& finder, Library const& library, std::string const& role);

// 50 times after use; no resources must remain.
void checkUnloading(Report& report, Finder& finder, std::vector<std::string> const& paths, size_t openFilesBefore);

size_t openFiles();

void checkLayout(Report& report);

// Skipped if headers lack quick creators.
void checkQuick(Report& report, Logger& logger, Library const& library);

void checkAttributes(Report& report, Logger& logger, Creator& creator);

}
