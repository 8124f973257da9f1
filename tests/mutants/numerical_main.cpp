// Numerical mutants of the four examples' programs (and two more), made from each kernel of the
// corpus with small tiles: each must be caught by a law, by the values or by the exact reading; lie
// in text that is switched off; or stand in the reviewed list of those that compute the same.
//
//   numerical_mutants LIST SHARE SEED [--processes N] [--shipped]
//
// With --shipped, of the four examples as `make` lowers them: their head dimension, the shipped
// tiles.
// SHARE in 1000 of all mutants are tried, chosen by SEED; 1000 is all, and with the same seed
// 450-1000 is what 450 leaves out. A line of LIST is "example, or any | class | statement => mutant
// | reason". Exit code 1: a mutant that nothing explains, or a program that is refused though it is
// right.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <set>

#include "../fuzz/small_kernels.h"
#include "../unit/hand_captures.h"
#include "check/trial.h"
#include "in_clone.h"
#include "numerical.h"
#include "tl/laws/laws.h"

namespace {

using namespace kw;

using Constants = std::vector<std::pair<std::string, int64_t>>;

// A program, what it is held against, and the constants with which it runs: what two texts compute
// alike with one warpgroup or one CTA they may not with two.
struct Subject {
  std::string name;
  tl::Program program;
  spec::Capture capture;
  std::vector<Constants> constants;
};

// An example's form with three query heads for each of two key heads: were they two, H // G and G
// would be the same.
spec::Form six_heads(const std::string& example) {
  using namespace spec;
  Form f = test::form_of(example);
  f.H = f.arguments[0].dims[1] = {"", 6};
  if (example == "alibi") f.arguments[3].dims[0] = f.H;
  Term& t = f.terms[0];
  t.k.indices[1] = t.v.indices[1] = binary("//", test::at("h"), integer(3));
  return f;
}

// The same for a head dimension of 16. `late` leaves rows and tiles without a key.
spec::Form small_form(const std::string& example) {
  using namespace spec;
  Form f = six_heads(example);
  f.D = f.Dv = {"", 16};
  for (size_t a = 0; a < 3; ++a) f.arguments[a].dims[3] = f.D;
  Term& t = f.terms[0];
  t.score = rewrite(t.score, [](const ExprPtr& e) {
    return e->kind == Kind::number && e->type == Type::real ? real(0.25) : nullptr;
  });
  if (example == "late")
    t.keep = binary("<", binary("+", test::at("j"), integer(70)), test::at("i"));
  return f;
}

// Read again, so that lines are those of its own text.
tl::Program program_for(const tl::Program& kernel, const spec::Form& form,
                        const transfer::Target& target, const std::string& name) {
  Diagnostics d;
  auto made = transfer::transfer(kernel, form, target, d);
  auto program =
      made ? tl::parse(make_source(name + ".tl", tl::print(made->program)), d) : std::nullopt;
  if (!program) throw std::runtime_error(render(d));
  return std::move(*program);
}

std::vector<Subject> shipped_subjects() {
  std::vector<Subject> out;
  const std::vector<fuzz::Kernel> kernels = fuzz::small_kernels();
  const std::vector<std::array<std::string, 3>> texts = {{"hopper", "sm90", "sm_90a"},
                                                         {"ampere", "sm80", "sm_80"}};
  for (const auto& [kernel, folder, target] : texts) {
    const auto text = std::find_if(kernels.begin(), kernels.end(),
                                   [&](const fuzz::Kernel& k) { return k.name == kernel; });
    Diagnostics d;
    const auto tiles = transfer::read_tiles(
        read_source(kw::in_clone(fmt::format("/kernels/{}/tiles.json", folder))), d);
    if (!tiles) throw std::runtime_error(render(d));
    for (const char* example : {"full", "causal", "prefix_lm", "alibi"}) {
      const spec::Form form = six_heads(example);
      const std::string name = fmt::format("{} {}", target, example);
      out.push_back({name,
                     program_for(text->program, form, {target, tiles->rows, 0}, name),
                     test::capture_of(form),
                     {{}}});
    }
  }
  return out;
}

std::vector<Subject> subjects() {
  std::vector<Subject> out;
  const std::vector<fuzz::Kernel> kernels = fuzz::small_kernels();
  const std::map<std::string, std::vector<Constants>> constants = {
      {"cluster",
       {{{"BM", 384},
         {"CTAS", 2},
         {"BN", 16},
         {"WARPGROUP_REGISTERS", 160},
         {"LOADER_REGISTERS", 32}},
        {{"BM", 192}, {"CTAS", 1}, {"BN", 32}, {"WARPGROUP_REGISTERS", 160}}}},
      {"ampere", {{{"WARPGROUPS", 1}, {"BN", 16}}, {{"WARPGROUPS", 2}, {"BN", 32}}}}};
  for (const fuzz::Kernel& k : kernels) {
    if (!constants.count(k.name)) continue;
    for (const char* example : {"full", "causal", "prefix_lm", "alibi", "late", "columns"}) {
      const spec::Form form = small_form(example);
      const std::string name = fmt::format("{} {}", k.name, example);
      out.push_back({name, program_for(k.program, form, k.target, name), test::capture_of(form),
                     constants.at(k.name)});
    }
  }
  return out;
}

tl::Program with(tl::Program p, const Constants& constants) {
  tl::walk(p.body, [&](tl::Stmt& s) {
    if (s.op != tl::Op::param) return;
    for (tl::Item& d : s.names())
      for (const auto& [name, value] : constants)
        if (d.name == name) d.expr = tl::integer(value);
  });
  return p;
}

// Ragged and whole tiles, one and several of them, more keys than queries and fewer, one of each.
std::vector<check::Case> cases_of(const spec::Capture& capture) {
  constexpr int64_t kShapes[][3] = {{1, 5, 40}, {2, 80, 33},   {1, 100, 17},  {1, 64, 32},
                                    {1, 1, 1},  {1, 300, 192}, {1, 300, 230}, {1, 300, 300}};
  // Moderate scores; references that rise; masked keys far above those that are kept; exponentials
  // that overflow where the reference stays; a row whose every score lies far below 0.
  constexpr double kScales[] = {1, 6, 1, 100, 300, 6, 1, 100};
  std::vector<check::Case> out;
  for (const auto& [b, m, n] : kShapes) {
    check::Case c;
    c.golden = &capture.cases[out.size() % 2];
    c.sizes = {{"B", b}, {"M", m}, {"N", n}};
    c.draws = c.golden->draws;
    c.draws.seed += out.size();
    if (c.draws.arguments.count("prefix"))
      c.draws.arguments["prefix"].high = out.size() == 7 ? 40 : n;
    c.draws.arguments["q"].scale *= kScales[out.size()];
    // In every second case of one batch entry one document, so that some blocks need no mask.
    for (const char* ids : {"own", "document"})
      if (out.size() % 2 == 1 && b == 1 && c.draws.arguments.count(ids))
        c.draws.arguments[ids].high = 0;
    c.exact = false;
    c.grid = 1 + int(out.size() % 2);
    check::choose_heads(capture.form, c, m < 200);
    out.push_back(std::move(c));
  }
  return out;
}

// Which statements run at all, by their lines.
class Lines : public exec::Observer {
 public:
  std::set<int> seen;
  void before(const tl::Stmt& s, const exec::View&) override {
    if (s.span.known() && places.insert(s.span.begin).second) seen.insert(s.span.start().line);
  }

