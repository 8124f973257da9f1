// report.html: one page on which a stranger sees in ten seconds what changed in a kernel and
// whether it can be trusted, with everything behind that below.
//
// The page is a function of a folder that make wrote: it says what the files there say, and what is
// not there is said to be missing. It stands alone: no scripts, nothing fetched (a policy in its
// head forbids both, so not even a hostile text in it could), so it can be sent by mail and opened
// in ten years.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "lift/lift.h"
#include "operator/form.h"
#include "report/diff.h"
#include "report/mask.h"
#include "report/roofline.h"
#include "report/timeline.h"

namespace kw::report {

inline constexpr char kPage[] = "report.html";

// Where a page's facts come from.
struct Sources {
  std::filesystem::path folder;         // that make wrote
  nlohmann::ordered_json certificate;   // of it, held against the schema
  std::filesystem::path gpus;           // what GPUs can do
  lift::Toolchain clang;                // to lift the kernels,
  const tl::Program* expert = nullptr;  // unless they already were
  const tl::Program* kernel = nullptr;
};

struct Facts {
  nlohmann::ordered_json certificate, gpu_report, launch;  // null where there is none
  std::string user_text, patch;
  std::optional<spec::Form> form;
  Masks masks;
  std::optional<Diff> diff;
  std::map<int, std::string> old_tl, new_tl;  // empty where a text could not be lifted
  tl::Program program;                        // kernel.tl; what the pipeline's bars point into
  Pipeline pipeline;
  std::vector<Measured> measured;
  std::filesystem::path gpus;
};

// What is missing or cannot be read leaves its own section empty, which the page then says.
Facts read_facts(const Sources& sources);

// How large a program's tiles of scores are, with the constants that launch.json names.
TileSize tile_of(const tl::Program& program, const nlohmann::ordered_json& launch);

// The whole file.
std::string page(const Facts& facts);

}  // namespace kw::report
