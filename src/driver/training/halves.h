// A folder for training: two kernels of one function, and what belongs to both.
//
//   out/NAME/  forward/      a folder as make writes it (make.h): the function's output, and what
//                            its gradients take
//              backward/     another one: the gradients
//              launch.h      both launches, and what passes between them
//              certificate.json, report.html   over both
//
// Each half is a whole folder, with its own certificate. What is said of both is a function of the
// two halves: make writes it once they stand, and verify derives it again from halves that it has
// verified. So nobody's word stands between the two: halves of two functions, or of two ways to
// save, do not fit each other, whatever a certificate above them says.
#pragma once
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "driver/certificate/certificate.h"
#include "lower/launch_plan.h"

namespace kw::driver {

inline constexpr std::array<const char*, 2> kHalves = {"forward", "backward"};

// The text of a file of a half's folder; "" where there is none.
using TextOf = std::function<std::string(const std::string& file)>;

struct Half {
  Claims claims;  // its certificate
  spec::Form form;
  lower::LaunchPlan plan;  // with all that a launch requires
  std::string launch;      // launch.json
  std::string graph;       // from/graph.json
  bool takes_turns = false;
};

// Reports training.half where a file of it cannot be read.
std::optional<Half> read_half(const std::string& half, const Claims& claims, const TextOf& text_of,
                              Diagnostics& diagnostics);

// A tensor that the forward kernel writes and the backward one reads.
struct Passed {
  std::string saved;     // "forward.lse", as the form of gradients calls it
  std::string from, to;  // the name of the forward kernel's argument, and of the backward one's
  std::string dtype;
  std::vector<std::string> dims;
};

// Two halves of one function.
struct Both {
  Half forward, backward;
  std::vector<Passed> passed;
  std::vector<std::pair<std::string, std::string>> shared;  // arguments that both read, by name
};

// Reports training.halves, with both facts, where they do not fit: other functions, other targets,
// or a tensor that the one does not save as the other reads it.
std::optional<Both> join(Half forward, Half backward, Diagnostics& diagnostics);

// launch.h of both.
std::string header_of(const Both& both);

// The function that both are of: SHA-256 of its graph, whatever of training it was captured for.
std::string function_sha256(const std::string& graph);

}  // namespace kw::driver
