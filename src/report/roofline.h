// Measured speed, where there is any, under the roofs of the GPU that it was measured on.
//
// Two sources: the timed cases of gpu.json (kernelwright-prove), and bench.json, cases of
// bench.py's JSON. A case of the latter counts only where its signature is the one that this very
// cubin gives; nothing is shown that was measured with another kernel, and nothing is predicted
// here.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/html.h"

namespace kw::report {

struct Measured {
  std::string name;      // of the case
  std::string gpu;       // "NVIDIA H200"
  std::string how;       // "sustained, bench.py, 2026-11-21"
  double tflops = 0;     // 1e12 operations of unmasked entries a second
  double intensity = 0;  // operations for each byte of q, k, v and o; 0: not known
  struct Peer {
    std::string name;
    double tflops;
  };
  std::vector<Peer> peers;  // in the same rounds
};

// Of a run of bench.py, the cases that were measured with this cubin and launch plan.
nlohmann::ordered_json cases_of(const nlohmann::ordered_json& bench, const std::string& cubin,
                                const std::string& launch);

std::vector<Measured> measured_by_bench(const nlohmann::ordered_json& cases);
// Of gpu.json; sizes are those of prove.json's cases of the same name, D and V the launch plan's.
std::vector<Measured> measured_by_proof(const nlohmann::ordered_json& report,
                                        const nlohmann::ordered_json& prove,
                                        const nlohmann::ordered_json& launch);

// `gpus_folder`: the figures of GPUs. `dtype`: "bf16".
Markup draw_speed(const std::vector<Measured>& all, const std::string& gpus_folder,
                  const std::string& target, const std::string& dtype);

}  // namespace kw::report
