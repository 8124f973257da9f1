// Forms from text (transfer_form.h) of which programs can run: arguments have dimensions, and there
// are as many heads as asked for, four to a key head.
#pragma once
#include "transfer_form.h"

namespace kw::test {

inline spec::Form with_heads(spec::Form form, int64_t heads) {
  form.H.constant = heads;
  form.G.constant = heads / 4;
  for (spec::Argument& a : form.arguments) {
    if (a.name == "q") a.dims = {form.B, form.H, form.M, form.D};
    if (a.name == "k" || a.name == "v") a.dims = {form.B, form.G, form.N, form.D};
    if ((a.name == "k" || a.name == "v") && form.N.times > 1)  // in pages
      a.dims = {{"P", 0}, form.G, {"", form.N.times}, form.D};
    for (spec::Size& size : a.dims)
      if (a.name == "slopes") size.constant = heads;
  }
  return form;
}

// A product "product\n..." likewise: of any batch, rows, columns and depth.
inline spec::Form with_sizes(spec::Form form) {
  for (spec::Argument& a : form.arguments) {
    if (a.name == "a") a.dims = {form.B, form.H, form.M, form.D};
    if (a.name == "b") a.dims = {form.B, form.H, form.D, form.N};
  }
  return form;
}

}  // namespace kw::test
