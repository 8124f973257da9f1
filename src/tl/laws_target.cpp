// A breach is told once a law: a kernel written for another GPU breaks it in every line.
#include "tl/laws_target.h"

#include <fmt/format.h>

#include <set>

#include "support/targets.h"
#include "tl/laws.h"
#include "tl/table.h"

namespace kw::tl {
namespace {

bool is_of_ampere(Op op) {
  return op == Op::copy_async || op == Op::copy_tile_async || op == Op::commit_copies ||
         op == Op::wait_copies;
}

// What stands in a statement's place where Hopper's own is missing; empty for a statement that
// every target has.
std::string instead_of_hoppers(Op op, bool async_copies) {
  const std::string copy = async_copies ? "copy_async" : "copy_in";
  switch (op) {
    case Op::arg_tiled:
      return fmt::format("an argument without `tiled`, which {} reads", copy);
    case Op::load_async:
    case Op::multicast_async:
      return copy;
    case Op::store_async:
      return "copy_out";
    case Op::load_tile_async:
      return async_copies ? "copy_tile_async" : "copy_in";
    case Op::store_tile_async:
      return "copy_tile_out";
    case Op::gemm_add_transposed_async:
      return "gemm_add_transposed";
    case Op::gemm_async:
      return "gemm";
    case Op::gemm_add_async:
    case Op::gemm_add_columns_async:
      return "gemm_add";
    case Op::barrier:
    case Op::cluster_barrier:
    case Op::sync_cluster:
      return "sync_block";
    case Op::kernel:
      return "a kernel whose workers are alike";
    case Op::cluster:
    case Op::queue:
      return "one thread block for each block of the output, by block_index";
    default:
      return "";
  }
}

class ForTarget {
 public:
  ForTarget(std::string_view target, Diagnostics& diagnostics)
      : name_(target), limits_(find_target(target)), diagnostics_(diagnostics) {}

  bool judge(const Program& program) {
    if (limits_) walk(program.body, [&](const Stmt& s) { judge(s); });
    return told_.empty();
  }

 private:
  void judge(const Stmt& s) {
    if (s.op == Op::element && s.word("t") != "f16" && !limits_->ampere)
      broken("C1", s, fmt::format("the element type is {}", s.word("t")), "element f16");
    if (is_of_ampere(s.op) && !limits_->ampere)
      broken("C2", s, fmt::format("`{}` is a copy under way", word(s.op)),
             s.op == Op::copy_async        ? "copy_in, and a sync_block after it"
             : s.op == Op::copy_tile_async ? "copy_tile_in, and a sync_block after it"
                                           : "nothing");
    const bool narrow = s.has("t") && !s.items("t").empty() &&
                        (s.items("t")[0].type == "e4m3" || s.items("t")[0].name == "e4m3");
    if ((narrow || s.op == Op::widen) && !limits_->fp8)
      broken("C4", s,
             s.op == Op::widen ? "`widen` converts e4m3"
                               : fmt::format("`{}` is of e4m3", print_head(s)),
             "operands of 16 bits");
    const std::string instead = instead_of_hoppers(s.op, limits_->ampere);
    if (!instead.empty() && !limits_->hopper)
      broken("C3", s, fmt::format("`{}` is Hopper's own", word(s.op)), instead);
  }

  void broken(const char* label, const Stmt& s, const std::string& what,
              const std::string& instead) {
    const std::string code = fmt::format("target.{}", label);
    if (!told_.insert(code).second) return;
    diagnostics_.error(code, s.span, fmt::format("{}, and {} has none", what, name_)).hint =
        fmt::format("use {}; the law: {}", instead, law(code)->text);
  }

  const std::string name_;
  const TargetLimits* limits_;
  Diagnostics& diagnostics_;
  std::set<std::string> told_;
};

}  // namespace

bool verify_for(const Program& program, std::string_view target, Diagnostics& diagnostics) {
  return ForTarget(target, diagnostics).judge(program);
}

}  // namespace kw::tl
