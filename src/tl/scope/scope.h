// Names and what they stand for.
//
// Scopes nest as blocks do: a block sees the names declared before it in the blocks around it.
// Arguments and shared tiles belong to the module. walk_scoped() visits every statement with the
// scope at its place:
//
//   walk_scoped(program, [&](const Stmt& s, const Scope& scope) {
//     if (s.op == Op::store) require(scope.find(s.src()->text)->category == ...);
//   });
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tl/program.h"
#include "tl/scope/intervals.h"

namespace kw::tl {

enum class Category {
  param,      // integer constant of the module
  toggle,     // boolean constant of the module
  size,       // argument: a positive int
  scalar,     // argument: i32 or f32
  tiled,      // argument: a tensor moved tile by tile
  tensor,     // argument: a tensor read and written element by element
  workspace,  // argument: words that are zero between launches
  scratch,    // argument: words that the pre-pass writes and the kernel reads
  tile,       // a shared tile, or an array of them
  ring,       // a shared ring of tiles, or an array of them
  row_ring,   // a shared ring of row vectors
  barrier,    // a ring of barriers
  queue,
  record,
  def,  // a function of scalars
  kernel,
  step,
  local,        // an int, real, bool or record
  accumulator,  // 64 rows in registers ...
  operand,
  row,       // one value a row
  column,    // one value a column, divided among the lanes of a warp
  diagonal,  // one value for each distance j - i of a tile, likewise
  lane_sum,  // one value a row, each lane its share
  line,      // a whole row of a tensor, one value a column, in all of a warpgroup's registers
};
std::string_view word(Category category);  // "a shared tile", for messages

struct Type {
  enum Kind { unknown, integer, real, boolean, record, row, tile } kind = unknown;
  std::string name;  // of a record
  bool operator==(const Type&) const = default;
};

struct Symbol {
  std::string name;
  Category category = Category::local;
  Type type;                      // of the value: of a tensor its elements', of a def its result's
  std::string element;            // TL element type of tensors and tiles: element, real, f32, i32
  std::vector<ExprPtr> shape;     // tiles: rows, columns; row vectors: rows
  std::vector<std::string> dims;  // tensors: the letters
  bool scratch = false;           // of a tensor: the pre-pass writes it
  bool written = false;           // tensors: `out`
  ExprPtr extent;                 // tile q_s[WARPGROUPS]: how many
  ExprPtr count;             // slots of a ring, barrier or queue; words of a workspace, a scratch
  ExprPtr arrivals;          // of a barrier; takers of a queue; of one CTA where there are more
  ExprPtr ctas;              // of a cluster's barrier or queue: how many; else null
  ExprPtr value;             // initial value, where one is written
  std::vector<Item> params;  // of a def or step
  std::vector<std::string> fields;  // of a record
  Interval range;                   // of an integer
  const Stmt* stmt = nullptr;       // the declaring statement, inside the program
  Span span;                        // of the name
};

// Whether it has elements that an expression may read: an argument that is no tile's tensor, or
// what the kernel left for a pass behind it. The laws say where.
inline bool has_elements(const Symbol& s) {
  return s.category == Category::tensor || s.category == Category::scratch ||
         (s.category == Category::tiled && s.scratch);
}

class Scope {
 public:
  explicit Scope(const Scope* outer = nullptr) : outer_(outer) {}

  // The innermost declaration of a name, or null.
  const Symbol* find(std::string_view name) const;
  // Only in this very scope.
  const Symbol* find_here(std::string_view name) const;
  const Scope* outer() const { return outer_; }
  const std::vector<Symbol>& symbols() const { return symbols_; }

  void add(Symbol symbol) { symbols_.push_back(std::move(symbol)); }

 private:
  const Scope* outer_;
  std::vector<Symbol> symbols_;
};

// What one item of a declaring statement declares.
Symbol symbol_of(const Stmt& stmt, const Item& item, const Scope& scope);
// Adds the names that a statement declares for the statements after it; for args: and shared:
// those of their members.
void declare(Scope& scope, const Stmt& stmt);
// Adds the names that it declares for its own block: parameters, counters, a warpgroup's number.
void declare_inside(Scope& scope, const Stmt& stmt);

// Every statement with the scope before it, parents first. The scope lives as long as the call.
void walk_scoped(const Program& program,
                 const std::function<void(const Stmt&, const Scope&)>& visit);

// Every expression of the statement's holes with the scope in which it is read: among several names
// declared with values, a later value sees the earlier names.
void each_expr(const Stmt& stmt, const Scope& scope,
               const std::function<void(const ExprPtr&, const Scope&)>& visit);

// The type of an expression's value; unknown where a name is, or where operands disagree. In a map
// body, elements of accumulators and row vectors are real, the names i and j are what `scope` says.
Type type_of(const ExprPtr& e, const Scope& scope);

// What a scalar of that type is in an expression: i32, i64, size and index are integers, real, f32
// and the 16-bit types reals; any other name is a record's.
Type scalar_type(const std::string& name);

// What an element of a vector or an operand is read at in a map: v[i] of a row, v[j] of a column or
// a line, v[j - i] of a diagonal vector, b[i, j] of an operand. Empty for anything else.
std::vector<ExprPtr> element_indices(const Symbol* s);
// Whether e, an index node, has just these.
bool is_at(const Expr& e, const std::vector<ExprPtr>& indices);

}  // namespace kw::tl
