// tune: the constants of one kernel, tried for one specification on one kind of GPU.
//
// In two halves, because the machine that compiles need not have the GPU:
//
//   FOLDER/  tune.json  candidates/NN/{kernel.cu, kernel.cubin, launch.json}  prove.json  prove/
//            times.json   once a GPU has timed them (kernelwright-tune-time FOLDER)
//            tiles.json   the tile database with the row that won
//
// With a GPU here both halves run; else the second is `tune FOLDER` again, once times.json is
// there.
#pragma once
#include <map>
#include <string>

#include "driver/make/make.h"

namespace kw::driver {

struct TuneOptions {
  std::string spec;  // a specification as `make` takes it, or a FOLDER of an earlier run
  std::string function, dtype;
  std::string target = "sm_90a";
  std::string out;    // empty: out/NAME.tune
  std::string tiles;  // the database that the row goes to; empty: FOLDER/tiles.json
  std::string times;  // of a FOLDER: the file of times; empty: FOLDER/times.json
  std::string shape;  // "B=1,H=16,M=16384,N=16384"
  int jobs = 1, keep = 12;
};

Exit tune(const TuneOptions& options, const Say& say, Diagnostics& diagnostics);

}  // namespace kw::driver
