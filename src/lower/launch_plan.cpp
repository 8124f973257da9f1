// Reads the facts off the statements: who declares what (args, shared), who moves which tile (the
// asynchronous copies give the boxes), who hands out blocks (static_tiles, schedule_tiles or
// block_index gives the grid), how many CTAs work as one (cluster) or share a multiprocessor
// (resident).
#include "lower/launch_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "lower/shared_budget.h"
#include "tl/laws/laws_target.h"
#include "tl/scope/elements.h"
#include "tl/scope/functions.h"
#include "tl/scope/panels.h"
#include "tl/scope/scope.h"
#include "tl/traits.h"

namespace kw::lower {
namespace {

using tl::Box;
using tl::Expr;
using tl::ExprKind;
using tl::ExprPtr;
using tl::Item;
using tl::Op;
using tl::Program;
using tl::Stmt;

int64_t floor_div(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }
int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

// The portable limit: CUDA C++ Programming Guide, "Thread Block Clusters".
constexpr int64_t kLargestCluster = 8;
// What a thread copies at a time (PTX ISA, cp.async and ld.global.v4).
constexpr int64_t kChunkBytes = 16;
// What a copy of a part of a row moves at a time: what the 128-byte swizzle is over.
constexpr int64_t kPanelColumns = 64;

class Planner {
 public:
  Planner(const Program& program, const std::string& target, Diagnostics& diagnostics)
      : program_(program), diagnostics_(diagnostics) {
    plan_.target = target;
  }

  std::optional<LaunchPlan> run() {
    read_constants();
    const Stmt* kernel = program_.find(Op::kernel);
    if (!kernel) kernel = program_.find(Op::warpgroups_kernel);
    const Stmt* args = program_.find(Op::args);
    const Stmt* shared = program_.find(Op::shared);
    if (!kernel || !args || !shared || !find_blocks(*kernel)) {
      const char* missing = !kernel   ? "the kernel is"
                            : !args   ? "args is"
                            : !shared ? "shared is"
                                      : "all three are";
      diagnostics_.error(
          "launch.incomplete", kernel ? kernel->span : Span{},
          fmt::format(
              "a launch needs kernel, args, shared, and one of static_tiles, schedule_tiles "
              "and block_index or cluster_index; {} missing",
              missing));
      return std::nullopt;
    }
    plan_.entry = kernel->name();
    plan_.threads = constant(kernel->threads(), kernel->span);
    if (kernel->op == Op::warpgroups_kernel)
      plan_.resident = constant(kernel->resident(), kernel->span);
    read_shared(*shared);
    find_parts();
    read_columns(*args);
    read_boxes();
    for (const Stmt& s : args->body) read_argument(s);
    bool behind = false;
    for (const Stmt& s : program_.body) {
      behind = behind || &s == kernel;
      if (tl::is(s.op, tl::Family::pass))
        (behind ? plan_.after : plan_.before)
            .push_back({s.name(), constant(s.threads(), s.span), s.count()});
    }
    plan_.parameter_bytes = round_up(offset_, alignment_);
    read_grid();
    read_requirements();
    if (!failed_) failed_ = !fits_target(plan_, shared_lines_, shared->span, diagnostics_);
    if (failed_) return std::nullopt;
    return std::move(plan_);
  }

 private:
  void refuse(const std::string& code, const Span& span, const std::string& message) {
    diagnostics_.error(code, span, message);
    failed_ = true;
  }

  void read_constants() {
    for (const Stmt& s : program_.body) {
      if (s.op == Op::element) element_ = s.type();
      if (s.op != Op::param) continue;
      for (const Item& d : s.names()) plan_.constants[d.name] = constant(d.expr, s.span);
    }
  }

