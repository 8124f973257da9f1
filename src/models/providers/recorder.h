// Writes down every request and what came of it, around any provider.
//
// A record is appended as soon as its answer is there, so a run that is killed leaves a transcript
// of what it has paid for. When the recorder ends, records are put in the order of conversations
// (stage, sample, attempt): answers that came in parallel give the same file whichever was first.
#pragma once
#include <filesystem>
#include <memory>
#include <mutex>

#include "models/providers/provider.h"
#include "models/transcript.h"

namespace kw::models {

class Recorder : public Provider {
 public:
  enum class Existing { replace, append };  // what becomes of a transcript that is there

  // Throws ProviderError (bad_request) when the file cannot be written, or, to be appended to, not
  // be read.
  Recorder(std::unique_ptr<Provider> provider, std::filesystem::path file,
           Existing existing = Existing::replace);
  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // As the provider's. An answer that cannot be written down is an error (bad_request): who replays
  // would miss it. What `heard` throws is passed on and leaves no record.
  Answer ask(const Request& request, const std::function<void(size_t)>& heard) override;

 private:
  void keep(Record record);

  std::unique_ptr<Provider> provider_;
  std::filesystem::path file_;
  std::mutex mutex_;
  std::vector<Record> records_;
};

}  // namespace kw::models
