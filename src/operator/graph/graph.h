// The graph that PyTorch exported, as python/kernelwright/capture/graph.py wrote it: ATen operators
// in the order of execution, with symbolic shapes and the user's lines.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/expr/expr.h"
#include "operator/form.h"
#include "support/diagnostic.h"

namespace kw::spec {

// An operand of a node.
struct Value {
  enum class Kind { none, boolean, integer, real, text, node, size, dtype, list };
  Kind kind = Kind::none;
  int64_t integer = 0;  // boolean, integer
  double real = 0;      // real; also set for integer
  std::string text;     // text
  int node = -1;        // node: its number
  ExprPtr size;         // size: an expression over Kind::size leaves
  Dtype dtype = Dtype::f32;
  std::vector<Value> list;

  bool is_number() const;
  // A number or a size as an expression; null for anything else.
  ExprPtr expr() const;
};

struct Node {
  std::string name;
  std::string op;        // "softmax" of aten.softmax.int; "argument" and "constant" for inputs
  std::string overload;  // "int"
  std::vector<Value> args;
  std::map<std::string, Value> kwargs;
  Dtype dtype = Dtype::f32;
  std::vector<ExprPtr> shape;
  Span span;

  int rank() const { return static_cast<int>(shape.size()); }
  // args[position], else kwargs[name], else `none`.
  const Value& arg(size_t position, const char* name = "") const;
  int64_t integer(size_t position, const char* name, int64_t otherwise) const;
};

struct Graph {
  std::string name;
  Dtype dtype = Dtype::bf16;
  SourcePtr source;  // the user's file
  Span span;         // the function
  std::vector<Argument> arguments;
  std::vector<Node> nodes;
  std::vector<int> outputs;
  Training training = Training::none;
  std::vector<std::string> built_in;  // Form::built_in
  Form::Heads heads = Form::Heads::any;
  std::vector<Note> notes;

  int add(Node node);
  // The first `length` bytes at a line of the user's file; to its end when length is 0.
  Span line(int line, int column = 1) const;
};

// From the text of graph.json and of the user's file; read_graph() finds both in a folder.
std::optional<Graph> parse_graph(const SourcePtr& json, const SourcePtr& user,
                                 Diagnostics& diagnostics);
std::optional<Graph> read_graph(const std::filesystem::path& folder, Diagnostics& diagnostics);

Type type_of(Dtype dtype);

}  // namespace kw::spec
