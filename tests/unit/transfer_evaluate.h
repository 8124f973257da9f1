// TL expressions evaluated with numbers, for tests that hold what the rules wrote against the form.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tl/program.h"

namespace kw::transfer {

struct Values {
  std::map<std::string, double> names;  // "N", "i", "c.m"
  std::function<double(const std::string& tensor, const std::vector<int64_t>& at)> read;
  const tl::Program* program = nullptr;  // whose functions may be called; call() sets it
};

// Throws std::runtime_error for a name without a value.
double evaluate(const tl::ExprPtr& e, const Values& values);

// Runs the lets and the return of a def's body, whose parameters have values; what it returns.
std::vector<double> call(const tl::Program& program, const std::string& def, Values values);

// The same of a function of key ranges: the fields of its record by name.
std::map<std::string, double> fields_of(const tl::Program& program, const std::string& def,
                                        const Values& values);

// Whether the program has a function of this name.
bool has_function(const tl::Program& program, const std::string& def);

// The condition under which the mask of the softmax step keeps a score; its reads are in `values`
// through the lets of the consumers' loop, and those of the mask for the tile at i0 and key block
// n.
double mask_keeps(const tl::Program& program, Values values);

}  // namespace kw::transfer
