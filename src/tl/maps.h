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
// The lambda's parameters are the element (but of what sets), the coordinates where the map has
// them, and a value for each vector and each operand; these stand in the order of their first
// mention in the body. What the parameters are called (but for coordinates) is the CUDA text's own
// business. That of set_tile gives rows, along which j counts.
#pragma once
#include "tl/reader.h"
#include "tl/table.h"
#include "tl/writer.h"

namespace kw::tl {

// Whether the lambda is given the element as it is: not where a vector, a tile or a row is set, or
// columns are added up. False of these alone, true of every other statement.
bool has_element(Op op);

bool read_map(Reader& reader, const Stmt& stmt, Field& field);
std::string write_map(CudaWriter& writer, const Stmt& stmt, const Field& field,
                      const Lambda* lambda);

}  // namespace kw::tl
