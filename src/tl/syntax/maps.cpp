#include "tl/syntax/maps.h"

#include <map>
#include <set>

#include "tl/syntax/precedence.h"
#include "tl/traits.h"

namespace kw::tl {
namespace {

// `kw::Place i, kw::Place j` of map_at, `int j` of set_columns: the type of a map's coordinates,
// and which.
struct CoordinatesOf {
  std::string type;
  std::vector<std::string> names;
};
const CoordinatesOf& coordinates_of(Op op) {
  static const std::map<Op, CoordinatesOf> all = {
      {Op::map, {}},
      {Op::map_at, {"kw::Place", {"i", "j"}}},
      {Op::map_real, {"kw::Coordinate", {"i", "j"}}},
      {Op::map_rows, {}},
      {Op::set_rows, {"int", {"i"}}},
      {Op::set_columns, {"int", {"j"}}},
      {Op::set_diagonals, {"int", {"d"}}},  // j - i
      {Op::set_tile, {"int", {"i"}}},       // of a row
      {Op::add_each, {"kw::Place", {"i", "j"}}},
      {Op::add_diagonals, {"int", {"d"}}},  // j - i
      {Op::sum, {"int", {"j"}}},
      {Op::write_row, {"int", {"j"}}},
      {Op::set_line, {}},  // a row
      {Op::map_line, {}},
      {Op::sum_line, {}},
  };
  return all.at(op);
}

// The lambda's type of a vector's or an operand's element.
std::string type_of_element(const Scope& scope, const std::string& vector) {
  const Symbol* s = scope.find(vector);
  return s && s->element == "i32" ? "int" : s && s->element == "bool" ? "bool" : "kw::real";
}

// Of lines, whose bodies are given the elements that they mention and nothing else; so the target
// is one of these, where it is read at all.
bool is_of_lines(Op op) { return op == Op::map_line || op == Op::sum_line; }

std::string target_of(const Stmt& stmt) {
  if (!stmt.has(Hole::target) || is_of_lines(stmt.op)) return "";
  const ExprPtr& t = stmt.target();
  return t->kind == ExprKind::name ? t->text : "";
}

// `int`, `bool`, `kw::real`, `kw::Place` or `kw::Coordinate`
bool read_type(Reader& r, const std::string& type) {
  if (type == "int" || type == "bool") return r.expect(type);
  r.expect("kw");
  r.expect("::");
  return r.expect(type.substr(type.rfind(':') + 1));
}

bool read_parameter(Reader& r, const std::string& type, std::string& name) {
  read_type(r, type);
  name = r.identifier();
  for (const Reader::Parameter& p : r.parameters)
    if (p.name == name) return r.fail("two parameters are called '" + name + "'");
  return !r.failed();
}

// `, kw::Place i, kw::Place j`, or of another type
bool read_coordinates(Reader& r, const Stmt& stmt) {
  const CoordinatesOf& all = coordinates_of(stmt.op);
  bool first = !has_element(stmt.op);  // with no comma before it
  for (const std::string& n : all.names) {
    if (!first) r.expect(",");
    first = false;
    read_type(r, all.type);
    if (!r.expect(n)) return false;
    r.parameters.push_back({n, name(n)});
  }
  return true;
}

// A vector's value under a name that no program has, until the vector itself is read.
std::string placeholder(size_t k) { return "$" + std::to_string(k); }

bool read_parameters(Reader& r, const Stmt& stmt, Lambda& lambda) {
  const std::string target = target_of(stmt);
  for (const char* t : {"[", "&", "]", "("}) r.expect(t);
  const ExprPtr i = name("i"), j = name("j");
  if (has_element(stmt.op)) {
    if (!read_parameter(r, "kw::real", lambda.element)) return false;
    r.parameters.push_back({lambda.element, stmt.op == Op::map_rows ? index(name(target), {i})
                                                                    : index(name(target), {i, j})});
  }
  if (!read_coordinates(r, stmt)) return false;
  const bool values = has_element(stmt.op) || is_of_lines(stmt.op);
  bool first = is_of_lines(stmt.op);  // with no comma before it
  while (values && (first ? r.peek() != ")" : r.take(","))) {
    first = false;
    const std::string vector = placeholder(lambda.vectors.size());
    const bool word = r.peek() == "int" || r.peek() == "bool";
    const std::string type = word ? std::string(r.peek()) : "kw::real";
    std::string parameter;
    if (!read_parameter(r, type, parameter)) return false;
    lambda.vectors.push_back({vector, parameter});
    r.parameters.push_back({parameter, index(name(vector), {i})});
    Symbol s;
    s.name = vector;
    s.category = Category::row;
    s.element = type == "int" ? "i32" : type == "bool" ? "bool" : "real";
    r.names.add(std::move(s));
  }
  return r.expect(")");
}

// `args.bias.row(0, c.h, i)`: the elements bias[0, c.h, i, j] for all j.
ExprPtr read_row(Reader& r) {
  const size_t first = r.at;
  r.expect("args");
  r.expect(".");
  const std::string tensor = r.identifier();
  const Symbol* s = r.names.find(tensor);
  if (!r.failed() && (!s || s->category != Category::tensor))
    r.fail("no tensor '" + tensor + "' in Args");
  for (const char* t : {".", "row", "("}) r.expect(t);
  if (r.failed()) return nullptr;
  std::vector<ExprPtr> at = r.list(")");
  if (r.failed()) return nullptr;
  at.push_back(name("j"));
  Expr read = *index(name(tensor), std::move(at));
  read.span = r.span(first);
  return std::make_shared<const Expr>(std::move(read));
}

// The other way round. The laws say that it is one read, and its last index j.
std::string write_row(CudaWriter& w, const ExprPtr& body) {
  if (body->kind != ExprKind::index || body->args.size() < 2 || !body->args.back()->is_name("j")) {
    w.fail("'" + print(body) + "' is not what a tensor has along a row");
    return "";
  }
  const std::vector<ExprPtr> at(body->args.begin() + 1, body->args.end() - 1);
  return w.expr(body->args[0], kPrimary) + ".row(" + w.list(at) + ")";
}

// Whether the lambda gives a row of a tensor, along which j counts.
bool reads_row(Op op) { return op == Op::set_tile || op == Op::set_line; }

bool read_lambda(Reader& r, const Stmt& stmt, Field& field) {
  Lambda lambda;
  const size_t first = r.at;
  if (!read_parameters(r, stmt, lambda)) return false;
  r.expect("{");
  r.expect("return");
  ExprPtr body = reads_row(stmt.op) ? read_row(r) : r.expr(kAny);
  r.expect(";");
  r.expect("}");
  r.parameters.clear();
  for (auto& [vector, parameter] : lambda.vectors) {
    r.expect(",");
    const ExprPtr given = r.operand(false);
    if (r.failed()) return false;
    const std::string local = vector;  // clang before 16 captures no structured binding
    const ExprPtr element = index(name(given->text), element_indices(r.names.find(given->text)));
    body = rewrite(body, [&](const ExprPtr& e) -> ExprPtr {
      return e->kind == ExprKind::index && e->args[0]->is_name(local) ? element : nullptr;
    });
    vector = given->text;
  }
  if (r.failed()) return false;
  r.lambda = std::move(lambda);
  field.items.push_back({"", "", body, r.span(first)});
  return true;
}

// Bare names that a body has in CUDA: a parameter of the same name would hide them.
void outer_names(const ExprPtr& e, std::set<std::string>& out) {
  if (e->kind == ExprKind::name) out.insert(e->text);
  if (e->kind == ExprKind::call) out.insert(e->text);
  for (const ExprPtr& a : e->args) outer_names(a, out);
}

std::string fresh(std::string wanted, const std::set<std::string>& taken) {
  for (int k = 2; taken.count(wanted); ++k) wanted = wanted.substr(0, 1) + std::to_string(k);
  return wanted;
}

Lambda choose_names(const std::string& target, const std::vector<std::string>& vectors,
                    const ExprPtr& body, const Lambda* wanted) {
  std::set<std::string> taken = {"i", "j", "args", "shared", "kw", "float"};
  outer_names(body, taken);
  // The map's own target and vectors appear as parameters only.
  taken.erase(target);
  for (const std::string& v : vectors) taken.erase(v);
  Lambda lambda;
  lambda.element = fresh(wanted ? wanted->element : "x", taken);
  taken.insert(lambda.element);
  for (const std::string& v : vectors) {
    std::string name = v.substr(0, 1);
    if (wanted)
      for (const auto& [vector, parameter] : wanted->vectors)
        if (vector == v) name = parameter;
    name = fresh(name, taken);
    taken.insert(name);
    lambda.vectors.push_back({v, name});
  }
  return lambda;
}

}  // namespace

bool read_map(Reader& r, const Stmt& stmt, Field& field) {
  if (r.cuda()) return read_lambda(r, stmt, field);
  const size_t first = r.at;
  ExprPtr body = r.expr(kAny);
  if (body) field.items.push_back({"", "", body, r.span(first)});
  return !r.failed();
}

std::string write_map(CudaWriter& w, const Stmt& stmt, const Field& field, const Lambda* lambda) {
  const ExprPtr& body = field.items.at(0).expr;
  const CoordinatesOf& coordinates = coordinates_of(stmt.op);
  const std::string target = target_of(stmt);
  const std::vector<std::string> vectors = vectors_of(body, target, w.names);
  MapBody map{target, stmt.op == Op::map_rows, coordinates.names,
              choose_names(target, vectors, body, lambda)};
  std::string parameters;
  if (has_element(stmt.op)) parameters += ", kw::real " + map.lambda.element;
  for (const std::string& n : coordinates.names) parameters += ", " + coordinates.type + " " + n;
  for (const auto& [vector, parameter] : map.lambda.vectors)
    parameters += ", " + type_of_element(w.names, vector) + " " + parameter;
  std::string text = "[&](" + (parameters.empty() ? "" : parameters.substr(2));
  w.map = &map;
  const bool row = reads_row(stmt.op);
  text += ") { return " + (row ? write_row(w, body) : w.expr(body)) + "; }";
  w.map = nullptr;
  for (const auto& [vector, parameter] : map.lambda.vectors) text += ", " + vector;
  return text;
}

}  // namespace kw::tl
