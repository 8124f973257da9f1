// Kernels that come with a user: where they are, and how the change goes back into them.
//
// `make` starts from a kernel of the corpus; `kernelwright port KERNEL.cu` starts from a file of
// somebody's own, in the same vocabulary, and everything after that is the same. Three things
// differ. What is wrong is said of that file, by the name that was given. Its constants are its
// author's, and stay: rows of the shipped tile database come after them, where they need too many
// registers, and only for a kernel that has the constants that they name. And
// kernel.patch must apply where the file lives: `git apply` reads paths from the top of a
// repository, whatever folder it is called in.
#pragma once
#include <filesystem>
#include <string>

#include "driver/environment/tools.h"
#include "operator/form.h"
#include "tl/program.h"
#include "transfer/tile_database.h"

namespace kw::driver {

// The texts of the form's own family (driver/family.h), the first to be tried first: the target's
// own, where it has one. Nothing where the target's general text is for it, and where this reports
// driver.kernel.
std::optional<std::vector<SourcePtr>> own_experts(const Tools& tools, const spec::Form& form,
                                                  const std::string& target,
                                                  Diagnostics& diagnostics);

// The text to start from: `kernel` where it is not empty, else the corpus's for `target`, by its
// name in the project. Reports driver.target and driver.kernel (it cannot be read, or is no text).
SourcePtr find_expert(const Tools& tools, const std::string& kernel, const std::string& target,
                      Diagnostics& diagnostics);

// Whether it computes plain attention, as far as its scores' maps say. Reports port.variant at the
// first map that another function than a softmax over all keys has: the rules would write their own
// in its place, or beside it. (What no map shows, the check finds.)
bool is_plain(const tl::Program& kernel, Diagnostics& diagnostics);

// Leaves of shipped rows those whose constants the kernel has, all of them.
void keep_rows_for(const tl::Program& kernel, std::vector<transfer::Tiles>& rows);

// What a patch calls the file: its path from the top of its git repository; where it is in none,
// from the current folder; where it is not below that, its name alone.
std::string name_in_patch(const std::filesystem::path& kernel);

// "apply: git -C REPOSITORY apply FOLDER/kernel.patch", with `patch -p1` outside of repositories.
std::string how_to_apply(const std::filesystem::path& kernel, const std::filesystem::path& folder);

}  // namespace kw::driver
