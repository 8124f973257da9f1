// The hole of the maps: in TL the body alone, in CUDA a lambda and the vectors it is given.
//
//   map s[i, j] = exp2(fma(s[i, j], scale, -offset[i]))
//   kw::map(s, [&](kw::real x, kw::real o) { return kw::exp2(kw::fma(x, args.scale, -o)); },
//   offset)
//
//   set_columns d[j] from n * BN = document[c.b, j]
//   kw::set_columns(d, n * BN, [&](int j) { return args.document(c.b, j); });
//
//   set_diagonals near[d] from (i0, n * BN) = table[c.h, d + 128]
//   kw::set_diagonals(near, kw::Origin{i0, n * BN}, [&](int d) { return args.table(c.h, d + 128);
//   });
//
//   set_tile b[i, j] from (i0, n * BN) = bias[0, c.h, i, j]
//   kw::set_tile(b, kw::Origin{i0, n * BN}, [&](int i) { return args.bias.row(0, c.h, i); });
//
//   map_line y_r[j] = x_r[j] * factor
//   kw::map_line(y_r, [&](kw::real x) { return x * factor; }, x_r)
//
// The lambda's parameters are the element (but of what sets), the coordinates where the map has
// them, and a value for each vector and each operand; these stand in the order of their first
// mention in the body. What the parameters are called (but for coordinates) is the CUDA text's own
// business. Those of set_tile and set_line give rows, along which j counts. That of map_line is
// given the target's element only where the body reads it.
#pragma once
#include "tl/syntax/reader.h"
#include "tl/syntax/table.h"
#include "tl/syntax/writer.h"

namespace kw::tl {

bool read_map(Reader& reader, const Stmt& stmt, Field& field);
std::string write_map(CudaWriter& writer, const Stmt& stmt, const Field& field,
                      const Lambda* lambda);

}  // namespace kw::tl
