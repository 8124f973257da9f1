// The figures as a table: two rows an arm, of its first answers and of its conversations.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "eval/estimate.h"
#include "eval/eval.h"

namespace kw::eval {
namespace {

constexpr int kAt[] = {1, 3, 5};

// One row: an arm's samples, cut after the first answer or whole.
struct Line {
  Arm arm;
  bool first;
  std::map<std::string, std::vector<Conversation>> tasks;  // by specification

  std::string title() const {
    static constexpr const char* names[] = {"CUDA", "TL", "one step", "two steps", "CuTe"};
    const char* what = names[static_cast<size_t>(arm)];
    return fmt::format("{}, {}", what, first ? "first answer" : "with feedback");
  }
};

std::vector<Line> lines_of(const std::vector<Measured>& all) {
  std::vector<Line> lines;
  for (const Arm arm : {Arm::cuda, Arm::tl, Arm::one_step, Arm::two_steps, Arm::cute})
    for (const bool first : {true, false}) {
      Line line{arm, first, {}};
      for (const Measured& m : all) {
        if (m.arm != arm) continue;
        for (Conversation c : m.samples) {
          // What comes after the first refusal is what feedback gave.
          const auto refused =
              std::ranges::find_if(c, [](const Question& q) { return !q.code.empty(); });
          if (first && refused != c.end()) c.erase(refused + 1, c.end());
          line.tasks[m.spec].push_back(std::move(c));
        }
      }
      if (!line.tasks.empty()) lines.push_back(std::move(line));
    }
  return lines;
}

std::optional<double> pass_at(int k, const Line& line) {
  std::vector<std::optional<double>> estimates;
  for (const auto& [spec, samples] : line.tasks)
    estimates.push_back(eval::pass_at(k, static_cast<int>(samples.size()),
                                      static_cast<int>(std::ranges::count_if(samples, passed))));
  return mean(estimates);
}

// Means of one conversation, and how often which code refused.
struct Sums {
  double tokens = 0, dollars = 0, seconds = 0;
  int conversations = 0, failed = 0, undecided = 0;
  std::map<std::string, int> ends;     // why a conversation that failed ended
  std::map<std::string, int> refused;  // every answer
};

Sums sums_of(const Line& line) {
  Sums sums;
  for (const auto& [spec, samples] : line.tasks)
    for (const Conversation& c : samples) {
      ++sums.conversations;
      for (const Question& q : c) {
        sums.tokens += q.tokens_in + q.tokens_out;
        sums.dollars += q.dollars;
        sums.seconds += q.seconds;
        if (!q.code.empty() && q.code != kUndecidedCute) ++sums.refused[q.code];
      }
      if (passed(c)) continue;
      if (undecided(c))
        ++sums.undecided;
      else
        ++sums.failed;
      ++sums.ends[c.empty()               ? "budget.tokens"
                  : c.back().code.empty() ? "budget.attempts"
                                          : c.back().code];
    }
  return sums;
}

// The two confusions of QiMeng-Attention's appendix, by the laws that they break: an accumulator
// that is multiplied before it is reshaped into an operand, and a tile read along the wrong side.
const std::map<std::string, std::vector<std::string>>& confusions() {
  static const std::map<std::string, std::vector<std::string>> all = {
      {"missing to_operand",
       {"wgmma.C1", "wgmma_add.C1", "mma.C2", "mma_add.C2", "mma_add_transposed.C2",
        "wgmma_add_transposed.C1"}},
      {"transposed",
       {"wgmma.C2", "wgmma.C3", "wgmma_add.C2", "wgmma_add.C3", "mma.C3", "mma_add.C3",
        "mma_add_transposed.C3", "wgmma_add_transposed.C2", "wgmma_add_transposed.C3"}}};
  return all;
}

int count(const std::map<std::string, int>& refused, const std::vector<std::string>& codes) {
  int n = 0;
  for (const std::string& code : codes)
    if (refused.count(code)) n += refused.at(code);
  return n;
}

std::string figure(const std::optional<double>& x) { return x ? fmt::format("{:.2f}", *x) : "-"; }

std::string counted(const std::map<std::string, int>& codes) {
  std::vector<std::pair<std::string, int>> order(codes.begin(), codes.end());
  std::ranges::stable_sort(order, std::greater{}, &std::pair<std::string, int>::second);
  std::vector<std::string> parts;
  for (const auto& [code, n] : order) parts.push_back(fmt::format("{} {}", n, code));
  return parts.empty() ? "none failed" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string print(const std::vector<Measured>& all) {
  std::string out = fmt::format("{:<23} {:>7} {:>7} {:>7} {:>9} {:>9} {:>9} {:>9}\n", "", "pass@1",
                                "pass@3", "pass@5", "undecided", "seconds", "tokens", "dollars");
  std::string why;
  for (const Line& line : lines_of(all)) {
    const Sums sums = sums_of(line);
    const double n = std::max(1, sums.conversations);
    out += fmt::format("{:<23} {:>7} {:>7} {:>7} {:>9} {:>9.1f} {:>9.0f} {:>9.4f}\n", line.title(),
                       figure(pass_at(1, line)), figure(pass_at(3, line)), figure(pass_at(5, line)),
                       sums.undecided, sums.seconds / n, sums.tokens / n, sums.dollars / n);
    why += fmt::format("{}: {} of {} failed{}: {}", line.title(), sums.failed, sums.conversations,
                       sums.undecided ? fmt::format(", {} undecided", sums.undecided) : "",
                       counted(sums.ends));
    for (const auto& [what, codes] : confusions())
      why += line.arm == Arm::cute ? fmt::format("; {} not seen", what)
                                   : fmt::format("; {} {}", count(sums.refused, codes), what);
    why += "\n";
  }
  return out + "Seconds, tokens and dollars are means of one conversation.\n" + why;
}

nlohmann::ordered_json to_json(const std::vector<Measured>& all) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array(), samples = rows;
  for (const Line& line : lines_of(all)) {
    const Sums sums = sums_of(line);
    nlohmann::ordered_json row = {{"arm", name(line.arm)}, {"first_answer", line.first}};
    for (const int k : kAt) {
      const auto estimate = pass_at(k, line);
      row[fmt::format("pass@{}", k)] =
          estimate ? nlohmann::ordered_json(*estimate) : nlohmann::ordered_json();
    }
    row.update({{"conversations", sums.conversations},
                {"failed", sums.failed},
                {"undecided", sums.undecided},
                {"tokens", sums.tokens},
                {"dollars", sums.dollars},
                {"seconds", sums.seconds},
                {"ends", sums.ends},
                {"refused", sums.refused}});
    for (const auto& [what, codes] : confusions())
      row[what] = line.arm == Arm::cute ? nlohmann::ordered_json()
                                        : nlohmann::ordered_json(count(sums.refused, codes));
    rows.push_back(row);
  }
  for (const Measured& m : all)
    for (size_t n = 0; n < m.samples.size(); ++n) {
      nlohmann::ordered_json questions = nlohmann::ordered_json::array();
      for (const Question& q : m.samples[n])
        questions.push_back({{"step", q.step},
                             {"code", q.code},
                             {"tokens_in", q.tokens_in},
                             {"tokens_out", q.tokens_out},
                             {"dollars", q.dollars},
                             {"seconds", q.seconds}});
      samples.push_back({{"spec", m.spec},
                         {"arm", name(m.arm)},
                         {"sample", n + 1},
                         {"passed", passed(m.samples[n])},
                         {"undecided", undecided(m.samples[n])},
                         {"questions", questions}});
    }
  return {{"rows", rows}, {"samples", samples}};
}

}  // namespace kw::eval