  // The value of a constant expression over the parameters.
  int64_t constant(const ExprPtr& e, const Span& span) {
    const auto arg = [&](int i) { return constant(e->args[i], span); };
    if (e->kind == ExprKind::integer) return std::stoll(e->text);
    if (e->kind == ExprKind::name) {
      const auto found = plan_.constants.find(e->text);
      if (found != plan_.constants.end()) return found->second;
    }
    if (e->kind == ExprKind::unary && e->text == "-") return -arg(0);
    if (e->kind == ExprKind::binary) {
      if (e->text == "+") return arg(0) + arg(1);
      if (e->text == "-") return arg(0) - arg(1);
      if (e->text == "*") return arg(0) * arg(1);
      if (e->text == "//" && arg(1) != 0) return floor_div(arg(0), arg(1));
      if (e->text == "%" && arg(1) != 0) return arg(0) - floor_div(arg(0), arg(1)) * arg(1);
    }
    refuse("launch.constant", span,
           fmt::format("'{}' must be constant; only params and numbers are", tl::print(e)));
    return 1;
  }

  // How many blocks of the output there are, and who says so.
  bool find_blocks(const Stmt& kernel) {
    const Stmt* dealt = program_.find(Op::static_tiles);
    if (!dealt) dealt = program_.find(Op::schedule_tiles);
    if (dealt) blocks_ = dealt->count();
    const auto in = [&](const ExprPtr& e) {
      tl::rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
        if (x->kind != ExprKind::call || !tl::numbers_blocks(x->text)) return nullptr;
        if (one_each_ && tl::print(blocks_) != tl::print(x->args[0]))
          refuse("launch.grid", kernel.span,
                 fmt::format("{} is asked of {} blocks here and of {} there", x->text,
                             tl::print(blocks_), tl::print(x->args[0])));
        blocks_ = x->args[0];
        one_each_ = true;
        return nullptr;
      });
    };
    tl::walk(kernel.body, [&](const Stmt& s) { tl::each_expression(s, in); });
    return blocks_ != nullptr;
  }

  // One CTA for each block of the output where it asks for its number; else one cluster
  // for each, but no more than the GPU runs at a time.
  void read_grid() {
    const Stmt* cluster = program_.find(Op::cluster);
    if (cluster) plan_.cluster = constant(cluster->ctas(), cluster->span);
    if (plan_.cluster < 1 || plan_.cluster > kLargestCluster)
      return refuse("launch.cluster", cluster->span,
                    fmt::format("a cluster of {} CTAs; every GPU with clusters runs 1 to {}",
                                plan_.cluster, kLargestCluster));
    const ExprPtr sms = tl::name("SMS"), k = tl::integer(plan_.cluster);
    plan_.grid = one_each_ ? plan_.cluster == 1 ? blocks_ : tl::binary("*", k, blocks_)
                 : plan_.cluster == 1
                     ? tl::call("min", {blocks_, sms})
                     : tl::binary("*", k, tl::call("min", {blocks_, tl::binary("//", sms, k)}));
  }

  // Tiles are 1024-aligned, barriers 8-aligned; the struct's size is a multiple of 1024.
  void read_shared(const Stmt& shared) {
    int64_t offset = 0;
    for (const Stmt& s : shared.body) {
      for (const Item& d : s.names()) {
        int64_t bytes = 0;
        std::string text = fmt::format("{} {}", tl::word(s.op), d.name);
        if (s.op == Op::ring || s.op == Op::tile) {
          const int64_t rows = constant(s.rows(), s.span), columns = constant(s.columns(), s.span);
          const int64_t slots = s.op == Op::ring ? constant(s.stages(), s.span) : 1;
          const int64_t count = d.expr ? constant(d.expr, s.span) : 1;
          tiles_[d.name] = {rows, columns};
          bytes = round_up(rows * columns * tl::bytes_of(s.type()), 1024) * slots * count;
          text += fmt::format(", {} of {} x {}", slots * count, rows, columns);
          offset = round_up(offset, 1024) + bytes;
        } else if (s.op == Op::row_ring) {
          const int64_t slots = constant(s.stages(), s.span), rows = constant(s.rows(), s.span);
          bytes = slots * rows * 4;
          text += fmt::format(", {} of {} rows", slots, rows);
          offset = round_up(offset, 4) + bytes;
        } else {
          const int64_t slots = constant(s.stages(), s.span);
          bytes = round_up(s.op == Op::queue ? slots * 16 + slots * 4 : slots * 8, 8);
          offset = round_up(offset, 8) + bytes;
        }
        shared_lines_.push_back({text, bytes});
      }
    }
    plan_.shared_bytes = round_up(offset, 1024);
  }

