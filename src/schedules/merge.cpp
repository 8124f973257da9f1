// Warps that act as one, so that an instance is small enough to be explored.
#include "schedules/explore.h"

namespace kw::exec::schedule {

namespace {

bool alike(const Event& a, const Event& b) {
  return a.kind == b.kind && a.object == b.object && a.use == b.use && a.stmt == b.stmt &&
         a.bar == b.bar && a.bar_use == b.bar_use;
}

// One list for several: what one thread does stays its own, what all do counts for all.
std::optional<Stream> merged(Tables& tables, const std::vector<const Stream*>& of) {
  Stream out;
  std::vector<size_t> at(of.size(), 0);
  for (;;) {
    bool single = false, ends = true;
    for (size_t k = 0; k < of.size() && !single; ++k) {
      if (at[k] >= of[k]->size()) continue;
      ends = false;
      const Event& e = (*of[k])[at[k]];
      if (!e.one_thread) continue;
      out.push_back(e);
      ++at[k];
      single = true;
    }
    if (single) continue;
    if (ends) return out;
    if (at[0] >= of[0]->size()) return std::nullopt;
    Event e = (*of[0])[at[0]];
    Region all;
    for (size_t k = 0; k < of.size(); ++k) {
      if (at[k] >= of[k]->size() || !alike(e, (*of[k])[at[k]])) return std::nullopt;
      const Event& other = (*of[k])[at[k]++];
      if (other.region >= 0) all |= tables.regions[other.region].region;
    }
    if (e.region >= 0) e.region = int16_t(tables.region(tables.regions[e.region].array, all));
    if (e.kind == Kind::arrive) e.count *= int(of.size());
    out.push_back(e);
  }
}

}  // namespace

std::optional<Small> merge_warps(const Tables& tables, const std::vector<Stream>& streams,
                                 int agents) {
  Small small;
  small.tables = tables;
  small.tables.actors.clear();
  for (size_t a = 0; a < streams.size();) {
    const Actor& actor = tables.actors[a];
    const size_t together = actor.warp ? 4 / agents : 1;
    std::vector<const Stream*> of;
    for (size_t k = 0; k < together; ++k) of.push_back(&streams[a + k]);
    auto stream = merged(small.tables, of);
    if (!stream) return std::nullopt;
    small.tables.actors.push_back(actor);
    small.tables.actors.back().weight = int(together);
    small.streams.push_back(std::move(*stream));
    a += together;
  }
  // Who is first in its CTA may be another agent now, but not in another warp.
  if (!small.tables.divide()) return std::nullopt;
  return small;
}

}  // namespace kw::exec::schedule
