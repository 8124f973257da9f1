// The scalar functions and constants that expressions may use: the same names as in cuda/kw/, where
// each stands in namespace kw.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace kw::tl {

// `range`: an int from a tensor and, for each of its dimensions, a first and a last index.
enum class Returns { integer, real, like_arguments, row, range };

struct Function {
  std::string_view name;
  int arity;  // 0: the tensor decides
  Returns returns;
};

// Null for a name that is no function of the vocabulary. `f32` (an int to a real; float in CUDA) is
// one; `where` is not: it is syntax.
const Function* find_function(std::string_view name);
std::span<const Function> all_functions();
// Whether it is the number of the block of the output that a CTA, or its cluster, computes: such a
// kernel is launched with one for each.
bool numbers_blocks(std::string_view name);

// The two sizes in the meaning of `heads_at_once` (cuda/kw/scalar.cuh says what they are for): half
// of an H200's L2, and the CTAs that the heads worked on together have at least.
inline constexpr int64_t kSectionBytes = 32 << 20, kSectionBlocks = 200;

struct Constant {
  std::string_view name, cuda;  // "-inf", "minus_infinity"
};
const Constant* find_constant(std::string_view tl_name);
const Constant* find_cuda_constant(std::string_view cuda_name);
std::span<const Constant> all_constants();

}  // namespace kw::tl
