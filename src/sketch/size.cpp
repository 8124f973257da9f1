#include "sketch/size.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>

#include "sketch/cut.h"
#include "sketch/families/gemm/gemm.h"
#include "sketch/families/gemm/size.h"
#include "sketch/tiles.h"
#include "tl/analysis/effects.h"
#include "tl/laws/laws.h"

namespace kw::sketch {
namespace {

using tl::ExprPtr;
using tl::Op;
using tl::Stmt;

bool set_parameters(tl::Program& program, const Request& request, Diagnostics& diagnostics) {
  std::set<std::string> left;
  for (const auto& [name, value] : request.params) left.insert(name);
  tl::walk(program.body, [&](Stmt& s) {
    if (s.op == Op::element && !request.element.empty()) s.type() = request.element;
    if (s.op != Op::param) return;
    for (tl::Item& d : s.names())
      if (const auto at = request.params.find(d.name); at != request.params.end()) {
        d.expr = tl::integer(at->second);
        left.erase(d.name);
      }
  });
  if (left.empty()) return true;
  std::vector<std::string> there;
  for (const auto& [name, value] : parameters(program)) there.push_back(name);
  const Stmt* first = program.find(Op::param);
  diagnostics.error("sketch.param", first ? first->span : Span{},
                    fmt::format("--param {0}: the sketch has no parameter `{0}`; it has {1}",
                                *left.begin(), fmt::join(there, ", ")));
  return false;
}

// Writes the sized text, line by line.
class Sizer {
 public:
  Sizer(const tl::Program& sketch, const Plan& plan, const Placed& placed, const Sizes& sizes)
      : sketch_(sketch), plan_(plan), placed_(placed), sizes_(sizes) {
    part_ = fresh_name(sketch_, "part");
    me_ = fresh_name(sketch_, "me");
    block_ = fresh_name(sketch_, "n");
    cut_ = fresh_name(sketch_, "cut");
    step_ = fresh_name(sketch_, "t");
    rows_ = plan.counters.back();
    swap_.push_back({tl::name(plan.counter), tl::binary("*", tl::name(block_), tl::name("BN"))});
    for (const Tile& t : placed.tiles)
      if (t.space == Space::shared && !t.of_keys)
        swap_.push_back({tl::name(t.name), tl::index(tl::name(t.name), {tl::name(me_)})});
  }

  std::string run() {
    head();
    shared();
    line(0, fmt::format("plan {}:", plan_.plan->name()));
    declarations();
    grid();
    return out_;
  }

 private:
  void line(int depth, const std::string& text) {
    out_ += std::string(size_t(depth) * 4, ' ') + text + "\n";
  }

  // The sketch's own head and arguments, and how many blocks of the output there are.
  void head() {
    for (const Stmt& s : sketch_.body) {
      if (s.op == Op::plan) continue;
      if (s.op == Op::level) {
        line(0, "level sized");
        continue;
      }
      if (s.op == Op::args) {
        line(0, fmt::format("param ROWS = {}, WARPGROUPS = {}, BM = ROWS * WARPGROUPS", sizes_.rows,
                            sizes_.warpgroups));
        line(0, fmt::format("param BN = {}", sizes_.keys));
        arguments(s);
        continue;
      }
      out_ += tl::print(s);
    }
  }

  // After the sizes: the number of blocks depends on them, other values on nothing but themselves.
  void arguments(const Stmt& args) {
    line(0, "args:");
    bool said = false;
    for (const Stmt& s : args.body) {
      const bool sizes = s.op == Op::arg_size || s.op == Op::arg_tensor;
      if (!sizes && !said) blocks_argument(), said = true;
      out_ += tl::print(s, 1);
    }
    if (!said) blocks_argument();
  }

  void blocks_argument() {
    std::string all = fmt::format("ceil_div({}, BM)", tl::print(plan_.extents.back()));
    if (is_cut()) all += " * CUTS";
    for (size_t n = plan_.extents.size() - 1; n-- > 0;) all += " * " + tl::print(plan_.extents[n]);
    line(1, fmt::format("blocks: size = {}", all));
  }

  void shared() {
    line(0, "shared:");
    for (const Tile& t : placed_.tiles)
      if (t.space == Space::shared)
        line(1, t.of_keys
                    ? fmt::format("tile {}: element[BN, {}]", t.name, t.columns)
                    : fmt::format("tile {}[WARPGROUPS]: element[ROWS, {}]", t.name, t.columns));
  }

  void declarations() {
    std::vector<std::string> rows, lane_sums;
    const auto each = [&](bool keys) {
      for (const Tile& t : placed_.tiles) {
        if (t.space == Space::accumulator && (t.columns == "BN") == keys)
          line(1, fmt::format("accumulator {}: real[ROWS, {}]", t.name, t.columns));
        if (t.space == Space::operand && keys)
          line(1, fmt::format("operand {}: element[ROWS, {}]", t.name, t.columns));
      }
    };
    each(true);
    each(false);
    for (const Tile& t : placed_.tiles) {
      if (t.space == Space::row) rows.push_back(t.name);
      if (t.space == Space::lane_sum) lane_sums.push_back(t.name);
    }
    if (!rows.empty()) line(1, fmt::format("row {}: real[ROWS]", fmt::join(rows, ", ")));
    if (!lane_sums.empty())
      line(1, fmt::format("lane_sum {}: real[ROWS]", fmt::join(lane_sums, ", ")));
    for (const Tile& t : placed_.tiles)
      if (t.space == Space::flag) line(1, "flag " + t.name);
    for (const Tile& t : placed_.tiles) declared_.insert(t.name);
  }

