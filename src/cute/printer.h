// What the parts of the printer share: the text so far, where in the program it is, and refusals.
#pragma once
#include <fmt/format.h>

#include <string>

#include "cute/expr.h"
#include "lower/launch_plan.h"
#include "tl/program.h"
#include "tl/scope/scope.h"

namespace kw::cute {

// What the program's element type and its target ask for.
struct Atoms {
  std::string product;  // MMA atom
  std::string copy;     // copy atom from global to shared memory
  std::string store;    // copy atom of an accumulator's way to shared memory
  bool hopper = false;  // the program is of Hopper's kind: the copy engine, products under way
};

class Printer {
 public:
  Printer(const tl::Program& program, const lower::LaunchPlan& plan, Atoms atoms,
          Diagnostics& diagnostics)
      : program_(program),
        plan_(plan),
        atoms_(std::move(atoms)),
        hopper_(atoms_.hopper),
        diagnostics_(diagnostics) {}

  // The whole text, or what there is of it when something was refused.
  std::string program_text();

 private:
  using Stmt = tl::Stmt;
  using Scope = tl::Scope;

  // cute.cpp
  void block(const std::vector<Stmt>& body, Scope& scope);
  void statement(const Stmt& s, const Scope& scope);
  bool control(const Stmt& s, const Scope& scope);
  void braces(const Stmt& s, const Scope& scope, const std::string& close = "}");
  void kernel(const Stmt& s, const Scope& scope);
  void lists_kernel(const Stmt& s, const Scope& scope);
  void refuse(const Stmt& s, const std::string& why);
  // A line at the present depth. Expressions come through text(), which notes what they lack.
  void line(const std::string& text);
  std::string text(const Stmt& s, const Scope& scope, const tl::ExprPtr& e, int low = 0);

  // head.cpp
  bool head(const Stmt& s, const Scope& scope);
  void arguments(const Stmt& args, const Scope& scope);
  void shared(const Stmt& shared, const Scope& scope);
  void shared_views(const Scope& scope);

  // statements.cpp
  bool declaration(const Stmt& s, const Scope& scope);
  bool whole_tiles(const Stmt& s, const Scope& scope);
  std::string tile(const Stmt& s, const Scope& scope, const tl::ExprPtr& e);
  // "b, h, row" of a copy.
  std::string coordinates(const Stmt& s, const Scope& scope);

  // The tile as instructions of single warps take it.
  std::string warp_tile(const Stmt& s, const Scope& scope, const tl::ExprPtr& e);
  static bool is_operand(const Scope& scope, const tl::ExprPtr& e);

  // hopper.cpp
  struct Use {
    std::string ring, count;  // shared.k_full and t of k_full[t]
  };
  Use use(const Stmt& s, const Scope& scope, const tl::ExprPtr& e);
  // A product has as many columns as one wgmma of CUTLASS's extended set.
  bool needs_extended_shapes() const;
  bool hopper_shared(const Stmt& s, const Scope& scope);
  bool hopper_control(const Stmt& s, const Scope& scope);
  bool hopper_statement(const Stmt& s, const Scope& scope);

  // maps.cpp
  bool map(const Stmt& s, const Scope& scope);
  void map_tile(const Stmt& s, const Scope& scope);
  void set_vector(const Stmt& s, const Scope& scope);
  void map_rows(const Stmt& s, const Scope& scope);
  void origin(const Stmt& s, const Scope& scope);
  std::string body(const Stmt& s, const Scope& scope, const MapBody& map);
  std::string shape(const Stmt& s, const Scope& scope, const tl::Symbol& symbol);

  const tl::Program& program_;
  const lower::LaunchPlan& plan_;
  const Atoms atoms_;
  const bool hopper_;
  Diagnostics& diagnostics_;
  std::string out_;
  int depth_ = 0;
};

}  // namespace kw::cute