 private:
  std::set<size_t> places;  // a line is counted from the first one, and statements run often
};

std::set<int> lines_that_run(const Subject& s) {
  Lines lines;
  Diagnostics d;
  for (const check::Case& c : cases_of(s.capture)) {
    const auto problem = spec::make_problem(s.capture.form, c.sizes, c.draws, d);
    for (const Constants& constants : s.constants) {
      const tl::Program p = with(s.program, constants);
      const auto launch = check::bind(p, s.capture.form, *problem, c, d);
      exec::run(p, *launch, &lines);
    }
  }
  return lines.seen;
}

struct Found {
  bool law = false, values = false, exact = false, doubt = false;
  std::string how;
  bool any() const { return law || values || exact; }
  void say(const std::string& text) {
    if (how.empty()) how = text;
  }
};

void read_values(Found& f, const tl::Program& p, const Subject& s,
                 const std::vector<check::Case>& cases) {
  for (const check::Case& c : cases) {
    const check::Trial t = check::run_trial(p, s.capture, c);
    f.values = !t.valid || t.failure;
    if (!f.values) continue;
    return f.say(t.valid ? t.failure->what.message : render(t.diagnostics));
  }
}

void read_exact(Found& f, const tl::Program& p, const Subject& s,
                const std::vector<check::Case>& cases) {
  int draw = 0;
  for (const check::Case& c : cases) {
    const check::Trial t = check::run_exact_trial(p, s.capture, c, draw++);
    f.doubt |= t.failure && t.failure->opaque;
    f.exact = !t.valid || (t.failure && !t.failure->opaque);
    if (!f.exact) continue;
    return f.say(t.valid ? t.failure->what.message : render(t.diagnostics));
  }
}

Found look(const tl::Program& program, const Subject& s, const std::vector<check::Case>& cases) {
  Found f;
  std::vector<tl::Program> ready;
  for (const Constants& constants : s.constants) {
    Diagnostics d;
    ready.push_back(with(program, constants));
    f.law |= !tl::verify(ready.back(), d) && fuzz::breaks_a_law(d);
    if (f.law) f.say(render(d));
  }
  if (f.law) return f;
  for (const tl::Program& p : ready)
    if (!f.values) read_values(f, p, s, cases);
  for (const tl::Program& p : ready)
    if (!f.exact) read_exact(f, p, s, cases);
  return f;
}

const char* const kColumns[] = {"mutants",    "law", "values", "exact",      "only values",
                                "only exact", "off", "same",   "unexplained"};
constexpr int kCount = 9;
using Tally = std::array<int, kCount>;

std::set<std::string> read_list(const std::string& path) {
  std::set<std::string> known;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line[0] != '#') known.insert(line.substr(0, line.rfind(" | ")));
  return known;
}

