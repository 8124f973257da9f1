// The predicted pipeline of a tile, drawn: who does what when, around the end of one block of the
// output and the beginning of the next.
#pragma once
#include <string>

#include "report/html.h"
#include "timeline/simulate.h"

namespace kw::report {

// What was simulated, and what came out; or why nothing was.
struct Pipeline {
  timeline::Timeline line;
  std::string gpu;     // "h200"
  std::string shape;   // "1 batch entry, 4 query heads, 1024 queries and keys"
  std::string absent;  // why there is none
};

// The program must outlive what is returned.
Pipeline predict_pipeline(const tl::Program& program, const std::string& gpus_folder,
                          const std::string& target);

Markup draw_pipeline(const Pipeline& pipeline);

// What binds: the share of time that each track works, waits apart, "consumer 0: 91 % ...".
Markup busy_table(const Pipeline& pipeline);

}  // namespace kw::report
