#include "propose/propose.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <thread>

#include "propose/anonymous.h"
#include "propose/asker.h"
#include "propose/bindings.h"
#include "propose/judge.h"
#include "propose/patch.h"
#include "propose/words.h"
#include "tl/laws/laws.h"

namespace kw::propose {
namespace {

// What all conversations have in common.
struct Shared {
  const Task& task;
  models::Provider& provider;
  const Options& options;
  const transfer::Result begun;  // the source with this function's constants
  const spec::Capture nameless;  // what the proposer and the checks in the loop see
  const std::vector<std::string> lines;
  std::atomic<int> won{0};  // the lowest sample that succeeded; 0: none has yet
};

struct Ended {
  std::vector<Attempt> attempts;
  std::optional<transfer::Result> result;
  check::Report report;
  std::optional<models::ProviderError> problem;
};

class Conversation {
 public:
  Conversation(Shared& shared, int sample)
      : shared_(shared), sample_(sample), asker_(shared.provider, shared.options.tokens) {}

  Ended run() {
    for (int number = 1; number <= shared_.options.attempts && !lost(); ++number) {
      Attempt attempt;
      attempt.sample = sample_;
      attempt.number = number;
      const bool more = once(attempt);
      ended_.attempts.push_back(std::move(attempt));
      if (ended_.result || !more) break;
    }
    return std::move(ended_);
  }

 private:
  // A lower sample has succeeded: nothing that this one finds would be taken.
  bool lost() const {
    const int won = shared_.won;
    return won != 0 && won < sample_;
  }

  // False: another attempt would not be answered.
  bool once(Attempt& attempt) {
    Diagnostics none;  // the templates were tried before
    const std::optional<Prompt> prompt =
        make_prompt(shared_.task.templates, shared_.lines, shared_.nameless.form,
                    last_ ? &*last_ : nullptr, none);
    if (!prompt || !ask(*prompt, attempt)) return false;
    last_ = Feedback{};
    judge(attempt);
    last_->refusal = attempt.refusal;
    return true;
  }

  bool ask(const Prompt& prompt, Attempt& attempt) {
    const Came came = asker_.ask({"transfer", attempt.number, sample_, prompt.system, prompt.user,
                                  answer_schema(), shared_.options.answer_tokens},
                                 attempt.answer, attempt.refusal);
    ended_.problem = asker_.problem();
    if (came == Came::nothing) return false;
    attempt.stage = Stage::answered;
    return true;
  }

  // Through every stage until one refuses.
  void judge(Attempt& attempt) {
    if (!attempt.refusal.code.empty()) return;
    last_->edits = read_answer(attempt.answer, attempt.refusal);
    if (!last_->edits) return;
    const auto text = apply(shared_.lines, *last_->edits, attempt.refusal);
    if (!text) return;
    attempt.program = *text;
    const auto program = read_program(*text, shared_.begun.program,
                                      shared_.nameless.form.terms.size() > 1, attempt.refusal);
    if (!program) {
      if (tl::law(attempt.refusal.code)) attempt.stage = Stage::read;
      return;
    }
    attempt.stage = Stage::obeys;
    const Judged rehearsed = rehearse(*program, shared_.nameless, shared_.options.rehearsal);
    attempt.refusal = rehearsed.refusal;
    attempt.details = last_->details = rehearsed.details;
    if (!attempt.refusal.code.empty()) return;
    attempt.stage = Stage::computes;
    accept(*program, attempt);
  }

  // The last word, under the user's names and on inputs that nobody has spoken of.
  void accept(const tl::Program& program, Attempt& attempt) {
    const spec::Capture& capture = shared_.task.capture;
    transfer::Result result = shared_.begun;
    result.program = with_names(program, capture.form);
    if (!bind_arguments(result, shared_.begun.program, capture.form, attempt.refusal)) return;
    attempt.program = tl::print(result.program);
    check::Report report = check::check(result.program, capture, shared_.options.check);
    if (report.verdict != check::Verdict::holds) {
      attempt.refusal = {fmt::format("accept.{}", check::name(report.verdict)),
                         "the program passed the check of this conversation, and another one on "
                         "inputs that are not shown here ends otherwise: write what the function "
                         "means for all inputs"};
      attempt.details = check::print(report);
      last_->details.clear();
      return;
    }
    attempt.stage = Stage::accepted;
    ended_.result = std::move(result);
    ended_.report = std::move(report);
    int won = shared_.won;
    while ((won == 0 || sample_ < won) && !shared_.won.compare_exchange_weak(won, sample_)) {
    }
  }

