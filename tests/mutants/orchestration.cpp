// Orchestration mutants: each must be caught by a law, by a schedule, or by running it; or stand in
// the reviewed list of those that are not wrong.
//
//   orchestration_mutants LIST SHARE SEED [--agree] PROGRAM...
//
// A PROGRAM is a .tl file, or the name of a variant of the Hopper kernel (tests/wrong/right). A
// mutant whose agents do to shared memory and barriers what the original's do, and that computes
// the same, acts alike: it lies in text that is switched off, or moved past what it has nothing to
// do with.
//
// SHARE in 1000 of all mutants are tried, chosen by SEED; 1000 is all. With --agree the two
// checkers of schedules are also held against each other on small instances of each mutant. A line
// of LIST is "program | class | line: statement | reason"; of all mutants of a program, one must
// need it. "clocks | program | ..." is of one that the clocks alone refuse.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "../unit/edited_program.h"
#include "mutate.h"
#include "num/random.h"
#include "schedules/schedule.h"
#include "tl/laws/laws.h"

namespace {

using namespace kw;

// The scores of the second half of the queries' heads are long: references do not stand there, and
// what is computed once more is seen in the values.
void lengthen_half(Tensor& q) {
  for (size_t n = q.values.size() / 2; n < q.values.size(); ++n) q.values[n] *= 32;
}

exec::Launch launch_of(const tl::Program& p) {
  exec::Launch l;
  std::map<std::string, int64_t> sizes = {{"B", 1},   {"H", 2},   {"G", 1},
                                          {"M", 300}, {"N", 300}, {"R", 300},
                                          {"K", 300}, {"D", 128}, {"V", 128}};
  for (const tl::Stmt& s : p.body)
    if (s.op == tl::Op::param)
      for (const tl::Item& d : s.names())
        if (d.expr && d.expr->kind == tl::ExprKind::integer)
          sizes[d.name] = std::stoll(d.expr->text);
  const tl::Stmt* args = p.find(tl::Op::args);
  int stream = 0;
  for (const tl::Stmt& s : args->body) {
    if (s.op != tl::Op::arg_tiled && s.op != tl::Op::arg_tensor) continue;
    const tl::Item& access = s.access()[0];
    if (access.name == "out") continue;
    std::vector<int64_t> shape;
    for (const tl::Item& d : s.dims()) shape.push_back(sizes.count(d.name) ? sizes.at(d.name) : 1);
    const std::string type =
        access.type == "element" ? p.find(tl::Op::element)->type() : access.type;
    const Dtype dtype = dtype_named(type).value_or(Dtype::f32);
    for (const tl::Item& d : s.names()) {
      Draw draw{Draw::Kind::normal, uint64_t(++stream)};
      l.tensors[d.name] = kw::draw(draw, 3, is_float(dtype) ? dtype : Dtype::f32, shape);
      if (!is_float(dtype)) {
        l.tensors[d.name] = Tensor(dtype, shape);
        std::fill(l.tensors[d.name].values.begin(), l.tensors[d.name].values.end(), 150);
      }
      if (d.name == "q") lengthen_half(l.tensors[d.name]);
    }
  }
  return l;
}

std::string values(const tl::Program& p, const exec::Launch& l,
                   const std::map<std::string, Tensor>& right) {
  const exec::Outcome out = exec::run(p, l);
  if (!out.faults.empty()) return out.faults[0].code;
  for (const auto& [name, t] : right)
    if (!out.outputs.count(name) || out.outputs.at(name).values != t.values) return "other values";
  return "";
}

// The first finding's code, or nothing.
std::string finding(const tl::Program& p, const exec::ScheduleOptions& options) {
  const exec::ScheduleReport report = exec::check_schedules(p, options);
  return report.findings.empty() ? "" : report.findings[0].code;
}

struct Tally {
  int mutants = 0, law = 0, schedules = 0, values = 0, only_schedules = 0, alike = 0,
      equivalent = 0;
  int compared = 0, cut = 0;
};

std::set<std::string> read_list(const std::string& path) {
  std::set<std::string> known;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line[0] != '#') known.insert(line.substr(0, line.rfind(" | ")));
  return known;
}

