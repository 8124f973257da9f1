#include "transfer/families/attention_bwd/edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "transfer/editing/write_map.h"

namespace kw::transfer::bwd {

using spec::ExprPtr;
using spec::Kind;
using tl::Op;
using tl::Stmt;

namespace {

tl::ExprPtr element(const std::string& tile) {
  return tl::index(tl::name(tile), {tl::name("i"), tl::name("j")});
}

}  // namespace

std::optional<std::string> Edit::spelled(const ExprPtr& e, Spelling how) {
  how.indices.emplace("b", tl::field(tl::name("c"), "b"));
  how.indices.emplace("h", tl::name("h"));
  const std::optional<tl::ExprPtr> out = spell(e, how, diagnostics);
  if (!out) return std::nullopt;
  return tl::print(*out);
}

std::optional<std::string> Edit::spelled(const ExprPtr& e, const std::string& query,
                                         const std::string& key) {
  Spelling how;
  how.indices = {{"i", tl::parse_expr(query, diagnostics)},
                 {"j", tl::parse_expr(key, diagnostics)}};
  return spelled(e, std::move(how));
}

std::optional<std::string> Edit::in_map(const ExprPtr& e, bool real_coordinates) {
  Spelling how;
  how.real_coordinates = real_coordinates;
  how.indices = {{"i", tl::name("j")}, {"j", tl::name("i")}};
  how.score = element(places()->score);
  return spelled(e, std::move(how));
}

std::optional<std::string> Edit::of_row(const ExprPtr& e) {
  Spelling how;
  how.indices = {{"b", tl::name("b")}, {"h", tl::name("h")}, {"i", tl::name("r")}};
  how.output =
      tl::index(tl::name("o"), {tl::name("b"), tl::name("h"), tl::name("r"), tl::name("j")});
  return spelled(e, std::move(how));
}

std::optional<std::string> map_of(Edit& edit, const std::string& tile, const ExprPtr& value,
                                  const std::string& body) {
  const Coordinates coordinates = coordinates_of(value);
  if (!exact_coordinates(edit, coordinates, kLetters.queries, kLetters.keys)) return std::nullopt;
  const auto text = edit.in_map(value, coordinates == Coordinates::real);
  if (!text) return std::nullopt;
  return map_text(coordinates, tile, "j0", "m * BM", fmt::format(fmt::runtime(body), *text));
}

ExprPtr exchanged(const ExprPtr& keep) {
  return spec::rewrite(keep, [](const ExprPtr& x) -> ExprPtr {
    if (x->kind != Kind::index || (x->name != "i" && x->name != "j")) return nullptr;
    return spec::leaf(Kind::index, spec::Type::integer, x->name == "i" ? "j" : "i");
  });
}

std::vector<Stmt>* Edit::rows() {
  Stmt* rows = program.find(Op::rows);
  if (!rows || rows->body.empty() || rows->body[0].op != Op::each_row) return nullptr;
  return &rows->body[0].body;
}

Stmt* Edit::written_of_row(const std::string& value) {
  std::vector<Stmt>* body = rows();
  for (size_t n = 0; body && n < body->size(); ++n)
    if ((*body)[n].op == Op::write_value && tl::base_name((*body)[n].tensor()) == value)
      return &(*body)[n];
  return nullptr;
}

bool Edit::refuse_kernel(const std::string& what) {
  return refuse("transfer.kernel", {}, "this kernel " + what,
                "kernels/sm90/attention_bwd.cu is one that has it");
}

bool Edit::add_gradient(const spec::Output& output, const std::string& values) {
  const std::map<char, std::string> letters = {{'b', "B"}, {'h', "H"}, {'i', "M"}};
  std::string dims;
  for (const char axis : output.axes) {
    const auto at = letters.find(axis);
    dims += (dims.empty() ? "" : ", ") + (at == letters.end() ? values : at->second);
  }
  return insert(
      behind_arguments(Op::arg_tiled),
      fmt::format("{}: out {}[{}]", output.name, output.unrounded ? "f32" : "element", dims));
}

bool Edit::waits_for_products() const {
  bool waits = false;
  tl::walk(program.body, [&](const Stmt& s) { waits |= s.op == Op::wgmma_wait; });
  return waits;
}

bool Edit::has_many_queries() const {
  const tl::Item* queries = constant_named(program, "BM");
  return waits_for_products() && queries && queries->expr && std::stoll(queries->expr->text) > 64;
}

bool Edit::has_own_keys() const {
  bool own = false;
  const auto begins = [&](const Stmt& s) {
    return s.op == Op::let && s.names().at(0).name == "j0";
  };
  tl::walk(program.body, [&](const Stmt& s) {
    if (begins(s)) own |= tl::mentions(s.names().at(0).expr, "me");
    if (s.op != Op::if_ || !tl::mentions(s.condition(), "me")) return;
    own |= std::any_of(s.body.begin(), s.body.end(), begins);
  });
  return own;
}

Stmt* Edit::queries_def() {
  for (Stmt& s : program.body)
    if (s.op == Op::def && s.name() == "query_blocks") return &s;
  return nullptr;
}

std::optional<Edit::Places> Edit::places() {
  Places out;
  const auto is_mask = [](const Stmt& s) {
    return s.op == Op::if_ && !s.body.empty() && s.body.back().op == Op::map_at;
  };
  tl::walk(program.body, [&](Stmt& s) {
    if (s.op != Op::step || out.step) return;
    for (size_t n = 0; n < s.body.size(); ++n)
      if (is_mask(s.body[n])) out.step = &s.body, out.step_name = s.name(), out.mask = n;
  });
  if (!out.step) return std::nullopt;
  out.score = tl::base_name((*out.step)[out.mask].body.back().target());
  out.fill = out.weights = out.gradient = out.step->size();
  for (size_t n = 0; n < out.step->size(); ++n) {
    const Stmt& s = (*out.step)[n];
    if (s.op == Op::fill_columns && s.dst()->is_name(out.score.c_str()))
      out.fill = n, out.offset = tl::print(s.src());
    if (s.op == Op::fill && s.target()->is_name(out.score.c_str())) out.fill = n;
    if (!tl::is(s.op, tl::Family::map) || !s.has(tl::Hole::target) || n < out.mask) continue;
    const std::string tile = tl::base_name(s.target());
    if (tile == out.score && out.weights == out.step->size()) out.weights = n;
    if (tile != out.score && tl::mentions(s.value(), out.score.c_str())) {
      out.gradient = n;
      out.d_score = tile;
    }
  }
  const size_t end = out.step->size();
  if (out.fill == end || out.weights == end || out.gradient == end) return std::nullopt;
  return out;
}

// At the head of the step, whose own lets are what it is of.
bool Edit::declare(const std::string& name, const ExprPtr& value) {
  const std::optional<std::string> text = spelled(value, Spelling{});
  const std::optional<Places> at = places();
  size_t lets = 0;
  while (at && lets < at->step->size() && (*at->step)[lets].op == Op::let) ++lets;
  return text && at && insert({at->step, lets}, "let " + name + " = " + *text);
}

}  // namespace kw::transfer::bwd
