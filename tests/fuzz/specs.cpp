// Functions by seed through graph, form, transfer, laws and both readings (judge.h).
//
//   spec_fuzz FIRST COUNT [--processes N] [--log FILE]
//                                                judge them; counts at the end
//   spec_fuzz --gradients ...                    their gradients, for each of these
//   spec_fuzz --show SEED                        one of them: Python, form, program, verdict
//   spec_fuzz --python FOLDER FIRST COUNT        write FOLDER/SEED.py of each
//   spec_fuzz --captured FOLDER FIRST COUNT      capture's FOLDER/SEED has the same form
//
// With --log a run that was cut goes on where it was: FILE.K has a line for each seed of process K.
// Exit code 1: something was wrong, or a seed has no verdict.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>

#include "graph_text.h"
#include "judge.h"

namespace {

using namespace kw;
using namespace kw::fuzz;

struct Options {
  uint64_t first = 1;
  int64_t count = 100;
  int processes = 1;
  std::string log, folder, mode;
  Wanted wanted = Wanted::output;

  Function function(uint64_t seed) const { return function_of(seed, wanted); }
  Verdict judge(const Judge& judge, const Function& f) const {
    return wanted == Wanted::gradients ? judge.judge_gradients(f) : judge.judge(f);
  }
};

// One line a seed: seed, outcome, code, classes.
std::string line_of(const Function& f, const Verdict& v) {
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", f.seed, name(v.outcome), v.code, f.mask,
                     f.score, f.heads, f.normaliser, v.target);
}

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> out(1);
  for (const char c : line)
    if (c == '\t')
      out.emplace_back();
    else
      out.back() += c;
  return out;
}

void judge_part(const Options& o, int part) {
  const std::string path = fmt::format("{}.{}", o.log, part);
  std::set<uint64_t> done;
  std::ifstream before(path);
  for (std::string line; std::getline(before, line);)
    if (split(line).size() == 8) done.insert(std::stoull(line));
  std::ofstream log(path, std::ios::app);
  const Judge judge;
  for (uint64_t seed = o.first; seed < o.first + uint64_t(o.count); ++seed) {
    if (seed % uint64_t(o.processes) != uint64_t(part) || done.count(seed)) continue;
    const Function f = o.function(seed);
    const Verdict v = o.judge(judge, f);
    if (v.outcome == Outcome::wrong) fmt::print("seed {}: {}: {}\n", seed, v.code, v.detail);
    log << line_of(f, v) << std::flush;
  }
}

struct Counts {
  int outcomes[4] = {};
  void add(const std::string& outcome) {
    for (int o = 0; o < 4; ++o) outcomes[o] += outcome == name(Outcome(o));
  }
};

int report(const Options& o) {
  std::map<std::string, Counts> classes;
  std::map<std::string, int> codes;
  Counts all;
  std::set<uint64_t> seen;
  for (int part = 0; part < o.processes; ++part) {
    std::ifstream log(fmt::format("{}.{}", o.log, part));
    for (std::string line; std::getline(log, line);) {
      const std::vector<std::string> word = split(line);
      if (word.size() != 8) continue;
      const uint64_t seed = std::stoull(word[0]);
      if (seed < o.first || seed >= o.first + uint64_t(o.count) || !seen.insert(seed).second)
        continue;
      all.add(word[1]);
      if (word[1] != "holds") ++codes[word[1] + " " + word[2]];
      const char* kinds[] = {"mask", "score", "heads", "normaliser", "target"};
      for (int k = 0; k < 5; ++k)
        classes[fmt::format("{}: {}", kinds[k], word[3 + k])].add(word[1]);
    }
  }
  fmt::print("{:<38} {:>7} {:>7} {:>7} {:>7}\n", "class", "holds", "refused", "inconcl", "wrong");
  for (const auto& [name, c] : classes)
    fmt::print("{:<38} {:>7} {:>7} {:>7} {:>7}\n", name, c.outcomes[0], c.outcomes[1],
               c.outcomes[2], c.outcomes[3]);
  for (const auto& [code, n] : codes) fmt::print("{:>7}  {}\n", n, code);
  const int64_t missing = o.count - int64_t(seen.size());
  fmt::print("seeds {} to {}: {} hold, {} refused, {} inconclusive, {} wrong{}\n", o.first,
             o.first + uint64_t(o.count) - 1, all.outcomes[0], all.outcomes[1], all.outcomes[2],
             all.outcomes[3], missing ? fmt::format("; {} without a verdict", missing) : "");
  return all.outcomes[3] || missing ? 1 : 0;
}

