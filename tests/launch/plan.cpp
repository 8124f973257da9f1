// launch.json and launch.h of a TL program, without the rest of make: plan PROGRAM.tl TARGET FOLDER
// NAME.
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lower/launch_plan.h"

int main(int count, char** argument) {
  if (count != 5) return std::fputs("plan PROGRAM.tl TARGET FOLDER NAME\n", stderr), 2;
  kw::Diagnostics d;
  const auto program = kw::tl::parse(kw::read_source(argument[1]), d);
  const auto plan = program ? kw::lower::plan_launch(*program, argument[2], d) : std::nullopt;
  if (!plan) return std::fputs(kw::render(d).c_str(), stderr), 2;
  const std::string folder = argument[3];
  std::ofstream(folder + "/launch.json") << kw::lower::to_json(*plan).dump(1);
  std::ofstream(folder + "/launch.h") << kw::lower::launch_header(*plan, argument[4]);
}
