// Attacks by seed: conditions on sizes, blocks and indices that no case reaches, and numbers of the
// mask replaced by others, planted in what the rules make of a few forms. None may be certified for
// every launch: each must break a law, be refuted, or leave an obligation open.
//
//   planted_attacks LIST SEED COUNT [--verbose]
//
// A line of LIST is "what was => what is planted | reason".
//
// What the solver proves whole runs on cases as any program. Whatever holds then computes the same
// at every size, and stands in tests/mutants/same_at_every_size.txt with the reason; or it is an
// attack that passed: exit code 1, and its text.
#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <set>

#include "../unit/hand_captures.h"
#include "../unit/with_heads.h"
#include "check/check.h"
#include "tl/laws/laws.h"
#include "tl/traits.h"

namespace {

using namespace kw;

const char* const kForms[] = {
    "score s * 0.125\nkeep j <= i\n",
    "score s * 0.125\nkeep j <= i and i - 1024 < j\n",
    "argument prefix i32[B]\nscore s * 0.125\nkeep j <= i or j < prefix[b]\n",
    "argument slopes f32[H]\nscore s * 0.125 - slopes[h] * (i - j)\nkeep j <= i\n",
    "score s * 0.125\n",
};

struct Subject {
  std::string name;
  spec::Form form;
  tl::Program program;
};

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const char* lines : kForms)
    for (const char* target : {"sm_90a", "sm_80"}) {
      Subject s{fmt::format("{} of\n{}", target, lines),
                test::with_heads(transfer::form_of(lines), 8),
                {}};
      Diagnostics d;
      const auto [kernel, machine] = transfer::start_of(s.form, target);
      auto result = transfer::transfer(kernel, s.form, machine, d);
      if (!result) throw std::runtime_error(render(d));
      s.program = *tl::parse(make_source("program.tl", tl::print(result->program)), d);
      all.push_back(std::move(s));
    }
  return all;
}

class Planter {
 public:
  explicit Planter(uint64_t seed) : random_(seed) {}

  size_t below(size_t n) { return random_() % n; }

  // The program with one thing planted, and what it is; nothing where there was no place.
  std::optional<std::pair<tl::Program, std::string>> plant(const tl::Program& program) {
    tl::Program p = program;
    std::vector<tl::Stmt*> all;
    tl::walk(p.body, [&](tl::Stmt& s) { all.push_back(&s); });
    tl::Stmt& s = *all[below(all.size())];
    const tl::Family family = tl::traits(s.op).family;
    // What declares is a constant of the text; sizes of tiles are laws' matter.
    for (const tl::Family declares :
         {tl::Family::module, tl::Family::constant, tl::Family::section, tl::Family::memory,
          tl::Family::barrier, tl::Family::registers, tl::Family::kernel, tl::Family::pass})
      if (family == declares) return std::nullopt;
    const std::string was = tl::print_head(s);
    // How many heads go together is free.
    if (was.find("heads_at_once") != std::string::npos) return std::nullopt;
    if (below(4) == 0 && s.body.empty() && family != tl::Family::argument &&
        family != tl::Family::tensor && family != tl::Family::value) {
      Diagnostics d;
      auto under = tl::parse_statement(fmt::format("if {}:\n    {}", condition(), was), d);
      if (!under) return std::nullopt;
      s = std::move(*under);
      return std::pair{std::move(p), fmt::format("{} => {}", was, tl::print_head(s))};
    }
    if (!change(s)) return std::nullopt;
    return std::pair{std::move(p), fmt::format("{} => {}", was, tl::print_head(s))};
  }

 private:
  // Where no case goes: beyond 400 rows, 640 keys, 67 batch entries.
  std::string condition() {
    constexpr const char* kNames[] = {"N", "M", "n", "i", "j", "i0", "c.m", "c.b"};
    constexpr int64_t kFar[] = {700, 1000, 1536, 3000, 4096, 5000, 10000, 65536, 100000};
    constexpr int64_t kBlocks[] = {9, 17, 37, 50, 70, 100, 700};
    const size_t which = below(std::size(kNames));
    const std::string name = kNames[which];
    const bool block = name == "n" || name == "c.m";
    const int64_t at = name == "c.b"  ? 68 + int64_t(below(100))
                       : block        ? kBlocks[below(std::size(kBlocks))]
                       : name == "i0" ? 256 * kBlocks[below(std::size(kBlocks))]
                                      : kFar[below(std::size(kFar))];
    const char* const kHow[] = {">", "==", "!=", "<"};
    return fmt::format("{} {} {}", name, kHow[below(below(3) ? 2 : 4)], at);
  }

