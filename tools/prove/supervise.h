// Two processes for one folder: a child that uses the GPU, and its judge.
//
// The child launches and copies what the outputs hold into memory that both share, a part for each
// case; it sends one line of JSON for each event. It drops the goldens before it touches the GPU.
// The parent compares, so no verdict comes from a process whose context may be broken. It kills the
// child when a case is silent for too long; what hung is refuted.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "runtime/prove/prove.h"

namespace kw::prove {

struct Job {
  std::string folder;  // of kernel.cubin and launch.json
  const runtime::LaunchSpec& launch;
  const runtime::ProveSpec& spec;
  runtime::ProveOptions options;
  double limit_seconds = 60;
};

struct Listener {
  std::function<void(const nlohmann::json& machine)> machine;  // {gpu, driver}
  std::function<void(const nlohmann::json& facts)> judged;     // those of runtime/prove/prove.h
};

struct Supervised {
  Exit end = Exit::own_fault;  // holds: the child ran to its end, or a case hung
  bool lost = false;           // a case hung or broke the context: the rest was not run
  std::shared_ptr<const nlohmann::json> failed;  // diagnostics when there was no kernel to run
};

Supervised supervise(const Job& job, const Listener& listener);

}  // namespace kw::prove