int judge_all(Options o) {
  const bool scratch = o.log.empty();
  std::string folder = (std::filesystem::temp_directory_path() / "spec_fuzz.XXXXXX").string();
  if (scratch) {
    if (!mkdtemp(folder.data())) return 2;
    o.log = folder + "/log";
  }
  std::vector<pid_t> children;
  for (int part = 0; part < o.processes; ++part) {
    std::cout.flush();
    const pid_t child = fork();
    if (child == 0) {
      judge_part(o, part);
      std::fflush(stdout);
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    if (status) fmt::print("a process ended with status {}\n", status);
  }
  const int code = report(o);
  if (scratch) std::filesystem::remove_all(folder);
  return code;
}

int show(const Options& o) {
  const Function f = o.function(o.first);
  fmt::print("# B {} H {} G {} M {} N {} D {}\n{}\n", f.B, f.H, f.G, f.M, f.N, f.D,
             python_of(f.graph, f.prelude, f.example));
  Diagnostics d;
  if (const auto form = form_of(f, d)) fmt::print("{}\n", spec::print(*form));
  const Verdict v = o.judge(Judge(), f);
  fmt::print("{} {}\n{}\n", name(v.outcome), v.code, v.detail);
  return v.outcome == Outcome::wrong;
}

int write_python(const Options& o) {
  std::filesystem::create_directories(o.folder);
  for (uint64_t seed = o.first; seed < o.first + uint64_t(o.count); ++seed) {
    const Function f = o.function(seed);
    std::ofstream(fmt::format("{}/{}.py", o.folder, seed))
        << python_of(f.graph, f.prelude, f.example);
  }
  return 0;
}

// A form's text, or the code of its refusal.
std::string text_of(const std::optional<spec::Form>& form, const Diagnostics& d) {
  if (form) return spec::print(*form);
  for (const Diagnostic& x : d.all()) return "refused: " + x.code;
  return "refused";
}

int compare_captured(const Options& o) {
  int same = 0, different = 0, refused = 0;
  for (uint64_t seed = o.first; seed < o.first + uint64_t(o.count); ++seed) {
    const std::string folder = fmt::format("{}/{}", o.folder, seed);
    Diagnostics emitted, captured;
    const auto ours = form_of(o.function(seed), emitted);
    const auto capture = spec::load_capture(folder, captured, spec::SelfCheck::all);
    std::optional<spec::Form> theirs;
    if (capture) theirs = capture->form;
    for (const auto* form : {&ours, static_cast<const std::optional<spec::Form>*>(&theirs)})
      if (*form) {
        const_cast<spec::Form&>(**form).notes.clear();
        const_cast<spec::Form&>(**form).built_in.clear();  // what capture takes for granted
      }
    const std::string a = text_of(ours, emitted), b = text_of(theirs, captured);
    refused += !ours && a == b;
    ++(a == b ? same : different);
    if (a != b)
      fmt::print("seed {}:\n--- emitted\n{}\n--- captured\n{}\n{}", seed, a, b, render(captured));
  }
  fmt::print("seeds {} to {}: {} the same ({} of them refused alike), {} different\n", o.first,
             o.first + uint64_t(o.count) - 1, same, refused, different);
  return different ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  std::vector<std::string> numbers;
  for (int n = 1; n < argc; ++n) {
    const std::string a = argv[n];
    const bool more = n + 1 < argc;
    if (a == "--processes" && more)
      o.processes = std::stoi(argv[++n]);
    else if (a == "--log" && more)
      o.log = argv[++n];
    else if ((a == "--python" || a == "--captured") && more)
      o.mode = a, o.folder = argv[++n];
    else if (a == "--gradients")
      o.wanted = Wanted::gradients;
    else if (a == "--show")
      o.mode = a;
    else
      numbers.push_back(a);
  }
  if (o.mode == "--show" && numbers.size() == 1) {
    o.first = std::stoull(numbers[0]);
    return show(o);
  }
  if (numbers.size() != 2) return fmt::print("usage: see the top of specs.cpp\n"), 2;
  o.first = std::stoull(numbers[0]);
  o.count = std::stoll(numbers[1]);
  if (o.mode == "--python") return write_python(o);
  if (o.mode == "--captured") return compare_captured(o);
  return judge_all(o);
}
