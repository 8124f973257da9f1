// The folder that a command writes whole: where it is, and whether what stands there may go.
#pragma once
#include <filesystem>
#include <string>

#include "support/diagnostic.h"

namespace kw::driver {

// What the user asked for, without a slash at its end; where nothing was, `otherwise`.
std::filesystem::path out_folder(const std::string& asked, const std::filesystem::path& otherwise);

// Whether an earlier run of the same command wrote it, which the file `mark` in it shows, or
// nothing is there. Reports driver.out: `command` would replace the whole folder.
bool may_replace(const std::filesystem::path& folder, const std::string& mark,
                 const std::string& command, Diagnostics& diagnostics);

}  // namespace kw::driver
