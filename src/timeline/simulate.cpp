#include "timeline/simulate.h"

#include <fmt/format.h>

#include <algorithm>

#include "timeline/simulation.h"

namespace kw::timeline {

using tl::Stmt;

Simulation::Simulation(const Tables& tables, const std::vector<Stream>& streams, const Gpu& gpu,
                       const SimulateOptions& options, Diagnostics& diagnostics)
    : t_(tables), streams_(streams), gpu_(gpu), o_(options), diagnostics_(diagnostics) {
  const bool shares = options.resident > 1;
  processors_.resize(shares ? 1 : tables.ctas);
  slots_.resize(size_t(tables.slots) * options.resident);
  meetings_.resize(tables.named.size() * options.resident);
  for (int copy = 0; copy < options.resident; ++copy)
    for (size_t n = 0; n < streams.size(); ++n) {
      Agent a;
      a.actor = int(n);
      a.copy = copy;
      a.processor = shares ? 0 : tables.actors[n].cta;
      agents_.push_back(a);
    }
  marks_.resize(agents_.size());
  if (options.record) add_tracks();
}

void Simulation::add_tracks() {
  for (Agent& a : agents_) {
    a.track = int(out_.tracks.size());
    const Actor& actor = t_.actors[a.actor];
    std::string name = actor.warp ? fmt::format("warpgroup {}", actor.warpgroup)
                                  : fmt::format("loader, thread {}", actor.unit);
    if (o_.resident > 1) name += fmt::format(", block {}", a.copy);
    out_.tracks.push_back({name, a.processor});
  }
  tensor_track_ = int(out_.tracks.size());
  for (size_t n = 0; n < processors_.size(); ++n) out_.tracks.push_back({"tensor cores", int(n)});
  copy_track_ = int(out_.tracks.size());
  for (size_t n = 0; n < processors_.size(); ++n) out_.tracks.push_back({"copies in", int(n)});
}

void Simulation::bar(int track, BarKind kind, double begin, double end, const Stmt* s) {
  if (o_.record && end > begin) out_.bars.push_back({track, kind, begin, end, s});
}

std::optional<Timeline> Simulation::run() {
  for (size_t n = 0; n < agents_.size(); ++n) wake(int(n), 0);
  while (!failed_ && settle()) {
  }
  if (failed_) return std::nullopt;
  for (const Agent& a : agents_)
    if (a.at < streams_[a.actor].size()) {
      deadlock();
      return std::nullopt;
    }
  out_.end = now_;
  for (const Processor& p : processors_) {
    out_.end = std::max(out_.end, p.going);
    out_.tensor_busy = std::max(out_.tensor_busy, p.busy);
  }
  for (const auto& marks : marks_)
    for (size_t u = 0; u < marks.size(); ++u) {
      if (out_.marks.size() <= u) out_.marks.resize(u + 1);
      out_.marks[u] = std::max(out_.marks[u], marks[u]);
    }
  return std::move(out_);
}

// Goes to the next moment at which anything happens. False: nothing will.
bool Simulation::settle() {
  double next = queue_.empty() ? kForever : queue_.top().at;
  for (const Processor& p : processors_) next = std::min({next, p.product_end, p.pipes.next()});
  if (next == kForever) return false;
  now_ = std::max(now_, next);
  for (Processor& p : processors_) {
    p.pipes.advance(now_);
    if (p.product_end <= now_) end_product(p);
  }
  for (Processor& p : processors_)
    for (const int agent : p.pipes.finished()) end_job(agent);
  while (!queue_.empty() && queue_.top().at <= now_) {
    const Due due = queue_.top();
    queue_.pop();
    if (due.agent >= 0)
      advance(due.agent);
    else
      arrive(due.slot, due.ring, 0, -1);
  }
  return true;
}

void Simulation::end_product(Processor& p) {
  const Product done = p.products.front();
  bar(tensor_track_ + int(&p - processors_.data()), BarKind::product, p.product_begin, now_,
      done.stmt);
  p.products.pop_front();
  p.product_end = kForever;
  ++agents_[done.agent].done;
  wake(done.agent, now_ + gpu_.product_latency);
  start_product(p);
}

// Of the job's time each statement gets the share of its instructions.
void Simulation::end_job(int agent) {
  Agent& a = agents_[agent];
  double all = 0, begin = a.since;
  for (const Agent::Piece& piece : a.pieces) all += piece.weight;
  for (const Agent::Piece& piece : a.pieces) {
    const double end = begin + (now_ - a.since) * piece.weight / all;
    bar(a.track, BarKind::compute, begin, end, piece.stmt);
    begin = end;
  }
  a.pieces.clear();
  advance(agent);
}

void Simulation::advance(int agent) {
  Agent& a = agents_[agent];
  const Stream& stream = streams_[a.actor];
  while (a.pieces.empty() && a.at < stream.size() && !failed_) {
    const Event& e = stream[a.at];
    if (!step(agent, e)) return;
    if (a.waits)
      bar(a.track, e.kind == Kind::compute ? BarKind::compute : BarKind::wait, a.since, now_,
          a.waits);
    a.waits = nullptr;
  }
}

// It waits at e. False: it has waited here already, and was woken too early.
bool Simulation::sleep(int agent, const Event& e) {
  Agent& a = agents_[agent];
  if (a.waits) return false;
  a.waits = e.stmt;
  a.since = now_;
  return true;
}

void Simulation::deadlock() {
  for (const Agent& a : agents_) {
    if (a.at >= streams_[a.actor].size()) continue;
    const Stmt* s = streams_[a.actor][a.at].stmt;
    diagnostics_.error("timeline.deadlock", s ? s->span : Span{},
                       fmt::format("{} waits at `{}` for something that never comes",
                                   t_.actors[a.actor].name, s ? tl::print_head(*s) : "the end"));
    return;
  }
}

std::optional<Timeline> simulate(const Tables& tables, const std::vector<Stream>& streams,
                                 const Gpu& gpu, const SimulateOptions& options,
                                 Diagnostics& diagnostics) {
  return Simulation(tables, streams, gpu, options, diagnostics).run();
}

}  // namespace kw::timeline
