#include "operator/graph/graph.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace kw::spec {
namespace {

using Json = nlohmann::json;

// Nothing that PyTorch exports is nested deeper.
constexpr int kDeepest = 50;

void limit(int depth) {
  if (depth > kDeepest) throw std::invalid_argument("a value is nested too deeply");
}

// A number of digits that no int holds is a double to the JSON library.
int int_of(const Json& json) {
  const int64_t n = json.is_number_integer() ? json.get<int64_t>() : -1;
  if (n < 0 || n > std::numeric_limits<int>::max())
    throw std::invalid_argument(json.dump() + " is no place or line");
  return static_cast<int>(n);
}

// ["+", "s1", 3] over symbols; see graph.py.
ExprPtr read_size(const Json& json, int depth = 0) {
  limit(depth);
  if (json.is_number_integer()) return integer(json.get<int64_t>());
  if (json.is_number()) return real(json.get<double>());
  if (json.is_string()) return leaf(Kind::size, Type::integer, json.get<std::string>());
  const std::string op = json.at(0);
  if (op == "real") return real(json.at(1).get<double>());
  ExprPtr out = read_size(json.at(1), depth + 1);
  if (json.size() == 2) return unary(op, out);
  for (size_t n = 2; n < json.size(); ++n) out = binary(op, out, read_size(json.at(n), depth + 1));
  return out;
}

double read_number(const Json& json) {
  if (!json.is_object()) return json.is_boolean() ? json.get<bool>() : json.get<double>();
  const std::string text = json.at("number");
  return text == "nan" ? NAN : text == "inf" ? HUGE_VAL : -HUGE_VAL;
}

struct GraphReader {
  Graph& graph;
  std::map<std::string, int> numbers;  // of nodes, by name

  Value value(const Json& json, int depth = 0) const {
    limit(depth);
    Value out;
    if (json.is_boolean()) {
      out.kind = Value::Kind::boolean;
      out.integer = json.get<bool>();
      out.real = static_cast<double>(out.integer);
    } else if (json.is_number_integer()) {
      out.kind = Value::Kind::integer;
      out.integer = json.get<int64_t>();
      out.real = static_cast<double>(out.integer);
    } else if (json.is_number() || (json.is_object() && json.contains("number"))) {
      out.kind = Value::Kind::real;
      out.real = read_number(json);
    } else if (json.is_string()) {
      out.kind = Value::Kind::text;
      out.text = json;
    } else if (json.is_array()) {
      out.kind = Value::Kind::list;
      for (const Json& item : json) out.list.push_back(value(item, depth + 1));
    } else if (json.is_object() && json.contains("node")) {
      out.kind = Value::Kind::node;
      out.node = numbers.at(json.at("node"));
    } else if (json.is_object() && json.contains("size")) {
      out.kind = Value::Kind::size;
      out.size = read_size(json.at("size"));
    } else if (json.is_object() && json.contains("dtype")) {
      out.kind = Value::Kind::dtype;
      out.dtype = dtype_named(json.at("dtype").get<std::string>()).value_or(Dtype::f32);
    }
    return out;
  }

  void argument(const Json& json) {
    Argument a;
    a.name = json.at("name");
    a.dtype = dtype_named(json.at("dtype").get<std::string>()).value();
    a.is_tensor = json.at("tensor");
    for (const Json& d : json.at("stride_order")) a.stride_order.push_back(int_of(d));
    if (!a.is_tensor) a.value = read_number(json.at("value"));
    a.span = graph.line(int_of(json.at("line")), int_of(json.at("column")));
    a.span.end = a.span.begin + static_cast<uint32_t>(a.name.size());
    Node node{a.name, "argument", ""};
    node.dtype = a.dtype;
    node.span = a.span;
    for (const Json& d : json.at("dims")) node.shape.push_back(read_size(d));
    graph.arguments.push_back(std::move(a));
    numbers[json.at("node")] = graph.add(std::move(node));
  }

