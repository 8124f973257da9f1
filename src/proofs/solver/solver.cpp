#include "proofs/solver/solver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace kw::proofs {

namespace fs = std::filesystem;

// The second gives quotients and remainders names of their own: it decides nested ones (i % 512 //
// 64), and is slower where there are few.
constexpr const char* kDecide[] = {
    "(check-sat)\n",
    "(check-sat-using (then simplify propagate-values solve-eqs purify-arith smt))\n"};

// The functions of Z3's C interface that are called: contexts, and text in, text out.
struct Solver::Functions {
  void* (*mk_config)() = nullptr;
  void (*del_config)(void*) = nullptr;
  void* (*mk_context)(void*) = nullptr;
  void (*del_context)(void*) = nullptr;
  void (*set_error_handler)(void*, void (*)(void*, int)) = nullptr;
  const char* (*eval_smtlib2_string)(void*, const char*) = nullptr;
  const char* (*get_full_version)() = nullptr;

  bool bind(void* library) {
    const auto find = [&](const char* name, auto& function) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    return find("Z3_mk_config", mk_config) && find("Z3_del_config", del_config) &&
           find("Z3_mk_context", mk_context) && find("Z3_del_context", del_context) &&
           find("Z3_set_error_handler", set_error_handler) &&
           find("Z3_eval_smtlib2_string", eval_smtlib2_string) &&
           find("Z3_get_full_version", get_full_version);
  }
};

namespace {

void add_wheel(const fs::path& environment, std::vector<std::string>& out) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(environment / "lib", ignored)) {
    const fs::path file = entry.path() / "site-packages/z3/lib/libz3.so";
    if (fs::exists(file, ignored)) out.push_back(file.string());
  }
}

// Errors come back in the text; without a handler Z3 ends the process.
void leave_it_to_the_text(void*, int) {}

// The values of "((i 3) ((- N M) (- 4)))", one for each term, in order.
std::vector<std::string> values_of(const std::string& text, const std::vector<std::string>& terms) {
  std::vector<std::string> out;
  size_t at = 0;
  for (const std::string& term : terms) {
    at = text.find("(" + term + " ", at);
    if (at == std::string::npos) return out;
    at += term.size() + 2;
    size_t end = at;
    for (int depth = 0; end < text.size() && (depth > 0 || text[end] != ')'); ++end)
      depth += (text[end] == '(') - (text[end] == ')');
    std::string value = text.substr(at, end - at);
    if (value.rfind("(- ", 0) == 0) value = "-" + value.substr(3, value.size() - 4);
    out.push_back(std::move(value));
  }
  return out;
}

// As it is asked.
std::string text(const Question& q, int64_t effort) {
  // The time is for a solver that hangs.
  std::string text = fmt::format("(set-option :rlimit {})\n(set-option :timeout 20000)\n", effort);
  for (const std::string& d : q.declarations) text += d + "\n";
  for (const auto* premises : {&q.premises, &q.spare})
    for (const std::string& p : *premises) text += fmt::format("(assert {})\n", p);
  return text + fmt::format("(assert (not {}))\n", q.claim);
}

// What has been asked in this process, with the replies. The same text has the same reply, as
// effort is counted in steps; and programs that differ in one statement are asked mostly the same.
class Replies {
 public:
  static Replies& of_this_process() {
    static Replies all;
    return all;
  }

  std::optional<Reply> find(const std::string& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = kept_.find(key);
    if (found == kept_.end()) return std::nullopt;
    return found->second;
  }

  void keep(std::string key, const Reply& reply) {
    const std::lock_guard<std::mutex> lock(mutex_);
    bytes_ += key.size();
    if (bytes_ > kMostBytes) {
      kept_.clear();
      bytes_ = key.size();
    }
    kept_.emplace(std::move(key), reply);
  }

 private:
  static constexpr size_t kMostBytes = size_t{64} << 20;

