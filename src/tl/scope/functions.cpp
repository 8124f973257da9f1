// One line a function: what is missing here does not exist for TL, whatever cuda/kw/ may hold.
#include "tl/scope/functions.h"

namespace kw::tl {
namespace {

constexpr Function kFunctions[] = {
    {"exp2", 1, Returns::real},
    {"log2", 1, Returns::real},
    {"tanh", 1, Returns::real},
    {"reciprocal", 1, Returns::real},
    {"rsqrt", 1, Returns::real},
    {"fma", 3, Returns::real},
    {"f32", 1, Returns::real},
    {"min", 2, Returns::like_arguments},
    {"max", 2, Returns::like_arguments},
    {"abs", 1, Returns::like_arguments},
    {"ceil_div", 2, Returns::integer},
    {"heads_at_once", 4, Returns::integer},
    {"total", 1, Returns::row},
    {"block_index", 1, Returns::integer},
    {"cluster_index", 1, Returns::integer},
    {"least", 0, Returns::range},
    {"greatest", 0, Returns::range},
    {"to_bf16", 1, Returns::real},
};

constexpr Constant kConstants[] = {{"-inf", "minus_infinity"}, {"log2e", "log2e"}, {"ln2", "ln2"}};

}  // namespace

std::span<const Function> all_functions() { return kFunctions; }
std::span<const Constant> all_constants() { return kConstants; }

const Function* find_function(std::string_view name) {
  for (const Function& f : kFunctions)
    if (f.name == name) return &f;
  return nullptr;
}

bool numbers_blocks(std::string_view name) {
  return name == "block_index" || name == "cluster_index";
}

const Constant* find_constant(std::string_view tl_name) {
  for (const Constant& c : kConstants)
    if (c.name == tl_name) return &c;
  return nullptr;
}

const Constant* find_cuda_constant(std::string_view cuda_name) {
  for (const Constant& c : kConstants)
    if (c.cuda == cuda_name) return &c;
  return nullptr;
}

}  // namespace kw::tl
