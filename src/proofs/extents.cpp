#include "proofs/extents.h"

#include <fmt/format.h>

#include <algorithm>

namespace kw::proofs {

Extents of_user(const spec::Form& form, const std::map<std::string, Term>& sizes) {
  Extents out;
  for (const spec::Argument& a : form.arguments)
    for (const spec::Size& size : a.dims)
      out[a.name].push_back(size.name.empty() ? Term::number(size.constant).text
                                              : sizes.at(size.name).text);
  return out;
}

Extents of_kernel(const spec::Form& form, const std::map<std::string, Term>& sizes) {
  Extents out = of_user(form, sizes);
  for (const spec::Term& term : form.terms)
    for (const spec::Operand* o : spec::operands(term)) {
      const auto own = out.find(o->argument);
      if (own == out.end() || own->second.size() != o->indices.size()) continue;
      std::vector<std::string> ordered;
      for (const std::vector<const char*>& index :
           std::vector<std::vector<const char*>>{{"b"}, {"h"}, {"i", "j"}, {"d"}})
        for (size_t n = 0; n < o->indices.size(); ++n)
          if (std::any_of(index.begin(), index.end(), [&](const char* name) {
                return spec::mentions(o->indices[n], spec::Kind::index, name);
              }))
            ordered.push_back(own->second[n]);
      own->second = std::move(ordered);
    }
  return out;
}

std::vector<std::string> same_sizes(const Extents& program, const Extents& tensors) {
  std::vector<std::string> out;
  for (const auto& [tensor, dims] : program) {
    const auto of = tensors.find(tensor);
    if (of == tensors.end() || dims.size() != of->second.size()) continue;
    for (size_t d = 0; d < dims.size(); ++d)
      if (!dims[d].empty() && dims[d] != of->second[d])
        out.push_back(fmt::format("(= {} {})", dims[d], of->second[d]));
  }
  return out;
}

std::string bounded(const std::vector<std::string>& premises, const Vocabulary& vocabulary,
                    const std::map<std::string, Long>& sizes, const Solver& solver) {
  constexpr int64_t kLong = 100'000;
  constexpr int kEffort = 100'000;
  for (const auto& [name, size] : sizes) {
    Question q;
    q.declarations = vocabulary.declarations();
    q.premises = premises;
    q.claim = fmt::format("(< {} {})", size.size.text, std::min(kLong, size.most));
    if (solver.ask(q, kEffort).answer == Answer::proved) return name;
  }
  return "";
}

}  // namespace kw::proofs