  Shared& shared_;
  const int sample_;
  Asker asker_;
  std::optional<Feedback> last_;
  Ended ended_;
};

std::vector<Ended> converse(Shared& shared) {
  const int samples = shared.options.samples;
  std::vector<Ended> ended(samples);
  std::vector<std::exception_ptr> faults(samples);  // our own: they are the caller's to report
  std::atomic<int> next{0};
  const auto work = [&] {
    for (int n = next++; n < samples; n = next++) try {
        ended[n] = Conversation(shared, n + 1).run();
      } catch (...) {
        faults[n] = std::current_exception();
      }
  };
  const int wanted = shared.options.threads > 0 ? shared.options.threads : samples;
  std::vector<std::thread> pool;
  for (int t = 1; t < std::min(wanted, samples); ++t) pool.emplace_back(work);
  work();
  for (std::thread& t : pool) t.join();
  for (const std::exception_ptr& fault : faults)
    if (fault) std::rethrow_exception(fault);
  return ended;
}

// What came furthest; of those, what the lowest sample found last.
int best_of(const std::vector<Attempt>& attempts) {
  int best = -1;
  for (int n = 0; n < static_cast<int>(attempts.size()); ++n) {
    const Attempt& a = attempts[n];
    if (a.program.empty()) continue;
    if (best < 0 || a.stage > attempts[best].stage ||
        (a.stage == attempts[best].stage && a.sample == attempts[best].sample))
      best = n;
  }
  return best;
}

}  // namespace

std::string_view name(Stage s) {
  switch (s) {
    case Stage::asked:
      return "asked";
    case Stage::answered:
      return "answered";
    case Stage::read:
      return "read";
    case Stage::obeys:
      return "obeys the laws";
    case Stage::computes:
      return "passes the loop's check";
    case Stage::accepted:
      return "accepted";
  }
  return "asked";
}

std::string count_refusals(const std::vector<Attempt>& attempts) {
  std::map<std::string, int> counts;
  for (const Attempt& a : attempts)
    if (!a.refusal.code.empty()) ++counts[a.refusal.code];
  std::vector<std::pair<std::string, int>> order(counts.begin(), counts.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string out = fmt::format("{} attempt{}: ", attempts.size(), attempts.size() == 1 ? "" : "s");
  for (size_t n = 0; n < order.size(); ++n)
    out += fmt::format("{}{} {}", n ? ", " : "", order[n].second, order[n].first);
  return order.empty() ? out + "none refused" : out;
}

Proposed propose(const Task& task, models::Provider& provider, const Options& options,
                 Diagnostics& diagnostics) {
  Proposed out;
  std::optional<transfer::Result> begun =
      transfer::begin(task.source, task.capture.form, task.target, diagnostics);
  if (!begun) return out;
  const std::vector<std::string> lines = lines_of(begun->program);
  Shared shared{task, provider, options, std::move(*begun), anonymous(task.capture), lines};
  if (!make_prompt(task.templates, lines, shared.nameless.form, nullptr, diagnostics)) return out;
  std::vector<Ended> ended = converse(shared);
  for (Ended& e : ended) {
    for (Attempt& a : e.attempts) {
      out.attempts.push_back(std::move(a));
      if (e.result && out.winner < 0 && out.attempts.back().stage == Stage::accepted)
        out.winner = static_cast<int>(out.attempts.size()) - 1;
    }
    if (e.result && !out.result) {
      out.result = std::move(e.result);
      out.report = std::move(e.report);
    }
    if (!out.problem) out.problem = std::move(e.problem);
  }
  out.best = out.winner >= 0 ? out.winner : best_of(out.attempts);
  if (out.result) {
    const Attempt& won = out.attempts[out.winner];
    describe_change(*out.result, task.source, won.answer.who);
  } else {
    Diagnostic& d = diagnostics.error(
        "propose.none", {},
        fmt::format("no program was accepted in {}", count_refusals(out.attempts)));
    d.hint = out.problem ? out.problem->what()
                         : "allow more attempts or samples, or ask another model; the record says "
                           "more";
  }
  return out;
}

nlohmann::ordered_json to_json(const Proposed& proposed) {
  nlohmann::ordered_json attempts = nlohmann::ordered_json::array();
  for (const Attempt& a : proposed.attempts)
    attempts.push_back({{"sample", a.sample},
                        {"attempt", a.number},
                        {"stage", name(a.stage)},
                        {"code", a.refusal.code},
                        {"sentence", a.refusal.sentence},
                        {"details", a.details},
                        {"who", a.answer.who},
                        {"tokens_in", a.answer.tokens_in},
                        {"tokens_out", a.answer.tokens_out},
                        {"dollars", a.answer.dollars},
                        {"answer", a.answer.text}});
  return {{"accepted", proposed.winner}, {"best", proposed.best}, {"attempts", attempts}};
}

}  // namespace kw::propose
