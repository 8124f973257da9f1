#include "check/family.h"

#include "operator/family.h"

namespace kw::check {

namespace families {
#define FAMILY(word) const Family& word();
#include "operator/families.def"
}  // namespace families

const Family& Family::of(const spec::Form& form) {
  switch (spec::family_of(form)) {
#define FAMILY(word)           \
  case spec::FamilyName::word: \
    return families::word();
#include "operator/families.def"
  }
  return families::attention();
}

bool Family::rounds_between(const spec::Form& form) const {
  bool any = false;
  spec::Form copy = form;
  spec::Family::of(form).each_operand(copy,
                                      [&](spec::Operand& o) { any = any || o.row.has_value(); });
  return any;
}

Tensor operand_of(const spec::Operand& operand, const spec::Problem& problem,
                  const spec::Form& form, const char* row, int64_t rows, const char* column,
                  int64_t columns) {
  const Tensor& from = problem.tensors.at(operand.argument);
  auto stride = spec::strides_of(operand, from);
  const int64_t B = stride.count("b") ? spec::value_of(form.B, problem.sizes) : 1,
                H = stride.count("h") ? form.H.constant : 1;
  Tensor to(from.dtype, {B, H, rows, columns});
  double* out = to.values.data();
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
          *out++ =
              from.values[b * stride["b"] + h * stride["h"] + r * stride[row] + c * stride[column]];
  return to;
}

}  // namespace kw::check
