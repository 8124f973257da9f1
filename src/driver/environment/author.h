// An author in the place of an expert's kernel: the prompts of this installation.
#pragma once
#include <optional>

#include "author/site.h"
#include "driver/environment/home.h"

namespace kw::driver {

// prompts/author.*. Reports driver.prompts.
std::optional<author::Texts> find_author_texts(const Home& home, Diagnostics& diagnostics);

}  // namespace kw::driver