  void grid() {  // Z1
    std::vector<std::string> counters = {part_},
                             extents = {
                                 fmt::format("ceil_div({}, BM)", tl::print(plan_.extents.back()))};
    if (is_cut()) counters.push_back(cut_), extents.push_back("CUTS");
    for (size_t n = plan_.extents.size() - 1; n-- > 0;) {
      counters.push_back(plan_.counters[n]);
      extents.push_back(tl::print(plan_.extents[n]));
    }
    counters.push_back(me_);
    extents.push_back("WARPGROUPS");
    line(1,
         fmt::format("for {} in grid({}):", fmt::join(counters, ", "), fmt::join(extents, ", ")));
    line(2, fmt::format("let {} = {} * BM + {} * ROWS", rows_, part_, me_));
    body(plan_.before, 2, false);
    line(2, fmt::format("for {} in blocks(ceil_div({}, BN)):", block_,  // Z2
                        tl::print(plan_.loop->extent())));
    body(plan_.inside, 3, true);
    body(plan_.after, 2, false);
  }

  void body(const std::vector<const Stmt*>& statements, int depth, bool loop) {
    for (size_t n = 0; n < statements.size(); ++n) {
      statement(*statements[n], depth);
      if (loop && !placed_.chained.empty() && n == placed_.reshape_after) {  // Z3
        line(depth, fmt::format("to_operand {} = {}", placed_.operand, placed_.chained));
      }
    }
    local_.clear();
    rows_said_.clear();
  }

  void statement(Stmt s, int depth) {
    if (s.op == Op::compute) return declare(s.target()->text, s.value(), depth);
    if (s.op == Op::map_rows && !is_declared(tl::base_name(s.target()))) begin_row(s, depth);
    if (s.op == Op::copy && leaves(s)) return leave(s, depth);
    if (is_cut()) {
      if (s.op == Op::copy && is_of_scores(s)) return;
      if (s.op == Op::mma) return steps(s, depth);
      if (s.op == Op::copy) s.src() = from_column(s.src(), cut_, "CUT");
      if (s.op == Op::store_rows) line(depth++, fmt::format("if {} == 0:", cut_));  // K4
    }
    if (s.op == Op::mma_add && s.a()->is_name(placed_.chained)) s.a() = tl::name(placed_.operand);
    tl::each_expression(s, [&](ExprPtr& e) { e = tl::replace(e, swap_); });
    if (tl::writes(s, rows_name_)) rows_said_.clear();
    out_ += tl::print(s, depth);
  }

  bool is_cut() const { return !placed_.steps.empty(); }

  // Copies a tile that the scores are a product of.
  bool is_of_scores(const Stmt& copy) const {
    const Tile* t = placed_.find(tl::base_name(copy.dst()));
    return t && t->columns == "STEP";
  }

  // k[b, g, j0] from column `counter` * `width` on, or from that beyond the one it has.
  static ExprPtr from_column(const ExprPtr& place, const std::string& counter,
                             const std::string& width) {
    ExprPtr column = tl::binary("*", tl::name(counter), tl::name(width));
    std::vector<ExprPtr> at(place->args.begin() + 1, place->args.end());
    if (at.size() > 3) {
      if (tl::print(at[3]) != "0") column = tl::binary("+", at[3], column);
      at.pop_back();
    }
    at.push_back(column);
    return tl::index(place->args[0], at);
  }

  // K2. The scores, step by step.
  void steps(const Stmt& product, int depth) {
    const auto swapped = [&](const ExprPtr& e) { return tl::print(tl::replace(e, swap_)); };
    const std::string scores = tl::print(product.acc());
    line(depth, fmt::format("fill {} = 0.0", scores));
    line(depth, fmt::format("for {} in range(STEPS):", step_));
    for (const auto* body : {&plan_.before, &plan_.inside})
      for (const Stmt* s : *body)
        if (s->op == Op::copy && is_of_scores(*s))
          line(depth + 1,
               fmt::format("copy {} -> {}", swapped(from_column(s->src(), step_, "STEP")),
                           swapped(s->dst())));
    line(depth + 1, fmt::format("mma_add_transposed {} += {} @ {}.T", scores, swapped(product.a()),
                                swapped(product.b())));
  }

  bool is_declared(const std::string& name) const {
    return declared_.contains(name) || local_.contains(name);
  }

