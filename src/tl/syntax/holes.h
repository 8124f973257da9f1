// Holes of ops.def: each kind read and written in both spellings.
#pragma once
#include <string>

#include "tl/syntax/reader.h"
#include "tl/syntax/table.h"
#include "tl/syntax/writer.h"

namespace kw::tl {

// Reads one hole into `field`; `stmt` holds the fields read so far. False after reader.fail().
bool read_hole(Reader& reader, const std::string& kind, const Stmt& stmt, Field& field);

std::string write_tl_hole(const std::string& kind, const Field& field);

// `lambda`: names for the parameters of a map, used as far as they can be. Failure is in `writer`.
std::string write_cuda_hole(CudaWriter& writer, const std::string& kind, const Stmt& stmt,
                            const Field& field, const Lambda* lambda);

}  // namespace kw::tl
