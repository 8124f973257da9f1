#include "models/providers/recorder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "support/files.h"

namespace kw::models {
namespace {

[[noreturn]] void unwritable(const std::filesystem::path& file) {
  throw ProviderError(
      ProviderError::Kind::bad_request,
      fmt::format("cannot write the transcript '{}': {}", file.string(), std::strerror(errno)));
}

std::string text_of(const std::vector<Record>& records) {
  std::string text;
  for (const Record& record : records) text += to_line(record) + "\n";
  return text;
}

}  // namespace

Recorder::Recorder(std::unique_ptr<Provider> provider, std::filesystem::path file,
                   Existing existing)
    : provider_(std::move(provider)), file_(std::move(file)) {
  if (existing == Existing::append && std::filesystem::exists(file_))
    records_ = read_transcript(file_);
  if (!write_file(file_, text_of(records_))) unwritable(file_);
}

Recorder::~Recorder() {
  std::vector<Record> sorted = records_;
  sort_records(sorted);
  // What cannot be written now is in the file already, in another order.
  if (text_of(sorted) != text_of(records_)) write_file(file_, text_of(sorted));
}

Answer Recorder::ask(const Request& request, const std::function<void(size_t)>& heard) {
  try {
    Answer answer = provider_->ask(request, heard);
    keep({request, answer, {}});
    return answer;
  } catch (const ProviderError& error) {
    keep({request, {}, error});
    throw;
  }
}

void Recorder::keep(Record record) {
  const std::string line = to_line(record) + "\n";
  const std::lock_guard lock(mutex_);
  records_.push_back(std::move(record));
  FILE* file = fopen(file_.c_str(), "ab");
  if (!file) unwritable(file_);
  const bool written = fwrite(line.data(), 1, line.size(), file) == line.size();
  if (fclose(file) != 0 || !written) unwritable(file_);
}

}  // namespace kw::models
