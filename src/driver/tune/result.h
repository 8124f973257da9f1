// From a GPU's times to a row of the tile database.
#pragma once
#include <filesystem>
#include <string>

#include "runtime/tune/choice.h"
#include "transfer/tile_database.h"

namespace kw::driver {

// What tune.json says beside the candidates: which case of which kernel they are for.
struct TuneFacts {
  std::string spec, target, dtype;
  int64_t dim = 0, value_dim = 0;
  transfer::Keys keys = transfer::Keys::any;
  std::vector<runtime::TuneCandidate> candidates;
  std::vector<std::vector<transfer::Constant>> constants;  // of each
};

// Writes FOLDER/tune.json. False when it cannot.
bool write_tune_facts(const std::filesystem::path& folder, const TuneFacts& facts);
// Reports tune.json by the field.
std::optional<TuneFacts> read_tune_facts(const std::filesystem::path& folder,
                                         Diagnostics& diagnostics);

// The row of the fastest candidate; `why` has the figure, the GPU, the date and the runner-up.
transfer::Tiles row_of(const TuneFacts& facts, const runtime::TuneTimes& times,
                       const runtime::TuneChoice& choice);

// Puts a row into a database: in the place of the first for the same target, dimensions and keys,
// else in front of all. The others stay as they are.
void merge(transfer::TileDatabase& database, const transfer::Tiles& row);

// The same in a file, which need not be there yet. Reports tiles.* and tune.write.
bool merge_into(const std::string& file, const transfer::Tiles& row, Diagnostics& diagnostics);

}  // namespace kw::driver