  // Z4. The vector, and in the body its own element in the first one's place.
  void begin_row(Stmt& s, int depth) {
    const std::string own = tl::base_name(s.target());
    std::string first;
    tl::rewrite(s.value(), [&](const ExprPtr& e) -> ExprPtr {
      if (first.empty() && e->kind == tl::ExprKind::index && is_declared(e->args[0]->text))
        first = e->args[0]->text;
      return nullptr;
    });
    if (first.empty()) return;  // names.C2 says it of the sized program
    const ExprPtr i = tl::name("i");
    s.value() =
        tl::replace(s.value(), {{tl::index(tl::name(first), {i}), tl::index(tl::name(own), {i})}});
    declare(own, tl::name(first), depth);
  }

  void declare(const std::string& name, const ExprPtr& value, int depth) {
    local_.insert(name);
    const std::string source = value->kind == tl::ExprKind::name ? value->text : "";
    const bool joins = !rows_said_.empty() && source == rows_name_;
    if (!joins) {
      rows_said_.clear();
      rows_name_ = name;
      rows_at_ = out_.size();
      rows_depth_ = depth;
    } else {
      out_.erase(rows_at_, rows_end_ - rows_at_);
    }
    rows_said_.push_back(fmt::format("{} = {}", name, tl::print(value)));
    const std::string text = std::string(size_t(rows_depth_) * 4, ' ') +
                             fmt::format("row {}: real[ROWS]\n", fmt::join(rows_said_, ", "));
    out_.insert(rows_at_, text);
    rows_end_ = rows_at_ + text.size();
  }

  bool leaves(const Stmt& s) const {
    const Stmt* tensor = tensor_named(sketch_, tl::base_name(s.dst()));
    return tensor && is_output(*tensor);
  }

  void leave(const Stmt& s, int depth) {  // Z5
    const std::string way = fmt::format("{}[{}]", placed_.leaves, me_);
    line(depth, fmt::format("store {} -> {}", tl::print(s.src()), way));
    const ExprPtr to = is_cut() ? from_column(s.dst(), cut_, "CUT") : s.dst();
    line(depth, fmt::format("copy {} -> {}", way, tl::print(to)));
  }

  const tl::Program& sketch_;
  const Plan& plan_;
  const Placed& placed_;
  const Sizes& sizes_;
  std::string part_, me_, block_, rows_, cut_, step_;
  std::vector<tl::Replacement> swap_;
  std::set<std::string> declared_, local_;
  // The last declaration of row vectors: where it stands, and its first, which others copy.
  std::vector<std::string> rows_said_;
  std::string rows_name_;
  size_t rows_at_ = 0, rows_end_ = 0;
  int rows_depth_ = 0;
  std::string out_;
};

// What both questions go through before a size is chosen.
struct Begun {
  tl::Program given;
  Plan plan;
  Placed placed;
  Work work;
};

// The plan points into `given`, which stays where it is.
std::unique_ptr<Begun> begin(const tl::Program& sketch, const Request& request,
                             Diagnostics& diagnostics) {
  auto out = std::make_unique<Begun>();
  out->given = sketch;
  if (!set_parameters(out->given, request, diagnostics)) return nullptr;
  const auto plan = read_plan(out->given, "sketch", diagnostics);
  if (!plan) return nullptr;
  out->plan = *plan;
  const auto placed =
      place(out->given, out->plan, request.machine.style == Style::engine, diagnostics);
  if (!placed) return nullptr;
  out->placed = *placed;
  out->work = work_of(out->given, out->placed, request.machine);
  cut(out->given, out->plan, out->placed, out->work, request.machine);
  return out;
}

std::optional<Sizes> sizes_of(const Begun& begun, const Request& request,
                              Diagnostics& diagnostics) {
  if (request.sizes)
    return hold_tiles(request.machine, begun.work, *request.sizes, diagnostics) ? request.sizes
                                                                                : std::nullopt;
  const Stmt* element = begun.given.find(Op::element);
  return choose_tiles(request.machine, begun.work, element ? element->type() : "bf16", diagnostics);
}

}  // namespace

std::optional<tl::Program> with_parameters(const tl::Program& sketch, const Request& request,
                                           Diagnostics& diagnostics) {
  tl::Program given = sketch;
  return set_parameters(given, request, diagnostics) ? std::optional(std::move(given))
                                                     : std::nullopt;
}

std::optional<Work> work(const tl::Program& sketch, const Request& request,
                         Diagnostics& diagnostics) {
  const auto begun = begin(sketch, request, diagnostics);
  return begun ? std::optional(begun->work) : std::nullopt;
}

std::optional<tl::Program> size(const tl::Program& sketch, const Request& request,
                                Diagnostics& diagnostics) {
  if (is_product(sketch)) {
    const auto given = with_parameters(sketch, request, diagnostics);
    return given ? size_product(*given, request, diagnostics) : std::nullopt;
  }
  const auto begun = begin(sketch, request, diagnostics);
  const auto sizes = begun ? sizes_of(*begun, request, diagnostics) : std::nullopt;
  if (!sizes) return std::nullopt;
  const std::string text = Sizer(begun->given, begun->plan, begun->placed, *sizes).run();
  auto program = tl::parse(make_source("<sized>", text), diagnostics);
  if (!program || !tl::verify(*program, diagnostics)) return std::nullopt;
  return program;
}

}  // namespace kw::sketch
