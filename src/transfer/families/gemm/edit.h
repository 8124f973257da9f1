// A transfer of a product of matrices under way: the program being changed, and its places, which
// are found by structure: the product is what is added to the accumulator that is stored, its
// operands are what the copies fill that it reads, the output is where the tile goes that it is
// stored in.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "transfer/families/gemm/places.h"
#include "transfer/transfer.h"

namespace kw::transfer::gemm {

class Edit {
 public:
  Edit(const tl::Program& source, const spec::Form& form, const Target& target,
       Diagnostics& diagnostics);

  const spec::Form& form;
  const Target& target;
  Diagnostics& diagnostics;
  Result result;
  ProductFacts f;
  bool right_rows = false;      // the right side is read [N, K]
  bool has_right_rows = false;  // and the kernel does so
  std::set<std::string> taken;
  std::map<std::string, std::string> letters, names;  // the user's: the kernel's

  // The places, and what kind of product it is. Refuses transfer.kernel.
  bool find_facts();

  // Refuses: always false.
  bool refuse(const char* code, const Span& where, const std::string& what,
              const std::string& hint = {});
  bool condition(const std::string& holds, const std::string& why);

  // Puts the statement of this TL text at a place (before what stands there).
  bool insert(Found at, const std::string& text);
  // The store of the accumulator.
  Found store_place();

  // Binds the kernel's argument `name` to the user's that is read at these indices.
  bool bind(const spec::Operand& operand, const std::string& name, const std::string& row,
            const std::string& column);
  // The user's dimension for each of an output's: b, h, i, and j of the matrix; -1 where it has
  // none.
  std::vector<int> dims_of_output(bool columns) const;

  // A name that the program has not; a letter for a size.
  std::string fresh(const std::string& name);
  std::string fresh_letter();
  // Adds an argument behind those of the kind `after`; those that an expression reads.
  bool add_argument(tl::Op after, const std::string& text);
  bool add_arguments(const spec::ExprPtr& e);
  std::string letter_of(const spec::Size& size, const spec::ExprPtr& index);
  // An expression of the form in the kernel's names.
  spec::ExprPtr renamed(const spec::ExprPtr& e) const;
  // What becomes of zeros beyond the last column may be another value.
  std::string nothing_beyond_columns() const;
};

}  // namespace kw::transfer::gemm
