// certificate.json: what exactly was checked, by what, with which seeds, and what was not.
//
// It makes a kernel's claim repeatable: every input is named by its hash, every tool by its
// version. What nobody checked is part of the claim, in words.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "check/check.h"
#include "driver/tools.h"
#include "lower/launch_plan.h"
#include "transfer/transfer.h"

namespace kw::driver {

struct Claim {
  const spec::Capture& capture;
  const SourcePtr& expert;  // the corpus kernel's text
  const transfer::Result& transferred;
  const check::Report& report;
  const std::string& program_text;  // kernel.tl
  const std::string& kernel_text;   // kernel.cu
  const lower::LaunchPlan& plan;
  const Built& built;
};

nlohmann::json certificate(const Tools& tools, const Claim& claim);

}  // namespace kw::driver
