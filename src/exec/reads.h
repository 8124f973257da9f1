// Elements of tensor arguments, read one by one: `prefix[c.b]`, and in maps `document[c.b, j]`.
#pragma once
#include "exec/machine.h"

namespace kw::exec {

// A tensor that is read element by element; null after a fault.
const Global* readable_tensor(const Context& c, const std::string& name);

// Element `offset` of it, as a scalar; the only value of a tensor that has one for all. An i64 that
// no int holds is a fault.
Value element_at(const Context& c, const std::string& name, const Global& tensor, int64_t offset);

// A word of a scratch: `visits[3]`.
Value word_of_scratch(const Context& c, const tl::Expr& e);
// least(document, b, b, i0, i1) and greatest: of all elements whose indices lie between those two,
// of each dimension, ends included. An index outside of a dimension reads its last element.
Value least_or_greatest(const Context& c, const tl::Expr& e);

}  // namespace kw::exec
