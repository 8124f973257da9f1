// Programs by an author: a sketch for the passes, its tiles, or a kernel in one step.
//
// The two steps are QiMeng-Attention's (arXiv 2506.12355): first what happens in which order, then
// the parameters. Each step is judged by itself and asked again for by itself.
#pragma once
#include "author/site.h"
#include "author/tiles.h"

namespace kw::author {

struct Written {
  tl::Program program;   // as answered, under the names that the author saw
  tl::Program accepted;  // scheduled, under the user's
};

// The last judge of an accepted program, a compiler; empty: it does not refuse.
using Builds = std::function<propose::Refusal(const tl::Program&)>;

// A sketch, judged as the passes size and schedule it with tiles of their own: its laws, what the
// passes refuse, the loop's check, the one that decides. Nothing where the conversation ends
// without one.
std::optional<Written> ask_sketch(const Site& site, const Prompt& prompt,
                                  Conversation& conversation, Diagnostics& diagnostics);

// The tiles of a sketch; what the passes make of both is judged likewise, and built.
std::optional<tl::Program> ask_sizes(const Site& site, const tl::Program& sketch,
                                     const Prompt& prompt, Conversation& conversation,
                                     const Builds& builds, Diagnostics& diagnostics);

// A scheduled program in one step; judged likewise, and built.
std::optional<Written> ask_kernel(const Site& site, const Prompt& prompt,
                                  Conversation& conversation, const Builds& builds,
                                  Diagnostics& diagnostics);

}  // namespace kw::author