const std::vector<std::pair<std::map<std::string, int64_t>, std::vector<size_t>>> kSmall = {
    {{{"CTAS", 1}, {"BM", 64}}, {0}},
    {{{"CTAS", 1}, {"BM", 64}}, {0, 0}},
    {{{"CTAS", 1}, {"BM", 64}}, {0, 0, 2}},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const std::set<std::string> known = read_list(argv[1]);
  const int share = std::stoi(argv[2]);
  std::mt19937 random(std::stoi(argv[3]));
  const bool agree = std::string(argv[4]) == "--agree";
  std::map<std::string, Tally> classes;
  Tally all;
  std::set<std::string> needed;
  int bad = 0;
  for (int n = agree ? 5 : 4; n < argc; ++n) {
    Diagnostics d;
    const std::string path = argv[n], file = path.substr(path.rfind('/') + 1);
    const bool tl_file = path.size() > 3 && path.substr(path.size() - 3) == ".tl";
    const auto program =
        tl::parse(tl_file ? read_source(path) : make_source(path, test::text_of(path)), d);
    if (!program) return 2;
    const exec::Launch launch = launch_of(*program);
    const uint64_t acts = exec::schedule_signature(*program);
    const auto right = exec::run(*program, launch);
    exec::ScheduleOptions options;
    options.close = false;
    options.tiles = 6;
    exec::ScheduleOptions closed = options;
    closed.close = true;
    if (const auto r = exec::check_schedules(*program, options);
        !r.holds() || !right.faults.empty()) {
      fmt::print("{}: a false alarm\n", path);
      ++bad;
      continue;
    }
    for (test::Mutant& m : test::mutants_of(*program)) {
      if (int(random() % 1000) >= share) continue;
      const std::string text = tl::print(m.program);
      Diagnostics ignored;
      const auto mutant = tl::parse(make_source("mutant.tl", text), ignored);
      if (!mutant) continue;
      Tally& t = classes[m.kind];
      const bool law = !tl::verify(*mutant, ignored);
      std::string found = finding(*mutant, options), value;
      if (found.empty()) value = values(*mutant, launch, right.outputs);
      const bool left = !law && found.empty() && value.empty();
      const bool alike = left && exec::schedule_signature(*mutant) == acts;
      if (left && !alike) found = finding(*mutant, closed);
      for (Tally* x : {&t, &all}) {
        ++x->mutants;
        x->law += law;
        x->schedules += !found.empty();
        x->only_schedules += !found.empty() && !law;
        x->values += !value.empty();
      }
      const std::string key = fmt::format("{} | {} | {}", file, m.kind, m.where);
      if (alike) {
        ++t.alike;
        ++all.alike;
      } else if (left && found.empty()) {
        ++t.equivalent;
        ++all.equivalent;
        needed.insert(key);
        if (!known.count(key)) {
          fmt::print("not caught: {}\n", key);
          ++bad;
        }
      }
      for (const auto& [params, sequence] : kSmall) {
        if (!agree) break;
        const auto a = exec::compare_checkers(*mutant, params, sequence, 1, 400'000);
        if (!a.walk.empty()) continue;
        ++all.compared;
        all.cut += a.cut;
        if (a.agree() || (a.explored.empty() && known.count("clocks | " + key))) continue;
        fmt::print("the checkers disagree: {} ({} blocks): clocks '{}', explored '{}'\n", key,
                   sequence.size(), a.clocks, a.explored);
        ++bad;
      }
    }
    for (const std::string& key : known) {
      if (share < 1000 || key.rfind(file + " | ", 0) != 0 || needed.count(key)) continue;
      fmt::print("listed, and caught or not among the mutants: {}\n", key);
      ++bad;
    }
  }
  for (const auto& [kind, t] : classes)
    fmt::print(
        "{:40} {:5} mutants, {:5} by law, {:5} by schedules, {:4} by values, {:4} alike, {:4} not "
        "wrong\n",
        kind, t.mutants, t.law, t.schedules, t.values, t.alike, t.equivalent);
  fmt::print(
      "{} classes, {} mutants: {} by law, {} by schedules ({} by no law), {} by values alone, "
      "{} act alike, {} not wrong; {} comparisons of the checkers, {} cut; {} unexpected\n",
      classes.size(), all.mutants, all.law, all.schedules, all.only_schedules, all.values,
      all.alike, all.equivalent, all.compared, all.cut, bad);
  return bad ? 1 : 0;
}
