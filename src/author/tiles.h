// Tiles by somebody's choice: rows of a warpgroup, keys of a block, warpgroups.
//
// The answer is three numbers. The passes hold them against the GPU (sketch/tiles.h), write the
// sized and the scheduled program with them, and the laws judge both. What refuses goes back: a
// law by its number, a budget as its sum, line by line.
#pragma once
#include <optional>
#include <string>

#include "author/conversation.h"
#include "sketch/size.h"

namespace kw::author {

// {"why": "...", "keys": 64, "rows": 128, "warpgroups": 1}
nlohmann::json tiles_schema();

// Refuses as propose::read_json does, and with answer.tiles for numbers beyond any program.
std::optional<sketch::Sizes> read_tiles(const models::Answer& answer, propose::Refusal& refusal);

struct Sized {
  sketch::Sizes sizes;
  tl::Program sized, scheduled;
};

// What else must be right of tiles that fit; nothing where they are to fit and no more.
using Further = std::function<bool(const Sized&, Judged&)>;

// Asks for tiles of the sketch. Reports what sketch::work() does; nothing where the conversation
// ends without tiles.
std::optional<Sized> ask_tiles(const tl::Program& sketch, const sketch::Request& request,
                               const Prompt& prompt, Conversation& conversation,
                               const Further& further, Diagnostics& diagnostics);

}  // namespace kw::author
