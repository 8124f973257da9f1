// Mutants of the kernel's text, by one token: the test that the lens can fail.
//
//   lens_mutants KERNEL.cu INCLUDE VENV COUNT SEED
//
// A mutant of the CUDA text must change the lifted program or be refused; one that is lifted to the
// original program slipped through. A mutant of the TL text that is a program must come back from
// lift(lower(p)), break a law, or be refused with a diagnostic. Prints what became of them; exit
// code 1 if one slipped through or broke a law.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <random>
#include <set>

#include "lower/lower.h"
#include "tl/laws/laws.h"

namespace kw {
namespace {

using tl::Spelling;
using tl::Token;

struct Mutant {
  std::string text, what;
};

// A program that obeys the laws and still has no CUDA text: a law is missing.
constexpr const char* kNoLaw = "tl: obeys the laws, but ";

class Mutator {
 public:
  Mutator(std::string text, Spelling spelling, unsigned seed)
      : text_(std::move(text)), tokens_(tl::lex(text_, spelling)), random_(seed) {
    std::erase_if(tokens_, [](const Token& t) { return t.text == "\n"; });
    std::set<std::string> words, numbers;
    for (const Token& t : tokens_) {
      if (tl::is_identifier(t.text)) words.insert(t.text);
      if (std::isdigit(t.text[0])) numbers.insert(t.text);
    }
    words_.assign(words.begin(), words.end());
    numbers_.assign(numbers.begin(), numbers.end());
    for (const char* n : {"1u", "0x10", "1.0", "1.0f", "010"}) numbers_.push_back(n);
    if (spelling == Spelling::tl) operators_.insert(operators_.end(), {"//", "and", "or", "not"});
  }

  Mutant next() {
    const size_t k = pick(tokens_.size());
    const Token& t = tokens_[k];
    const int how = static_cast<int>(pick(8));
    if (how == 0) return replace(t, " ");
    if (how == 1) return replace(t, t.text + " " + t.text);
    if (how == 2 && k + 1 < tokens_.size()) return swap(t, tokens_[k + 1]);
    if (how == 3) return replace(t, any(insertions_) + " " + t.text);
    if (std::isdigit(t.text[0])) return replace(t, any(numbers_));
    if (!tl::is_identifier(t.text)) return replace(t, any(operators_));
    return replace(t, how < 6 ? nearby(k) : any(words_));
  }

 private:
  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  const std::string& any(const std::vector<std::string>& of) { return of[pick(of.size())]; }

  // A word from the neighbourhood: more likely to be in scope and of the right sort.
  const std::string& nearby(size_t k) {
    std::vector<size_t> words;
    for (size_t n = k > 60 ? k - 60 : 0; n < std::min(k + 60, tokens_.size()); ++n)
      if (tl::is_identifier(tokens_[n].text)) words.push_back(n);
    return tokens_[words[pick(words.size())]].text;
  }

  std::string place(const Token& t) const {
    return "line " + std::to_string(1 + std::count(text_.begin(), text_.begin() + t.begin, '\n'));
  }
  Mutant replace(const Token& t, const std::string& by) const {
    return {text_.substr(0, t.begin) + by + text_.substr(t.end),
            fmt::format("{}: '{}' -> '{}'", place(t), t.text, by)};
  }
  Mutant swap(const Token& a, const Token& b) const {
    return {text_.substr(0, a.begin) + b.text + " " + a.text + text_.substr(b.end),
            fmt::format("{}: '{}' and '{}' swapped", place(a), a.text, b.text)};
  }

  std::string text_;
  std::vector<Token> tokens_;
  std::mt19937 random_;
  std::vector<std::string> words_, numbers_;
  std::vector<std::string> operators_ = {"+",  "-",  "*",  "/",  "%",  "<",  "<=", ">", ">=",
                                         "==", "!=", "&",  "(",  ")",  "{",  "|",  "^", "<<",
                                         ">>", "}",  "[",  "]",  ".",  "::", "!",  "=", "?",
                                         ":",  "++", "--", "&&", "||", ",",  ";"};
  std::vector<std::string> insertions_ = {"(", ")", "!", "-", "+", ";", "{}", "0", "const", "++"};
};

bool same_words(const std::string& a, const std::string& b, Spelling spelling) {
  const auto x = tl::lex(a, spelling), y = tl::lex(b, spelling);
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [](const Token& p, const Token& q) { return p.text == q.text; });
}

class Test {
 public:
  Test(SourcePtr kernel, lift::Toolchain toolchain)
      : kernel_(std::move(kernel)), toolchain_(std::move(toolchain)) {
    Diagnostics d;
    program_ = lift::lift(kernel_, toolchain_, d);
    if (!program_) fmt::print(stderr, "{}", render(d));
  }