  // Tensors whose copies move parts of rows.
  void find_parts() {
    tl::walk(program_.body, [&](const Stmt& s) {
      if (tl::traits(s.op).async == tl::Async::tma && tl::traits(s.op).part_of_rows)
        parts_of_rows_.insert(tl::base_name(s.tensor()));
    });
  }

  // The columns of each tiled tensor: they decide its panels, so they are known here, but for those
  // that move in parts of rows, a panel at a time.
  void read_columns(const Stmt& args) {
    for (const Stmt& s : args.body) {
      if (s.op != Op::arg_tiled) continue;
      const std::string last = s.dims().back().name;
      const auto columns = plan_.constants.find(last);
      const bool in_parts = std::all_of(s.names().begin(), s.names().end(), [&](const Item& d) {
        return parts_of_rows_.count(d.name) > 0;
      });
      if (in_parts) continue;
      if (columns == plan_.constants.end())
        refuse("launch.constant", s.span,
               fmt::format("'{}' is the number of columns of a tiled tensor; it must be a param",
                           last));
      else
        for (const Item& d : s.names()) columns_[d.name] = columns->second;
    }
  }

  // What one copy moves: a tile, of which a tensor to be written may have fewer columns, or the
  // part that each CTA of a cluster fetches for all.
  Box box_of(const Stmt& s, Box tile, int64_t tensor_columns) {
    if (s.op == Op::tma_store) tile.columns = std::min(tile.columns, tensor_columns);
    if (s.op == Op::tma_load_pages) {  // of several pages in a tile, a panel of each
      const int64_t page = constant(s.rows(), s.span);
      return page < tile.rows ? Box{page, tl::panel_columns(tile.columns)} : tile;
    }
    if (s.op != Op::tma_load_multicast) return tile;
    const int64_t k = constant(s.ctas(), s.span);
    const auto part = tl::multicast_box(tile, k);
    if (!part)
      refuse("launch.box", s.span,
             fmt::format("a tile of {}x{} has no {} equal parts of whole panels of {} columns, or "
                         "of a multiple of 8 rows of each",
                         tile.rows, tile.columns, k, tl::panel_columns(tile.columns)));
    return part.value_or(tile);
  }

  // Both ends of a copy must cut their rows alike, into panels of 64 columns or of 32.
  void check_panels(const Stmt& s, const std::string& tensor, int64_t tensor_columns,
                    const std::string& tile, int64_t tile_columns) {
    const int64_t here = tl::panel_columns(tensor_columns), there = tl::panel_columns(tile_columns);
    if (tensor_columns % here != 0)
      refuse("launch.box", s.span,
             fmt::format("'{}' has {} columns; the copy engine moves panels of 64 or 32", tensor,
                         tensor_columns));
    else if (here != there)
      refuse("launch.box", s.span,
             fmt::format("'{}' has {} columns, panels of {}; '{}' has {}, panels of {}", tensor,
                         tensor_columns, here, tile, tile_columns, there));
  }

  // Threads that copy a tile share out its rows; a row of the tensor is a row of the tile.
  void read_rows(const Stmt& s) {
    const std::string tensor = tl::base_name(s.tensor()),
                      tile = tl::base_name(tl::is(s.op, tl::Family::copy_out) ? s.src() : s.dst());
    const Stmt* declared = nullptr;
    for (const Stmt& a : program_.find(Op::args)->body)
      for (const Item& d : a.names())
        if (d.name == tensor) declared = &a;
    const auto from = tiles_.find(tile);
    if (!declared || declared->op != Op::arg_tensor || from == tiles_.end()) return;
    const std::string last = declared->dims().back().name;
    const auto columns = plan_.constants.find(last);
    if (columns == plan_.constants.end() || columns->second != from->second.columns)
      refuse("launch.box", s.span,
             fmt::format("rows of '{}' have {} columns, '{}' has {}", tensor,
                         columns == plan_.constants.end() ? last : std::to_string(columns->second),
                         tile, from->second.columns));
    copied_by_rows_.insert(tensor);
  }

