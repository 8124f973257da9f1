// Who proposes a program: --proposer rules|model, and how often a model is asked.
#pragma once
#include <memory>
#include <string>

#include "driver/make/make.h"
#include "provider_options.h"

namespace kw::cli {

struct Proposer {
  std::string who = "rules";
  models::Options provider;
  propose::Options loop;
  std::string transcript;

  bool model() const { return who == "model"; }
  // Null where the rules propose. Throws models::ProviderError.
  std::unique_ptr<models::Provider> open() const;
};

void add_proposer(CLI::App* command, Proposer& proposer);

// After a run in which no attempt was accepted: keeps the program that came furthest in
// STEM.best.tl and all attempts in STEM.attempts.json, and says so.
void keep_attempts(const std::string& stem, const std::string& best, const std::string& attempts,
                   Diagnostics& diagnostics);

}  // namespace kw::cli
