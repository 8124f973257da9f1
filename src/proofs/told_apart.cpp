#include "proofs/told_apart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

namespace kw::proofs {
namespace {

// Rows, keys and batch entries that cases have at least; and beyond the numbers of scores.
constexpr int64_t kCaseRows = 300, kBatches = 64, kBeyond = 65;
constexpr int64_t kEach = kEffort / 10;  // of the solver, for one pair

// The largest number in a term.
int64_t largest(const std::string& term) {
  int64_t out = 0;
  for (const char* at = term.c_str(); *at;) {
    if (!std::isdigit(static_cast<unsigned char>(*at))) {
      ++at;
      continue;
    }
    char* end = nullptr;
    out = std::max<int64_t>(out, std::strtoll(at, &end, 10));
    at = end;
  }
  return out;
}

}  // namespace

std::string not_told_apart(
    const std::vector<Term>& specified, const Uses& uses, const Solver& solver,
    const std::map<std::string, Term>& sizes, int64_t page, const std::vector<std::string>& drawn,
    const std::function<Question(const Use&, const std::string& claim)>& of_kept) {
  const auto answer = [&](const Question& q) { return solver.ask(q, kEach).answer; };
  const auto proved = [&](const Question& q) { return answer(q) == Answer::proved; };
  for (const Term& s : specified) {
    if (is_plain(s, uses)) continue;
    const int64_t rows = std::max(kCaseRows, largest(s.text) + kBeyond);
    const auto in_cases = [&](Question q) {
      for (const auto& [size, most] : {std::pair{"M", rows}, {"N", rows + page - 1}})
        q.premises.push_back(fmt::format("(<= {} {})", sizes.at(size).text, most));
      q.premises.push_back(fmt::format("(<= {} {})", sizes.at("B").text, kBatches));
      q.premises.insert(q.premises.end(), drawn.begin(), drawn.end());
      return q;
    };
    for (const Use& u : uses.all) {
      if (s.sort != u.term.sort || s.text == u.term.text) continue;
      const Question same = of_kept(u, fmt::format("(= {} {})", u.term.text, s.text));
      // Not decided is not told apart.
      if (answer(in_cases(same)) == Answer::refuted) continue;
      // Where no case is so small, sizes are fixed beyond, and cases have them.
      if (!proved(in_cases(of_kept(u, "false"))) && !proved(same))
        return fmt::format("{} is {} in all cases, and not everywhere", u.text, s.text);
    }
  }
  return "";
}

}  // namespace kw::proofs
