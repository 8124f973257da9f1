#include "author/tiles.h"

#include <fmt/format.h>

#include "propose/patch.h"
#include "propose/schema.h"
#include "sketch/schedule.h"

namespace kw::author {
namespace {

constexpr int64_t kFar = 1 << 20;  // no program has as many rows, keys or warpgroups

std::string describe(const sketch::Machine& m) {
  std::string out = fmt::format(
      "{} ({}), {} multiprocessors\n"
      "shared memory: {} bytes a multiprocessor, at most {} of them for a CTA; the system "
      "takes {} more of each\n"
      "registers: {} a multiprocessor, at most 255 a thread; 63 of each thread's are needed beside "
      "the tiles\n",
      m.gpu.name, m.target, m.gpu.multiprocessors, m.gpu.shared_bytes, m.block_bytes,
      m.reserved_bytes, m.gpu.registers);
  if (m.style == sketch::Style::engine)
    out +=
        "products and copies are asynchronous; a warpgroup beside these only loads, which leaves "
        "240 "
        "registers to each thread of 2 warpgroups and 160 of 3\n";
  return out + "threads: 128 a warpgroup\n";
}

std::string describe(const sketch::Work& w) {
  std::string out;
  for (const auto& s : w.shared)
    out += s.of_keys ? fmt::format("shared {}: {} slot{} of keys x {} elements\n", s.name, s.slots,
                                   s.slots == 1 ? "" : "s", s.columns)
                     : fmt::format("shared {}: rows x {} elements for each warpgroup\n", s.name,
                                   s.columns);
  out += fmt::format("registers of a warpgroup: {} accumulator{} of rows x keys",
                     w.key_accumulators, w.key_accumulators == 1 ? "" : "s");
  return out + fmt::format(", others of rows x {} together, 4 bytes an element\n", w.columns);
}

std::string shown(const sketch::Sizes& s) {
  return fmt::format(R"({{"rows": {}, "keys": {}, "warpgroups": {}}})", s.rows, s.keys,
                     s.warpgroups);
}

// Through the passes; what refuses is the judgement's.
std::optional<Sized> through(const tl::Program& sketch, sketch::Request request,
                             const sketch::Sizes& sizes, Judged& judged) {
  request.sizes = sizes;
  Diagnostics found;
  auto sized = sketch::size(sketch, request, found);
  auto scheduled = sized ? sketch::schedule(*sized, request.machine, found) : std::nullopt;
  if (scheduled) return Sized{sizes, std::move(*sized), std::move(*scheduled)};
  judged.refusal = propose::refusal_of(found);
  return std::nullopt;
}

}  // namespace

nlohmann::json tiles_schema() {
  using namespace propose::schema;
  return object({{"why", text("why these, in a sentence")},
                 {"rows", number("query rows of a warpgroup")},
                 {"keys", number("keys of a block")},
                 {"warpgroups", number("warpgroups that share a CTA")}});
}

std::optional<sketch::Sizes> read_tiles(const models::Answer& answer, propose::Refusal& refusal) {
  static const nlohmann::json schema = tiles_schema();
  const auto json = propose::read_json(answer, schema, refusal);
  if (!json) return std::nullopt;
  for (const char* name : {"rows", "keys", "warpgroups"}) {
    const nlohmann::json& n = (*json)[name];
    const bool far = n.is_number_unsigned() ? n.get<uint64_t>() > uint64_t(kFar) : true;
    if (!far && n.get<int64_t>() >= 1) continue;
    refusal = {"answer.tiles",
               fmt::format("{} is {}, a number from 1 to {} is due", name, n.dump(), kFar)};
    return std::nullopt;
  }
  return sketch::Sizes{(*json)["rows"], (*json)["keys"], (*json)["warpgroups"]};
}

std::optional<Sized> ask_tiles(const tl::Program& sketch, const sketch::Request& request,
                               const Prompt& prompt, Conversation& conversation,
                               const Further& further, Diagnostics& diagnostics) {
  const auto work = sketch::work(sketch, request, diagnostics);
  if (!work) return std::nullopt;
  std::optional<Sized> out;
  const Question question{"tiles",
                          prompt,
                          {},
                          {{"machine", describe(request.machine)},
                           {"tiles", describe(*work)},
                           {"sketch", propose::numbered(propose::lines_of(sketch))}},
                          tiles_schema()};
  const bool answered = conversation.ask(
      question,
      [&](const models::Answer& answer) {
        Judged judged;
        const auto sizes = read_tiles(answer, judged.refusal);
        if (!sizes) return judged;
        judged.shown = shown(*sizes);
        auto sized = through(sketch, request, *sizes, judged);
        if (sized && (!further || further(*sized, judged))) out = std::move(sized);
        return judged;
      },
      diagnostics);
  return answered ? std::move(out) : std::nullopt;
}

}  // namespace kw::author