  void node(const Json& json) {
    Node n;
    n.name = json.at("name");
    std::string op = json.at("op");
    if (op.rfind("aten.", 0) == 0) op = op.substr(5);
    const size_t dot = op.find('.');
    n.op = op.substr(0, dot);
    if (dot != std::string::npos) n.overload = op.substr(dot + 1);
    for (const Json& a : json.at("args")) n.args.push_back(value(a));
    for (const auto& [key, a] : json.at("kwargs").items()) n.kwargs[key] = value(a);
    n.dtype = dtype_named(json.at("dtype").get<std::string>()).value_or(Dtype::f32);
    for (const Json& d : json.at("shape")) n.shape.push_back(read_size(d));
    if (json.at("line").is_number())
      n.span = graph.line(int_of(json.at("line")), int_of(json.at("column")));
    const std::string name = n.name;
    numbers[name] = graph.add(std::move(n));
  }
};

Form::Heads heads_named(const std::string& word) {
  if (word == "any") return Form::Heads::any;
  if (word == "grouped") return Form::Heads::grouped;
  if (word == "own") return Form::Heads::own;
  throw std::invalid_argument(fmt::format("heads are '{}', not any, grouped or own", word));
}

}  // namespace

bool Value::is_number() const {
  return kind == Kind::boolean || kind == Kind::integer || kind == Kind::real;
}

ExprPtr Value::expr() const {
  if (kind == Kind::size) return size;
  if (kind == Kind::boolean) return spec::boolean(integer != 0);
  if (kind == Kind::integer) return spec::integer(integer);
  if (kind == Kind::real) return spec::real(real);
  return nullptr;
}

const Value& Node::arg(size_t position, const char* name) const {
  static const Value none;
  if (position < args.size()) return args[position];
  const auto found = kwargs.find(name);
  return found == kwargs.end() ? none : found->second;
}

int64_t Node::integer(size_t position, const char* name, int64_t otherwise) const {
  const Value& v = arg(position, name);
  return v.is_number() ? v.integer : otherwise;
}

int Graph::add(Node node) {
  nodes.push_back(std::move(node));
  return static_cast<int>(nodes.size()) - 1;
}

Span Graph::line(int line, int column) const {
  size_t begin = 0;
  for (int n = 1; n < line && begin < source->text.size(); ++n) {
    const size_t newline = source->text.find('\n', begin);
    if (newline == std::string::npos) break;
    begin = newline + 1;
  }
  const std::string_view text = line_of(*source, line);
  size_t from = column - 1;
  if (column == 1) {
    from = text.find_first_not_of(" \t");
    if (from == std::string_view::npos) from = 0;
  }
  return {source, static_cast<uint32_t>(begin + from), static_cast<uint32_t>(begin + text.size())};
}

std::optional<Graph> parse_graph(const SourcePtr& json_text, const SourcePtr& user,
                                 Diagnostics& diagnostics) {
  const Json json = Json::parse(json_text->text, nullptr, false);
  const auto refuse = [&](const std::string& why) {
    diagnostics.error("spec.capture", {}, fmt::format("{}: {}", json_text->name, why)).hint =
        "capture the spec again";
    return std::nullopt;
  };
  if (json.is_discarded()) return refuse("this is no JSON, or ends early");
  Graph graph;
  GraphReader reader{graph, {}};
  try {  // nlohmann::json says what is missing by an exception; it goes no further than here
    graph.name = json.at("name");
    graph.dtype = dtype_named(json.at("dtype").get<std::string>()).value();
    graph.source = make_source(json.at("file"), user->text);
    graph.span = graph.line(int_of(json.at("line")));
    for (const Json& a : json.at("arguments")) reader.argument(a);
    for (const Json& n : json.at("nodes")) reader.node(n);
    for (const Json& o : json.at("outputs")) graph.outputs.push_back(reader.numbers.at(o));
    graph.built_in = json.value("built_in", graph.built_in);
    graph.heads = heads_named(json.value("heads", "any"));
    graph.training = training_of(json.value("training", ""));
    for (const Json& n : json.at("notes")) {
      const Span span = n.at("line").is_number() ? graph.line(int_of(n.at("line"))) : Span{};
      graph.notes.push_back({n.at("message"), span});
    }
  } catch (const std::exception& error) {
    return refuse(error.what());
  }
  return graph;
}

std::optional<Graph> read_graph(const std::filesystem::path& folder, Diagnostics& diagnostics) {
  const SourcePtr text = read_source((folder / "graph.json").string());
  const SourcePtr user = read_source((folder / "source.py").string());
  if (text && user) return parse_graph(text, user, diagnostics);
  diagnostics.error("spec.capture", {},
                    fmt::format("{} is not a captured spec: it has no {}", folder.string(),
                                text ? "source.py" : "graph.json"));
  return std::nullopt;
}

Type type_of(Dtype dtype) {
  if (dtype == Dtype::boolean) return Type::boolean;
  return is_float(dtype) ? Type::real : Type::integer;
}

}  // namespace kw::spec
