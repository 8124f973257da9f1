// How --help looks: commands in groups by what one wants, lines of at most 100 columns.
#pragma once
#include <CLI/CLI.hpp>

namespace kw::cli {

// Call it when all commands are added.
void arrange_help(CLI::App& app);

}  // namespace kw::cli
