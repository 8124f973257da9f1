// What vector clocks have found, in words: where, who, and what it disagrees with.
#include <fmt/format.h>

#include <algorithm>

#include "exec/faults.h"
#include "schedules/clocks.h"

namespace kw::exec::schedule {

std::string Clocks::place(const Event& e) const {
  const bool barrier = e.kind == Kind::wait || e.kind == Kind::wait_free ||
                       e.kind == Kind::arrive || e.kind == Kind::expect;
  if (!barrier && e.region >= 0) return name(*t_, t_->strands[e.object], e.use);
  const Ring& r = t_->rings[e.object];
  return fmt::format("{}[{}]{}", r.name, e.use,
                     t_->ctas > 1 ? fmt::format(" of CTA {}", r.cta) : "");
}

Diagnostic* Clocks::blame(const char* code, int actor, const Event& e, const std::string& message) {
  if (finding_) return nullptr;
  Diagnostic d;
  d.code = code;
  if (e.stmt) d.span = e.stmt->span;
  d.message = fmt::format("{} ({})", message, name(*t_, actor));
  finding_ = std::move(d);
  return &*finding_;
}

void Clocks::note(Diagnostic* d, const std::string& what, const Touch& t) {
  if (!d || !t.stmt) return;
  d->notes.push_back(
      {fmt::format("{}: {} ({})", what, cite(*t.stmt), name(*t_, t.actor)), t.stmt->span});
}

void Clocks::deadlock(const std::vector<Stream>& streams) {
  std::vector<int> stuck;
  for (size_t a = 0; a < streams.size(); ++a)
    if (actors_[a].at < streams[a].size()) stuck.push_back(int(a));
  // Who only waits for everybody is not to blame, unless all do.
  auto meets = [&](int a) { return streams[a][actors_[a].at].stmt->op == tl::Op::sync_cluster; };
  std::stable_partition(stuck.begin(), stuck.end(), [&](int a) { return !meets(a); });
  for (int a : stuck) {
    const Event& e = streams[a][actors_[a].at];
    const bool named = e.kind == Kind::sync;
    std::string state;
    if (named) {
      state = fmt::format("{} of {} warps and threads have come to {}", named_[e.object].arrived,
                          t_->named[e.object].warps, t_->named[e.object].name);
    } else {
      const Ring& r = t_->rings[e.object];
      const BarrierState& b = barriers_[r.first + e.use % r.length];
      state = fmt::format("{} has {} of {} arrivals in generation {}", place(e), b.arrived,
                          r.arrivals, b.completed);
      if (b.missing) state += fmt::format(", and {} parts of a tile have not come", b.missing);
    }
    if (!finding_)
      blame("schedule.deadlock", a, e,
            fmt::format("{} can never complete: {}", cite(*e.stmt), state));
    else if (finding_->notes.size() < 12)
      finding_->notes.push_back(
          {fmt::format("{} waits at {}: {}", name(*t_, a), cite(*e.stmt), state), e.stmt->span});
  }
}

}  // namespace kw::exec::schedule
