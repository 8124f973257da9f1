// The order of the text: includes, the device functions, then the program's statements as they
// stand. A statement goes to the family that knows it; one that nobody knows is refused.
#include "cute/cute.h"

#include <set>

#include "cute/prelude.h"
#include "cute/printer.h"
#include "support/targets.h"
#include "tl/syntax/table.h"

namespace kw::cute {
using namespace tl;
namespace {

// Names that the text has for itself, where a name of the program would hide them or be hidden.
bool is_taken(const std::string& name) {
  static const std::set<std::string> taken = {
      "args", "Args", "shared", "Shared", "cute", "cutlass", "tl",  "mma", "at",     "smem",  "vr",
      "vc",   "vd",   "vi",     "vj",     "vk",   "size",    "get", "_",   "kernel", "Tensor"};
  return taken.count(name) || name.ends_with("_mma") || name.ends_with("_here");
}

bool names_are_free(const Program& program, Diagnostics& diagnostics) {
  bool free = true;
  walk(program.body, [&](const Stmt& s) {
    for (const Field& f : s.fields)
      for (const Item& item : f.items) {
        if (f.hole == Hole::file || f.hole == Hole::dims || !is_taken(item.name)) continue;
        free = false;
        diagnostics
            .error("cute.name", item.span,
                   fmt::format("'{}' is a name that the CuTe text has for itself", item.name))
            .hint = "give it another name in the TL program";
      }
  });
  return free;
}

std::optional<Atoms> atoms_for(const Program& program, const std::string& target,
                               Diagnostics& diagnostics) {
  static const std::set<std::string> known = {"sm_75", "sm_80", "sm_86",
                                              "sm_89", "sm_90", "sm_90a"};
  const Stmt* element = program.find(Op::element);
  const std::string type = element ? element->type() : "bf16";
  const Span where = element ? element->span : Span{};
  if (!known.count(target)) {
    diagnostics.error("cute.target", where,
                      fmt::format("no atoms are known for '{}'; there are for sm_75, sm_80, sm_86, "
                                  "sm_89, sm_90 and sm_90a",
                                  target));
    return std::nullopt;
  }
  // That it is f16, and copied in, a law says of sm_75 (target.C1, target.C2).
  if (target == "sm_75")
    return Atoms{"SM75_16x8x8_F32F16F16F32_TN", "UniversalCopy<uint128_t>",
                 "UniversalCopy<uint32_t>"};
  return Atoms{type == "f16" ? "SM80_16x8x16_F32F16F16F32_TN" : "SM80_16x8x16_F32BF16BF16F32_TN",
               "SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>",
               target.starts_with("sm_90") ? "SM90_U32x4_STSM_N" : "UniversalCopy<uint32_t>",
               target == "sm_90a" && program.find(Op::kernel)};
}

}  // namespace

void Printer::line(const std::string& text) {
  out_ += text.empty() ? "\n" : std::string(depth_ * 2, ' ') + text + "\n";
}

void Printer::refuse(const Stmt& s, const std::string& why) {
  diagnostics_
      .error("cute.unspellable", s.span,
             fmt::format("`{}` has no spelling in CuTe: {}", print_head(s), why))
      .hint = "docs/cute.md lists what has; lower it with --reference instead";
}

std::string Printer::text(const Stmt& s, const Scope& scope, const ExprPtr& e, int low) {
  ExprWriter writer(scope);
  std::string out = writer.expr(e, low);
  if (!writer.problem.empty()) refuse(s, writer.problem);
  return out;
}

void Printer::block(const std::vector<Stmt>& body, Scope& scope) {
  for (const Stmt& s : body) {
    statement(s, scope);
    declare(scope, s);
  }
}

void Printer::braces(const Stmt& s, const Scope& scope, const std::string& close) {
  Scope inner(&scope);
  declare_inside(inner, s);
  ++depth_;
  block(s.body, inner);
  --depth_;
  line(close);
}

void Printer::statement(const Stmt& s, const Scope& scope) {
  if (row(s.op).where == Block::top) {
    if (!head(s, scope)) refuse(s, "its part of a kernel is written by hand for each architecture");
    return;
  }
  line("// " + print_head(s));
  if (hopper_ && (hopper_control(s, scope) || hopper_statement(s, scope))) return;
  if (control(s, scope) || declaration(s, scope) || whole_tiles(s, scope) || map(s, scope)) return;
  refuse(s,
         fmt::format("no atom of {} does what it says", hopper_ ? "Hopper" : "the Ampere class"));
}

bool Printer::control(const Stmt& s, const Scope& scope) {
  const auto e = [&](const ExprPtr& x) { return text(s, scope, x); };
  switch (s.op) {
    case Op::range_down:
      line(fmt::format("for (int {0} = {1}; {0} >= {2}; --{0}) {{", s.index(), e(s.begin()),
                       e(s.end())));
      braces(s, scope);
      return true;
    case Op::range:
      line(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {{", s.index(), e(s.end())));
      braces(s, scope);
      return true;
    case Op::if_:
      line(fmt::format("if ({}) {{", e(s.condition())));
      braces(s, scope);
      return true;
    case Op::step: {
      std::string parameters;
      for (const Item& p : s.params())
        parameters += (parameters.empty() ? "" : ", ") + type_name(p.type) + " " + p.name;
      // Products under way name registers, which only an inlined function shares with its caller.
      line(fmt::format("auto {} = [&]({}){} {{", s.name(), parameters,
                       hopper_ ? " __attribute__((always_inline))" : ""));
      braces(s, scope, "};");
      return true;
    }
    case Op::list_blocks:
      line(fmt::format(
          "tl::list_blocks<{}>({}, {}, {}, {}, [&](int {}, int {}, int {}) -> tl::Kept {{",
          e(s.groups()), e(s.scratch()), e(s.at()), e(s.begin()), e(s.end()), s.index(),
          s.group_begin(), s.group_end()));
      braces(s, scope, "});");
      return true;
    case Op::call:
    case Op::return_: {
      std::string all;
      for (const Item& a : s.op == Op::call ? s.arguments() : s.values())
        all += (all.empty() ? "" : ", ") + text(s, scope, a.expr);
      line(s.op == Op::call ? fmt::format("{}({});", s.name(), all)
                            : fmt::format("return {{{}}};", all));
      return true;
    }
    default:
      return false;
  }
}

// The pre-pass has neither warpgroups nor tiles.
void Printer::lists_kernel(const Stmt& s, const Scope& scope) {
  line("");
  line("// " + print_head(s));
  line(fmt::format("extern \"C\" __global__ void __launch_bounds__({}, 1)",
                   text(s, scope, s.threads())));
  line(fmt::format("{}(__grid_constant__ const Args args) {{", s.name()));
  ++depth_;
  line(fmt::format("const int {} = blockIdx.x;", s.index()));
  --depth_;
  braces(s, scope);
}

void Printer::kernel(const Stmt& s, const Scope& scope) {
  line("");
  line("// " + print_head(s));
  line(fmt::format("extern \"C\" __global__ void __launch_bounds__({}, {})",
                   text(s, scope, s.threads()),
                   s.has(tl::Hole::resident) ? text(s, scope, s.resident()) : "1"));
  line(fmt::format("{}(__grid_constant__ const Args args) {{", s.name()));
  ++depth_;
  line("extern __shared__ __align__(1024) unsigned char smem[];");
  line("Shared& shared = *reinterpret_cast<Shared*>(smem);");
  shared_views(scope);
  line(fmt::format("tl::Warpgroup<{}> mma;", atoms_.product));
  line(fmt::format("const int {} = __shfl_sync(~0u, int(threadIdx.x) / 128, 0);",
                   hopper_ ? "warpgroup_here" : s.me()));
  Scope inner(&scope);
  declare_inside(inner, s);
  block(s.body, inner);
  --depth_;
  line("}");
}

std::string Printer::program_text() {
  line(fmt::format(
      "// {}: attention in CuTe, printed from a TL program; each of its statements stands",
      plan_.entry));
  line(fmt::format("// over the lines that do it. For {}: {} threads, {} bytes of shared memory.",
                   plan_.target, plan_.threads, plan_.shared_bytes));
  line(fmt::format("// Products: {}{}",
                   hopper_ ? "wgmma of 64 rows and depth 16; of single warps " : "",
                   atoms_.product));
  line(fmt::format("// Copies:   {}, SM75_U32x4_LDSM_N, {}{}",
                   hopper_ ? "SM90_TMA_LOAD(_MULTICAST)_5D, SM90_TMA_STORE_5D" : atoms_.copy,
                   hopper_ ? "" : "SM75_U16x8_LDSM_T, ", atoms_.store));
  if (hopper_ && needs_extended_shapes())
    line("#define CUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED  // wgmmas of any number of columns");
  line("#include <cute/tensor.hpp>");
  line("#include <cutlass/arch/barrier.h>");
  if (hopper_) line("#include <cutlass/arch/reg_reconfig.h>");
  line("#include <cutlass/numeric_conversion.h>");
  line("");
  out_ +=
      prelude({hopper_, program_.find(Op::queue) != nullptr, program_.find(Op::lists) != nullptr});
  line("");
  line("namespace kernel {");
  line("using namespace cute;");
  line("");
  Scope module;
  block(program_.body, module);
  line("");
  line("}  // namespace kernel");
  return std::move(out_);
}

std::optional<std::string> print_cute(const Program& program, const std::string& target,
                                      Diagnostics& diagnostics) {
  if (!names_are_free(program, diagnostics)) return std::nullopt;
  const auto atoms = atoms_for(program, target, diagnostics);
  if (!atoms) return std::nullopt;
  const auto plan = lower::plan_launch(program, target, diagnostics);
  if (!plan) return std::nullopt;
  const size_t before = diagnostics.all().size();
  std::string text = Printer(program, *plan, *atoms, diagnostics).program_text();
  if (diagnostics.all().size() != before) return std::nullopt;
  return text;
}

}  // namespace kw::cute