  // One expression of the statement by another.
  bool change(tl::Stmt& s) {
    std::vector<tl::ExprPtr*> places;
    for (tl::Field& f : s.fields)
      for (tl::Item& item : f.items)
        if (item.expr) places.push_back(&item.expr);
    if (places.empty()) return false;
    tl::ExprPtr& place = *places[below(places.size())];
    std::vector<tl::ExprPtr> parts;
    tl::rewrite(place, [&](const tl::ExprPtr& e) {
      if (e->kind != tl::ExprKind::call || e->text != "rsqrt") parts.push_back(e);
      return tl::ExprPtr();
    });
    const tl::ExprPtr part = parts[below(parts.size())];
    const tl::ExprPtr with = instead_of(part);
    if (!with) return false;
    bool done = false;
    place = tl::rewrite(place, [&](const tl::ExprPtr& e) {
      if (done || e != part) return tl::ExprPtr();
      done = true;
      return with;
    });
    return done;
  }

  tl::ExprPtr instead_of(const tl::ExprPtr& e) {
    Diagnostics d;
    const std::string text = tl::print(e);
    if (e->kind == tl::ExprKind::integer && below(2) && std::stoll(text) > 4)
      return tl::integer(std::stoll(text) - 1 - int64_t(below(3)));
    const char* const kOther[] = {"{0} + 1", "{0} - 1", "0", "{0} * 2"};
    const std::string other =
        fmt::format(fmt::runtime(kOther[below(std::size(kOther))]), fmt::format("({})", text));
    if (other == text || (text == "0" && other.back() == '2')) return nullptr;
    return tl::parse_expr(fmt::format("where({}, {}, {})", condition(), other, text), d);
  }

  std::mt19937_64 random_;
};

check::Options few() {
  check::Options o;
  o.cases = 4;
  o.exact_cases = 1;
  o.further_scores = 2'000'000;
  o.self_check_step = 0;
  o.shrink = o.schedules = false;  // what laws leave of waits and arrivals depends on no launch
  return o;
}

// By what it is caught, or "".
std::string caught(const tl::Program& p, const Subject& of, const proofs::Solver& solver) {
  Diagnostics d;
  if (!tl::verify(p, d)) return "law " + d.all()[0].code;
  const proofs::Report r = proofs::prove_attention(p, of.form, solver);
  if (r.first(proofs::Answer::refuted)) return "proof: refuted";
  if (!r.complete()) return "proof: open";
  if (!r.limits.empty()) return "proof: limits";
  const check::Report all = check::check(p, test::capture_of(of.form), few());
  if (all.verdict != check::Verdict::holds) return "check: " + std::string(name(all.verdict));
  return check::not_proved(all).empty() ? "" : "check: " + check::headline(all);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "planted_attacks LIST SEED COUNT [--verbose]\n";
    return 2;
  }
  const bool verbose = argc > 4;
  std::set<std::string> same;
  std::ifstream list(argv[1]);
  for (std::string line; std::getline(list, line);) same.insert(line.substr(0, line.find(" | ")));
  proofs::Solver solver;
  if (!solver.load(proofs::Solver::candidates())) {
    std::cerr << solver.why() << "\n";
    return 2;
  }
  Planter planter(std::stoull(argv[2]));
  const int count = std::stoi(argv[3]);
  const std::vector<Subject> all = subjects();
  std::map<std::string, int> by;
  int passed = 0;
  for (int n = 0; n < count;) {
    const Subject& s = all[planter.below(all.size())];
    const auto planted = planter.plant(s.program);
    if (!planted) continue;
    // As a user's file: what cannot be read or names what is not there is no attack.
    Diagnostics d;
    const auto p = tl::parse(make_source("planted.tl", tl::print(planted->first)), d);
    if (!p) continue;
    const std::string how = caught(*p, s, solver);
    if (how.find("name") != std::string::npos || how.find("type") != std::string::npos) continue;
    ++n;
    ++by[how.substr(0, how.find(' '))];
    if (verbose) fmt::print("{:14} {}\n", how.substr(0, 14), planted->second);
    if (!how.empty() || same.count(planted->second)) continue;
    ++passed;
    fmt::print("passed: {}\n  {}\n", planted->second, s.name);
  }
  for (const auto& [how, times] : by) fmt::print("{:6} {}\n", times, how.empty() ? "passed" : how);
  return passed ? 1 : 0;
}
