#include "driver/environment/author.h"

#include "driver/environment/proposer.h"

namespace kw::driver {

std::optional<author::Texts> find_author_texts(const Home& home, Diagnostics& diagnostics) {
  author::Texts t;
  const bool found = read_prompts(home,
                                  {{&t.sketch.system, "author.sketch.system.md"},
                                   {&t.sketch.user, "author.user.md"},
                                   {&t.tiles.system, "author.tiles.system.md"},
                                   {&t.tiles.user, "author.tiles.user.md"},
                                   {&t.kernel.system, "author.kernel.system.md"},
                                   {&t.kernel.user, "author.user.md"},
                                   {&t.cute.system, "author.cute.system.md"},
                                   {&t.cute.user, "author.user.md"},
                                   {&t.example, "author.example.tl"}},
                                  diagnostics);
  return found ? std::optional(t) : std::nullopt;
}

}  // namespace kw::driver