  bool ready() const { return program_.has_value(); }
  std::string tl_text() const { return tl::print(*program_); }

  // Most mutants are refused by the table alone; clang is asked about the others.
  std::string cuda(const std::string& text) const {
    const SourcePtr mutant = make_source("mutant.cu", text);
    Diagnostics ignored;
    const auto read = lift::read_statements(mutant, tl::lex(text, Spelling::cuda), ignored);
    if (!read) return "cuda: no statement of the table";
    const bool same = equal(read->program, *program_);
    Diagnostics d;
    const auto lifted = lift::lift(mutant, toolchain_, d);
    if (!lifted) return "cuda: refused by clang";
    if (!equal(*lifted, read->program)) return "CUDA: CLANG READS OTHER TOKENS";
    if (same) return "CUDA: SLIPPED THROUGH";
    const auto own = lower::lower(*lifted, mutant, toolchain_, d);
    if (!own || own->text != text) return "CUDA: GETPUT BROKEN";
    return "cuda: another program";
  }

  std::string tl(const std::string& text) const {
    Diagnostics d;
    const auto program = tl::parse(make_source("mutant.tl", text), d);
    if (!program) return "tl: no statement of the table";
    if (tl::print(*tl::parse(make_source("again.tl", tl::print(*program)), d)) !=
        tl::print(*program))
      return "TL: PRINTING IS NO FIXED POINT";
    if (!tl::verify(*program, d)) return "tl: breaks a law";
    const auto lowered = lower::lower(*program, kernel_, toolchain_, d);
    if (!lowered) return refusal(d);
    const auto back = lift::lift(make_source("lowered.cu", lowered->text), toolchain_, d);
    if (!back || !equal(*back, *program)) return "TL: PUTGET BROKEN";
    return "tl: lowered and lifted back";
  }

 private:
  static std::string refusal(const Diagnostics& d) {
    for (const Diagnostic& one : d.all()) {
      if (one.severity != Severity::error) continue;
      if (one.code == "lower.put_get") return "TL: PUTGET BROKEN";
      return std::string(kNoLaw) + one.code + ": " + one.message;
    }
    return "TL: REFUSED WITHOUT A WORD";
  }

  SourcePtr kernel_;
  lift::Toolchain toolchain_;
  std::optional<tl::Program> program_;
};

int run(const SourcePtr& kernel, const lift::Toolchain& toolchain, int count, unsigned seed) {
  const Test test(kernel, toolchain);
  if (!test.ready()) return 1;
  Mutator cuda(kernel->text, Spelling::cuda, seed), tl(test.tl_text(), Spelling::tl, seed + 1);
  std::map<std::string, int> verdicts;
  int broken = 0;
  const auto judge = [&](const std::string& verdict, const Mutant& m) {
    ++verdicts[verdict.starts_with(kNoLaw) ? kNoLaw + std::string("cannot be lowered") : verdict];
    const bool bad = std::isupper(verdict[1]);
    broken += bad;
    if (bad || verdict.starts_with(kNoLaw)) fmt::print("{}: {}\n", verdict, m.what);
  };
  for (int k = 0; k < count; ++k) {
    const Mutant m = cuda.next();
    if (!same_words(m.text, kernel->text, Spelling::cuda)) judge(test.cuda(m.text), m);
    if (k % 10 != 0) continue;  // lowering asks clang two or three times
    const Mutant n = tl.next();
    if (!same_words(n.text, test.tl_text(), Spelling::tl)) judge(test.tl(n.text), n);
  }
  for (const auto& [verdict, times] : verdicts) fmt::print("{:5}  {}\n", times, verdict);
  fmt::print("seed {}\n", seed);
  return broken > 0;
}

}  // namespace
}  // namespace kw

int main(int argc, char** argv) {
  if (argc != 6) {
    fmt::print(stderr, "usage: lens_mutants KERNEL.cu INCLUDE VENV COUNT SEED\n");
    return 2;
  }
  const kw::SourcePtr kernel = kw::read_source(argv[1]);
  if (!kernel) {
    fmt::print(stderr, "cannot read {}\n", argv[1]);
    return 2;
  }
  return kw::run(kernel, kw::lift::find_toolchain(argv[2], {argv[3]}), std::atoi(argv[4]),
                 std::atoi(argv[5]));
}
