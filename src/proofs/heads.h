// Numbers of heads: a kernel is made of a function that was called with some, and launched with
// others.
//
// Where a function uses heads alike (spec::heads_are_alike), it means something for any numbers of
// them: each query head has the key head h // (H // G). A program is proved for all of them at
// once, with symbols in the place of the form's numbers; or for as many heads a group as the form
// has; or for the form's own numbers. What is less than all is a condition of every launch.
#pragma once
#include <cstdint>
#include <string>

#include "operator/form.h"

namespace kw::proofs {

enum class Heads {
  own,      // the form's numbers
  grouped,  // G is a symbol, and H is the form's ratio times that
  any,      // H and G are, and so is how many heads share a key head
};

namespace heads {
// Sizes of a form, and symbols.
inline constexpr char kQueries[] = "heads.q", kKeys[] = "heads.k", kRatio[] = "heads.ratio";
// Among a program's letters, what `H // G` is.
inline constexpr char kLetter[] = "H // G";
// As many heads a group as gradients are proved for.
inline constexpr int64_t kMostOfAGroup = 1024;
}  // namespace heads

// Whether the function means the same for other numbers of heads than the form's.
bool may_vary(const spec::Form& form);

// The form with symbols for heads: in its sizes, in the extents of its arguments, and where an
// operand of keys is read at the head of a query.
spec::Form with_heads(const spec::Form& form, Heads which);

// Whether a term asks for how many heads there are.
bool counts_heads(const std::string& term);

}  // namespace kw::proofs
