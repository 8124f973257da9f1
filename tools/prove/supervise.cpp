#include "supervise.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "support/child.h"

namespace kw::prove {
namespace {

using namespace kw::runtime;
using Json = nlohmann::json;

// Memory that the child writes and the parent reads: a part for each case, beginning on a page.
class SharedOutputs {
 public:
  explicit SharedOutputs(const Job& job) {
    for (const ProveCase& one : job.spec.cases) {
      begins_.push_back(total_);
      total_ += (output_bytes(job.launch, one) + page - 1) / page * page;
    }
    void* memory = mmap(nullptr, std::max<int64_t>(total_, page), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memory_ = memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
  }
  ~SharedOutputs() {
    if (memory_) munmap(memory_, std::max<int64_t>(total_, page));
  }
  SharedOutputs(const SharedOutputs&) = delete;

  explicit operator bool() const { return memory_ != nullptr; }
  char* at(size_t n) const { return memory_ + begins_[n]; }
  // Gives the pages of a case back.
  void forget(size_t n) const {
    const int64_t end = n + 1 < begins_.size() ? begins_[n + 1] : total_;
    if (end > begins_[n]) madvise(at(n), end - begins_[n], MADV_REMOVE);
  }

 private:
  static constexpr int64_t page = 4096;
  std::vector<int64_t> begins_;
  int64_t total_ = 0;
  char* memory_ = nullptr;
};

// ---- the child: everything that touches the GPU

void send(int fd, const Json& event) {
  send_line(fd, event.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json machine(const Driver& driver) {
  char name[256] = "";
  int version = 0;
  driver.device_name(name, sizeof name, 0);
  driver.driver_version(&version);
  return {{"gpu", name}, {"driver", fmt::format("{}.{}", version / 1000, version % 1000 / 10)}};
}

// Loads and launches; the exit status says what ended it early, 0 when all cases ran.
Exit work(const Job& job, const SharedOutputs& outputs, int fd) {
  Diagnostics diagnostics;
  const auto leave = [&](Exit exit) {
    send(fd, {{"failed", to_json(diagnostics)}});
    return exit;
  };
  std::vector<ProveCase> cases = job.spec.cases;
  for (ProveCase& one : cases) one.goldens.clear();
  const std::shared_ptr<const Driver> driver = Driver::open(diagnostics);
  if (!driver) return leave(Exit::inconclusive);
  send(fd, {{"machine", machine(*driver)}});
  const auto kernel = Kernel::load_folder(driver, job.folder, 0, diagnostics);
  if (!kernel) return leave(Exit::bad_input);
  for (size_t n = 0; n < cases.size(); ++n) {
    send(fd, {{"begin", n}});
    const Observation seen = observe_case(*kernel, cases[n], job.options, outputs.at(n));
    send(fd, {{"seen", n},
              {"end", static_cast<int>(seen.end)},
              {"lost", seen.context_lost},
              {"outputs", seen.outputs.size()},
              {"findings", *seen.findings},
              {"time", *seen.time}});
    if (seen.context_lost) _exit(0);  // destructors would wait for a context that is gone
  }
  return Exit::holds;
}

// ---- the parent

class Judge {
 public:
  Judge(const Job& job, const SharedOutputs& outputs, const Listener& listener)
      : job_(job), outputs_(outputs), listener_(listener) {}

  void take(const std::string& line) {
    const Json event = Json::parse(line, nullptr, false);
    if (event.is_discarded()) return;
    if (event.contains("begin")) running_ = event["begin"].get<int>();
    if (event.contains("failed")) failed = event["failed"];
    if (event.contains("machine") && listener_.machine) listener_.machine(event["machine"]);
    if (event.contains("seen")) judge(event);
  }
  // The case that was running did not end.
  void hung() {
    const ProveCase& one = job_.spec.cases.at(running_);
    listener_.judged({{"name", one.name},
                      {"verdict", "refuted"},
                      {"goldens", Json::array()},
                      {"findings",
                       {{{"severity", "error"},
                         {"code", "prove.hang"},
                         {"message", fmt::format("did not end within {} s; the process was killed",
                                                 job_.limit_seconds)}}}}});
  }
  bool running() const { return running_ >= 0; }

  Json failed = Json::array();
  bool lost = false;

 private:
  void judge(const Json& event) {
    const size_t n = event["seen"].get<size_t>();
    const ProveCase& one = job_.spec.cases.at(n);
    running_ = -1;
    lost = event["lost"].get<bool>();
    Observation seen{
        static_cast<Exit>(event["end"].get<int>()), lost, std::make_shared<Json>(event["findings"]),
        std::make_shared<Json>(event["time"]),      {},   {}};
    const char* at = outputs_.at(n);
    for (const Argument& a : job_.launch.arguments) {
      if (!a.is_tensor() || !a.written) continue;
      if (seen.outputs.size() == event["outputs"].get<size_t>()) break;
      const int64_t bytes =
          Strided::of(a.dtype, shape_of(a, job_.launch, one.sizes), false).bytes();
      seen.outputs.emplace_back(at, bytes);
      at += bytes;
    }
    const CaseResult result = judge_case(job_.launch, one, job_.options, seen);
    outputs_.forget(n);
    listener_.judged(*result.facts);
  }

  const Job& job_;
  const SharedOutputs& outputs_;
  const Listener& listener_;
  int running_ = -1;
};

}  // namespace

Supervised supervise(const Job& job, const Listener& listener) {
  Supervised out;
  const SharedOutputs outputs(job);
  if (!outputs) {
    out.failed = std::make_shared<Json>(Json::array(
        {{{"code", "prove.memory"}, {"message", "no memory for the outputs of all cases"}}}));
    return out;
  }
  Judge judge(job, outputs, listener);
  const ChildEnd end =
      watch_child([&](int fd) { return static_cast<int>(work(job, outputs, fd)); },
                  [&](const std::string& line) { judge.take(line); }, job.limit_seconds);
  out.lost = judge.lost;
  out.end = static_cast<Exit>(end.exit_code);
  if (end.silent && judge.running()) {
    judge.hung();
    out.lost = true;
    out.end = Exit::holds;
  } else if (!end.started || end.silent || end.signal) {
    judge.failed.push_back(
        {{"code", "prove.child"},
         {"message", std::string("the process that uses the GPU ") +
                         (end.signal ? strsignal(end.signal) : "did not open it in time")}});
    out.end = Exit::own_fault;
  }
  out.failed = std::make_shared<Json>(std::move(judge.failed));
  return out;
}

}  // namespace kw::prove