// "450", "450-1000".
struct Share {
  explicit Share(const std::string& text) {
    const size_t dash = text.find('-');
    if (dash != std::string::npos) from = std::stoi(text);
    to = std::stoi(text.substr(dash == std::string::npos ? 0 : dash + 1));
  }
  bool has(int n) const { return from <= n && n < to; }
  int from = 0, to = 0;
};

class Run {
 public:
  Run(const std::string& list, const Share& share, int seed, int part, int parts)
      : known_(read_list(list)), random_(seed), share_(share), part_(part), parts_(parts) {}

  // Tallies by class and by program; prints what nothing explains.
  void all(const std::vector<Subject>& of) {
    for (const Subject& s : of) {
      const std::vector<check::Case> cases = cases_of(s.capture);
      if (const Found f = look(s.program, s, cases); f.any() || f.doubt) {
        fmt::print("{}: a false alarm: {}\n", s.name, f.how);
        ++tallies["false alarms"][8];
        continue;
      }
      const std::set<int> lines = lines_that_run(s);
      for (const test::Mutant& m : test::numerical_mutants_of(s.program)) one(s, cases, lines, m);
    }
  }

  std::map<std::string, Tally> tallies;

 private:
  void one(const Subject& s, const std::vector<check::Case>& cases, const std::set<int>& lines,
           const test::Mutant& m) {
    if (!share_.has(int(random_() % 1000)) || int(count_++ % parts_) != part_) return;
    Diagnostics ignored;
    const auto mutant = tl::parse(make_source("mutant.tl", tl::print(m.program)), ignored);
    if (!mutant) return;
    const Found f = look(*mutant, s, cases);
    const size_t colon = m.where.find(": ");
    const std::string key = fmt::format("{} | {} => {}", m.kind, m.where.substr(colon + 2), m.now);
    const bool off = !f.any() && !lines.count(std::stoi(m.where));
    const std::string example = s.name.substr(s.name.find(' ') + 1);
    const bool listed = known_.count("any | " + key) || known_.count(example + " | " + key);
    const bool same = !f.any() && !off && listed;
    const bool unexplained = !f.any() && !off && !same;
    if (unexplained) fmt::print("not caught: {}: {}\n", s.name, key);
    const Tally t = {1,   f.law, f.values,   f.exact, f.values && !f.exact, f.exact && !f.values,
                     off, same,  unexplained};
    for (const std::string& row : {"class: " + m.kind, "program: " + s.name, std::string("all")})
      for (int n = 0; n < kCount; ++n) tallies[row][size_t(n)] += t[size_t(n)];
  }

  const std::set<std::string> known_;
  std::mt19937 random_;
  const Share share_;
  const int part_, parts_;
  int64_t count_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  int parts = 1;
  bool shipped = false;
  for (int n = 4; n < argc; ++n) {
    shipped |= argv[n] == std::string("--shipped");
    if (argv[n] == std::string("--processes") && n + 1 < argc) parts = std::stoi(argv[n + 1]);
  }
  std::vector<std::string> files;
  for (int part = 0; part < parts; ++part) {
    files.push_back(fmt::format("{}/numerical.{}.{}", "/tmp", getpid(), part));
    if (fork() != 0) continue;
    Run run(argv[1], Share(argv[2]), std::stoi(argv[3]), part, parts);
    run.all(shipped ? shipped_subjects() : subjects());
    std::fflush(stdout);
    std::ofstream out(files.back());
    for (const auto& [name, t] : run.tallies) {
      for (const int n : t) out << n << ' ';
      out << name << '\n';
    }
    out.flush();
    _exit(0);
  }
  bool ended = true;
  for (int part = 0, status = 0; part < parts; ++part) ended &= wait(&status) > 0 && status == 0;
  std::map<std::string, Tally> all;
  for (const std::string& file : files) {
    std::ifstream in(file);
    Tally t{};
    while (in >> t[0]) {
      for (size_t n = 1; n < t.size(); ++n) in >> t[n];
      std::string name;
      std::getline(in >> std::ws, name);
      for (size_t n = 0; n < t.size(); ++n) all[name][n] += t[n];
    }
    std::remove(file.c_str());
  }
  fmt::print("{:36}", "");
  for (const char* c : kColumns) fmt::print(" {:>11}", c);
  fmt::print("\n");
  int classes = 0;
  for (const auto& [name, t] : all) {
    classes += name.rfind("class", 0) == 0;
    fmt::print("{:36}", name);
    for (const int n : t) fmt::print(" {:>11}", n);
    fmt::print("\n");
  }
  fmt::print("{} classes, {} mutants, {} unexplained or false alarms\n", classes, all["all"][0],
             all["all"][8] + all["false alarms"][8]);
  return !ended || all["all"][8] + all["false alarms"][8] || !all["all"][0] ? 1 : 0;
}
