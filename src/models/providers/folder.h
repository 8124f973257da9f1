// A person, or any program, answers through files.
//
//   001.request.md   the question, to be read
//   001.answer.md    the answer, as it is to be taken, byte for byte (or 001.answer.json)
//
// The same question, asked again by a later run, is the same file, so an answer that is there is
// taken at once: a run that ends without an answer is continued by running it again.
#pragma once
#include <filesystem>
#include <memory>

#include "models/budget.h"
#include "models/providers/provider.h"

namespace kw::models {

// Waits `wait_seconds` for an answer; 0: takes one that is there, or ends with ProviderError
// (timeout), which names the file to fill. Throws ProviderError (bad_request) where the folder
// cannot be made or written to.
std::unique_ptr<Provider> make_folder(std::filesystem::path folder, double wait_seconds,
                                      std::shared_ptr<Budget> budget);

// The text of NNN.request.md.
std::string request_page(const Request& request);

}  // namespace kw::models
