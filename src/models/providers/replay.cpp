#include "models/providers/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "models/secret.h"
#include "models/transcript.h"
#include "models/wire/utf8.h"

namespace kw::models {
namespace {

using Json = nlohmann::json;
using Kind = ProviderError::Kind;

constexpr size_t kShown = 60;  // bytes on each side of a difference

// From `at` on, one line, cut between characters.
std::string glimpse(const std::string& text, size_t at) {
  const auto inside = [&](size_t k) {
    return k < text.size() && (static_cast<unsigned char>(text[k]) & 0xC0) == 0x80;
  };
  size_t end = std::min(text.size(), at + kShown);
  while (inside(at)) --at;
  while (inside(end)) ++end;
  std::string out = text.substr(at, end - at);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = ' ';
  return out;
}

size_t common(const std::string& a, const std::string& b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

class Replay : public Provider {
 public:
  Replay(const std::filesystem::path& file, std::shared_ptr<Budget> budget)
      : file_(file.string()), budget_(std::move(budget)), records_(read_transcript(file)) {
    for (size_t n = 0; n < records_.size(); ++n) places_[key_of(records_[n].request)].push_back(n);
  }

  Answer ask(const Request& request, const std::function<void(size_t)>& heard) override {
    Budget::Hold hold = budget_->hold(request);
    const Record& record = next(request);
    if (record.error) throw *record.error;
    if (heard) heard(record.answer->text.size());
    hold.charge({record.answer->tokens_in, record.answer->tokens_out});
    return *record.answer;
  }

 private:
  const Record& next(const Request& request) {
    const std::string key = key_of(request);
    const std::lock_guard lock(mutex_);
    const auto found = places_.find(key);
    if (found == places_.end()) miss(request);
    size_t& given = given_[key];
    if (given >= found->second.size())
      throw ProviderError(
          Kind::bad_request,
          fmt::format("{} has {} answers to the request {:.12}, which is asked once more: record "
                      "again",
                      file_, found->second.size(), key));
    return records_[found->second[given++]];
  }

  // What the nearest record (of one conversation, if there is one; then the longest common
  // beginning) has elsewhere.
  [[noreturn]] void miss(const Request& request) const {
    if (records_.empty())
      throw ProviderError(Kind::bad_request, fmt::format("{} has no record: record first", file_));
    const Record* nearest = nullptr;
    std::tuple<bool, bool, size_t> best;
    for (const Record& r : records_) {
      const Request& q = r.request;
      const std::tuple<bool, bool, size_t> near{
          q.stage == request.stage, q.sample == request.sample && q.attempt == request.attempt,
          common(q.system, request.system) + common(q.user, request.user)};
      if (!nearest || near > best) nearest = &r, best = near;
    }
    throw ProviderError(Kind::bad_request, fmt::format("{} has no answer to this request; the "
                                                       "nearest record, {:.12}, differs {}: record "
                                                       "again",
                                                       file_, key_of(nearest->request),
                                                       difference(request, nearest->request)));
  }

  static std::string difference(const Request& asked, const Request& recorded) {
    const Json a = Json::parse(canonical(asked)), b = Json::parse(canonical(recorded));
    for (const char* name :
         {"stage", "sample", "attempt", "system", "user", "schema", "most_tokens"}) {
      if (a[name] == b[name]) continue;
      const std::string now = a[name].is_string() ? a[name].get<std::string>() : a[name].dump();
      const std::string then = b[name].is_string() ? b[name].get<std::string>() : b[name].dump();
      const size_t at = common(now, then);
      return fmt::format("in '{}' at byte {}: asked '{}', recorded '{}'", name, at,
                         glimpse(now, at), glimpse(then, at));
    }
    return "in nothing";  // a key is a hash of these
  }

  const std::string file_;
  std::shared_ptr<Budget> budget_;
  std::vector<Record> records_;
  std::map<std::string, std::vector<size_t>> places_;
  std::mutex mutex_;
  std::map<std::string, size_t> given_;
};

}  // namespace

std::unique_ptr<Provider> make_replay(const std::filesystem::path& file,
                                      std::shared_ptr<Budget> budget) {
  return std::make_unique<Replay>(file, std::move(budget));
}

}  // namespace kw::models
