// A request's file appears whole under the next free number, by link(2), which fails where another
// process was first. An answer is taken when it is there, not empty, and no longer growing.
#include "models/providers/folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "models/secret.h"
#include "models/transcript.h"
#include "support/files.h"
#include "support/source.h"

namespace kw::models {
namespace {

namespace fs = std::filesystem;
using Kind = ProviderError::Kind;

constexpr int kMostRequests = 99999;
constexpr auto kPoll = std::chrono::milliseconds(200);

[[noreturn]] void refuse(const std::string& line) { throw ProviderError(Kind::bad_request, line); }

class Folder : public Provider {
 public:
  Folder(fs::path folder, double wait_seconds, std::shared_ptr<Budget> budget)
      : folder_(std::move(folder)), wait_(wait_seconds), budget_(std::move(budget)) {
    std::error_code failed;
    fs::create_directories(folder_, failed);
    if (failed)
      refuse(fmt::format("cannot make the folder '{}': {}", folder_.string(), failed.message()));
  }

  Answer ask(const Request& request, const std::function<void(size_t)>& heard) override {
    Budget::Hold hold = budget_->hold(request);
    const std::string number = place(request_page(request));
    const auto stop = std::chrono::steady_clock::now() + std::chrono::duration<double>(wait_);
    std::string before;
    bool seen = wait_ == 0;  // who does not wait takes what is there
    while (true) {
      const std::string text = answer(number);
      if (!text.empty() && seen && (wait_ == 0 || text == before)) {
        if (heard) heard(text.size());
        const Answer answer{redacted(text), "by hand"};
        hold.charge({});
        return answer;
      }
      if (std::chrono::steady_clock::now() >= stop)
        throw ProviderError(
            Kind::timeout,
            fmt::format("no answer in '{}': write it there, and run this again{}",
                        (folder_ / (number + ".answer.md")).string(),
                        wait_ > 0 ? fmt::format(" (waited {} s)", wait_)
                                  : std::string(" (or wait for it: --wait-seconds)")));
      before = text;
      seen = true;
      std::this_thread::sleep_for(kPoll);
    }
  }

 private:
  // The number of the file with this page: one that no request of this run has, or a new one.
  std::string place(const std::string& page) {
    const std::lock_guard lock(mutex_);
    const fs::path beside = folder_ / fmt::format(".request.{}", getpid());
    if (!write_file(beside, page))
      refuse(fmt::format("cannot write to '{}': {}", folder_.string(), std::strerror(errno)));
    for (int n = 1; n <= kMostRequests; ++n) {
      const std::string number = fmt::format("{:03}", n);
      const fs::path file = folder_ / (number + ".request.md");
      if (const SourcePtr there = read_file(file)) {
        if (there->text != page || taken_.count(n)) continue;
      } else if (link(beside.c_str(), file.c_str()) != 0) {
        if (errno == EEXIST) continue;
        const int why = errno;
        unlink(beside.c_str());
        refuse(fmt::format("cannot write '{}': {}", file.string(), std::strerror(why)));
      }
      unlink(beside.c_str());
      taken_.insert(n);
      return number;
    }
    unlink(beside.c_str());
    refuse(fmt::format("'{}' has {} requests: empty it", folder_.string(), kMostRequests));
  }

  std::string answer(const std::string& number) const {
    for (const char* end : {".answer.md", ".answer.json"})
      if (const SourcePtr there = read_file(folder_ / (number + end)))
        if (!there->text.empty()) return there->text;
    return {};
  }

  // Of a FIFO nobody knows when there is something to read.
  static SourcePtr read_file(const fs::path& file) {
    std::error_code failed;
    return fs::is_regular_file(file, failed) ? read_source(file.string()) : nullptr;
  }

  const fs::path folder_;
  const double wait_;
  std::shared_ptr<Budget> budget_;
  std::mutex mutex_;
  std::set<int> taken_;
};

}  // namespace

std::string request_page(const Request& r) {
  const std::string key = key_of(r);  // refuses what is no UTF-8
  std::string page = fmt::format(
      "# Request: {}, attempt {}, sample {}\n\n"
      "key {}\n\n"
      "Write the answer, and nothing else, into the file beside this one whose name has `answer` "
      "in place of `request`.\n",
      r.stage, r.attempt, r.sample, key);
  if (!r.system.empty()) page += "\n## System\n\n" + redacted(r.system) + "\n";
  page += "\n## User\n\n" + redacted(r.user) + "\n";
  if (!r.schema.is_null())
    page += "\n## JSON Schema of the answer\n\n```json\n" + r.schema.dump(2) + "\n```\n";
  return page;
}

std::unique_ptr<Provider> make_folder(fs::path folder, double wait_seconds,
                                      std::shared_ptr<Budget> budget) {
  return std::make_unique<Folder>(std::move(folder), wait_seconds, std::move(budget));
}

}  // namespace kw::models