  // The box of a tensor map is the shape of what its copies move.
  void read_boxes() {
    tl::walk(program_.body, [&](const Stmt& s) {
      if (s.op == Op::round_sums || s.op == Op::combine_parts || s.op == Op::write_row ||
          s.op == Op::store_accumulator)
        copied_by_rows_.insert(tl::base_name(s.tensor()));
      if (s.op == Op::dot_row)
        copied_by_rows_.insert({tl::base_name(s.src()), tl::base_name(s.tensor())});
      if (!tl::is_copy(s.op)) return;
      const bool part = tl::traits(s.op).part_of_rows, stores = tl::is(s.op, tl::Family::copy_out);
      if (tl::traits(s.op).async != tl::Async::tma) {
        if (part)
          copied_by_rows_.insert(tl::base_name(s.tensor()));
        else
          read_rows(s);
        return;
      }
      const std::string tensor = tl::base_name(s.tensor());
      if (stores || (s.has(tl::Hole::hint) && s.hint() != "evict_first")) stays_.insert(tensor);
      const auto tile = tiles_.find(tl::base_name(stores ? s.src() : s.dst()));
      const auto columns = columns_.find(tensor);
      if (tile == tiles_.end() || (!part && columns == columns_.end())) return;
      if (!part) check_panels(s, tensor, columns->second, tile->first, tile->second.columns);
      const Box box =
          part ? Box{tile->second.rows, kPanelColumns} : box_of(s, tile->second, columns->second);
      const auto [at, fresh] = boxes_.emplace(tensor, box);
      if (!fresh && at->second != box)
        refuse(
            "launch.box", s.span,
            fmt::format("'{}' is copied in boxes of {}x{} here and {}x{} elsewhere; a tensor map "
                        "has one box",
                        tensor, box.rows, box.columns, at->second.rows, at->second.columns));
    });
  }

  void place(LaunchArgument a, int64_t alignment, int64_t bytes) {
    offset_ = round_up(offset_, alignment);
    alignment_ = std::max(alignment_, alignment);
    a.offset = offset_;
    a.bytes = bytes;
    offset_ += bytes;
    plan_.arguments.push_back(std::move(a));
  }

  void read_argument(const Stmt& s) {
    for (const Item& d : s.names()) {
      LaunchArgument a;
      a.name = d.name;
      if (tl::is(s.op, tl::Family::tensor)) {
        const Item& access = s.access()[0];
        a.written = access.name == "out";
        a.rows = access.name == "scratch";
        a.type = access.type == "element" ? element_ : access.type;
        for (const Item& dim : s.dims())
          a.dims.push_back(plan_.constants.count(dim.name) ? tl::integer(plan_.constants[dim.name])
                                                           : tl::name(dim.name));
        const int64_t rank = a.dims.size();
        if (s.op == Op::arg_tiled) {
          a.kind = ArgumentKind::tensor_map;
          const auto box = boxes_.find(d.name);
          if (box == boxes_.end()) {
            refuse("launch.box", s.span,
                   fmt::format("'{}' is declared tiled, but no copy moves a tile of it", d.name));
            continue;
          }
          a.box_rows = box->second.rows;
          a.box_columns = box->second.columns;
          a.part_of_rows = parts_of_rows_.count(d.name) > 0;
          // What is read once streams: of 256 bytes at a time L2 loses 8 % of the memory's rate.
          a.l2_promotion = stays_.count(d.name) ? 256 : 128;
          if (a.rows) a.kind = ArgumentKind::scratch;
          const bool scratch = a.rows;
          place(std::move(a), 64, scratch ? 192 : 128);
        } else {
          a.kind = a.rows ? ArgumentKind::scratch : ArgumentKind::tensor;
          if (!a.rows && copied_by_rows_.count(d.name)) a.row_alignment = kChunkBytes;
          place(std::move(a), 8, round_up(8 + 8 * rank + 4 * rank, 8));
        }
      } else if (s.op == Op::arg_workspace || s.op == Op::arg_scratch) {
        a.kind = s.op == Op::arg_scratch ? ArgumentKind::scratch : ArgumentKind::workspace;
        a.type = "u32";
        a.dims = {s.words()};
        place(std::move(a), 8, 8);
      } else {
        a.kind = s.op == Op::arg_size ? ArgumentKind::size : ArgumentKind::scalar;
        a.type = s.op == Op::arg_f32 ? "f32" : "i32";
        a.value = d.expr;
        place(std::move(a), 4, 4);
      }
    }
  }