  std::mutex mutex_;
  std::unordered_map<std::string, Reply> kept_;
  size_t bytes_ = 0;  // of the keys
};

}  // namespace

std::vector<std::string> Solver::candidates() {
  if (const char* given = std::getenv("KERNELWRIGHT_Z3"); given && *given) return {given};
  std::vector<std::string> out;
  if (const char* active = std::getenv("VIRTUAL_ENV")) add_wheel(active, out);
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored);
  // site-packages/kernelwright/bin/PROGRAM; or build/PROGRAM and build/tests/PROGRAM in a clone.
  const fs::path wheel = self.parent_path() / "../../z3/lib/libz3.so";
  if (fs::exists(wheel, ignored)) out.push_back(wheel.string());
  for (const char* clone : {"../.venv", "../../.venv"}) add_wheel(self.parent_path() / clone, out);
  out.insert(out.end(), {"libz3.so.4", "libz3.so"});
  return out;
}

bool Solver::load(const std::vector<std::string>& libraries) {
  static std::mutex mutex;
  static std::map<std::string, Functions> loaded;
  const std::lock_guard<std::mutex> lock(mutex);
  why_ = "no library was named";
  for (const std::string& name : libraries) {
    auto found = loaded.find(name);
    if (found == loaded.end()) {
      void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (!library) {
        why_ = dlerror();
        continue;
      }
      Functions functions;
      if (!functions.bind(library)) {
        why_ = name + " lacks functions of Z3's C interface";
        continue;
      }
      found = loaded.emplace(name, functions).first;
    }
    z3_ = &found->second;
    return true;
  }
  return false;
}

std::string Solver::version() const { return z3_ ? z3_->get_full_version() : ""; }

Reply Solver::ask(const Question& question, int64_t effort) const {
  if (!z3_) return {Answer::unknown, {}, why_};
  if (!question.spare.empty()) {
    Question without = question;
    without.spare.clear();
    if (Reply reply = ask(without, effort); reply.answer == Answer::proved) return reply;
  }
  Reply reply;
  for (const char* decide : kDecide) {
    reply = ask(question, effort, decide);
    if (reply.answer != Answer::unknown) break;
  }
  return reply;
}

Reply Solver::ask(const Question& question, int64_t effort, const char* decide) const {
  const std::string asked = text(question, effort);
  std::string key = fmt::format("{} {}", static_cast<const void*>(z3_), decide);
  for (const std::string& term : question.shown) key += term + " ";
  key += asked;
  if (const std::optional<Reply> known = Replies::of_this_process().find(key)) return *known;
  Reply reply = answered(asked, decide, question.shown);
  Replies::of_this_process().keep(std::move(key), reply);
  return reply;
}

Reply Solver::answered(const std::string& asked, const char* decide,
                       const std::vector<std::string>& shown) const {
  void* config = z3_->mk_config();
  void* context = z3_->mk_context(config);
  z3_->set_error_handler(context, leave_it_to_the_text);
  const auto say = [&](const std::string& text) -> std::string {
    const char* reply = z3_->eval_smtlib2_string(context, text.c_str());
    return reply ? reply : "";
  };
  Reply reply;
  const std::string complaint = say(asked), end = say(decide);
  if (!complaint.empty()) {
    reply.why = complaint.substr(0, complaint.find('\n'));
  } else if (end.rfind("unsat", 0) == 0) {
    reply.answer = Answer::proved;
  } else if (end.rfind("sat", 0) == 0) {
    reply.answer = Answer::refuted;
    std::string list;
    for (const std::string& term : shown) list += " " + term;
    if (!list.empty())
      reply.values = values_of(say(fmt::format("(get-value ({}))\n", list.substr(1))), shown);
  } else {
    reply.why = end.rfind("unknown", 0) == 0 ? "it was not decided with this effort"
                                             : end.substr(0, end.find('\n'));
  }
  z3_->del_context(context);
  z3_->del_config(config);
  return reply;
}

}  // namespace kw::proofs