  // The caller's integers that something is divided by.
  std::set<std::string> divisors() const {
    std::set<std::string> scalars, out;
    for (const LaunchArgument& a : plan_.arguments)
      if (a.kind == ArgumentKind::scalar && a.type == "i32" && !a.value) scalars.insert(a.name);
    if (scalars.empty()) return out;
    tl::walk_scoped(program_, [&](const Stmt& s, const tl::Scope& outer) {
      tl::each_expr(s, outer, [&](const ExprPtr& whole, const tl::Scope&) {
        tl::rewrite(whole, [&](const ExprPtr& e) {
          const bool divides = e->kind == ExprKind::binary && (e->text == "%" || e->text == "//");
          if (divides && e->args[1]->kind == ExprKind::name && scalars.count(e->args[1]->text))
            out.insert(e->args[1]->text);
          return ExprPtr();
        });
      });
    });
    return out;
  }

  // Sizes and divisors are positive; grouped heads divide; coordinates taken as reals are exact
  // below 2^24.
  void read_requirements() {
    std::set<std::string> sizes;
    for (const LaunchArgument& a : plan_.arguments)
      if (a.kind == ArgumentKind::size && !a.value) sizes.insert(a.name);
    for (const std::string& name : sizes)
      plan_.requirements.push_back(tl::binary(">=", tl::name(name), tl::integer(1)));
    for (const std::string& name : divisors())
      plan_.requirements.push_back(tl::binary(">=", tl::name(name), tl::integer(1)));
    if (sizes.count("H") && sizes.count("G"))
      plan_.requirements.push_back(
          tl::binary("==", tl::binary("%", tl::name("H"), tl::name("G")), tl::integer(0)));
    if (program_.find(Op::map_real))
      for (const char* name : {"M", "N"})
        plan_.requirements.push_back(tl::binary("<", tl::name(name), tl::integer(1 << 24)));
  }

  const Program& program_;
  Diagnostics& diagnostics_;
  LaunchPlan plan_;
  std::string element_ = "bf16";
  std::map<std::string, Box> tiles_, boxes_;
  std::map<std::string, int64_t> columns_;  // of tiled tensors
  std::set<std::string> copied_by_rows_;    // tensors
  std::set<std::string> stays_;             // tiled tensors that L2 is not told to let go
  std::set<std::string> parts_of_rows_;     // tiled tensors that move in parts of rows
  std::vector<SharedLine> shared_lines_;
  ExprPtr blocks_;                      // of the output
  bool one_each_ = false;               // there is a CTA for each of them
  int64_t offset_ = 0, alignment_ = 1;  // of the argument struct, which its widest field aligns
  bool failed_ = false;
};

const char* kind_name(ArgumentKind kind) {
  switch (kind) {
    case ArgumentKind::tensor_map:
      return "tensor_map";
    case ArgumentKind::tensor:
      return "tensor";
    case ArgumentKind::size:
      return "size";
    case ArgumentKind::scalar:
      return "scalar";
    case ArgumentKind::workspace:
      return "workspace";
    case ArgumentKind::scratch:
      return "scratch";
  }
  return "";
}

}  // namespace

nlohmann::json launch_json(const ExprPtr& e) {
  nlohmann::json out = nlohmann::json::array();
  switch (e->kind) {
    case ExprKind::integer:
      return std::stoll(e->text);
    case ExprKind::real:
      return std::stod(e->text);
    case ExprKind::name:
      return e->text;
    default:
      break;
  }
  if (e->kind == ExprKind::call && e->text == "heads_at_once") {  // see cuda/kw/scalar.cuh
    const nlohmann::json group = launch_json(e->args[2]),
                         fit = {"//", tl::kSectionBytes, launch_json(e->args[0])},
                         due = {"ceil_div",
                                tl::kSectionBlocks,
                                {"*", group, launch_json(e->args[1])}},
                         // a power of two: of those up to `fit`, the largest; of those from `due`
                         // on, the least
        section = {"floor_pow2", {"max", fit, {"-", {"*", 2, due}, 1}}};
    return {"gcd", {"*", section, group}, launch_json(e->args[3])};
  }
  out.push_back(e->text);
  for (const ExprPtr& a : e->args) out.push_back(launch_json(a));
  return out;
}

std::optional<LaunchPlan> plan_launch(const Program& program, const std::string& target,
                                      Diagnostics& diagnostics) {
  if (!tl::verify_for(program, target, diagnostics)) return std::nullopt;
  return Planner(program, target, diagnostics).run();
}

// Words of 4 bytes, or the elements of a tensor.
ExprPtr scratch_bytes(const LaunchArgument& a) {
  if (!a.rows) return tl::binary("*", a.dims[0], tl::integer(4));
  ExprPtr out = tl::integer(tl::bytes_of(a.type));
  for (const ExprPtr& d : a.dims) out = tl::binary("*", out, d);
  return out;
}

nlohmann::json to_json(const LaunchPlan& plan) {
  nlohmann::json arguments = nlohmann::json::array();
  for (const LaunchArgument& a : plan.arguments) {
    nlohmann::json j = {{"name", a.name}, {"kind", kind_name(a.kind)}, {"offset", a.offset}};
    const bool tensor = a.kind == ArgumentKind::tensor_map || a.kind == ArgumentKind::tensor;
    if (tensor) j["access"] = a.written ? "write" : "read";
    if (tensor || a.rows) {
      j["dtype"] = a.type;
      j["dims"] = nlohmann::json::array();
      for (const ExprPtr& d : a.dims) j["dims"].push_back(launch_json(d));
    }
    if (a.box_rows) {
      j["box"] = {{"rows", a.box_rows}, {"columns", a.box_columns}};
      j["l2_promotion"] = a.l2_promotion;
      if (a.part_of_rows) j["part_of_rows"] = true;
    }
    if (a.row_alignment) j["row_alignment"] = a.row_alignment;
    if (a.kind == ArgumentKind::scalar) j["dtype"] = a.type;
    if (a.value) j["value"] = launch_json(a.value);
    if (a.kind == ArgumentKind::workspace) j["bytes"] = std::stoll(a.dims[0]->text) * 4;
    if (a.kind == ArgumentKind::scratch) j["bytes"] = launch_json(scratch_bytes(a));
    arguments.push_back(std::move(j));
  }
  nlohmann::json needs = nlohmann::json::array();
  for (const ExprPtr& r : plan.requirements) needs.push_back(launch_json(r));
  nlohmann::json out = {{"entry", plan.entry},
                        {"target", plan.target},
                        {"threads", plan.threads},
                        {"shared_bytes", plan.shared_bytes},
                        {"parameter_bytes", plan.parameter_bytes},
                        {"cluster", plan.cluster},
                        {"resident", plan.resident},
                        {"grid", launch_json(plan.grid)},
                        {"requires", needs},
                        {"constants", plan.constants},
                        {"arguments", arguments}};
  for (const PrePass& p : plan.before)
    out["before"].push_back(
        {{"entry", p.entry}, {"threads", p.threads}, {"grid", launch_json(p.grid)}});
  for (const PrePass& p : plan.after)
    out["after"].push_back(
        {{"entry", p.entry}, {"threads", p.threads}, {"grid", launch_json(p.grid)}});
  return out;
}

}  // namespace kw::lower
