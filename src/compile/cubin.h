// The audit of a cubin: what device code brings along, read from its ELF image.
//
// Generated code is trusted to compute, not to be well behaved. A cubin that passes holds the
// expected entries and nothing else that could act or remember:
//   cubin.not_elf      the image is an ELF file for CUDA, complete, of the expected architecture
//   cubin.entries      its entry functions are exactly those of the module
//   cubin.global       no variable in global memory: state between launches lives in workspaces
//                      that the launcher owns. Constants that no instruction names are excepted.
//   cubin.undefined    no function or variable is left to be found elsewhere: vprintf, malloc,
//                      __assertfail, a device-side launch
//   cubin.relocation   nothing is patched with the address of such a symbol
//   cubin.parameters   the entry takes one argument struct of the size that the launcher packs
//
// The format is that of the System V ABI; the CUDA parts (section names, EIATTR records) are not
// published by NVIDIA and were read from binaries of CUDA 12 and 13 with readelf and cuobjdump.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace kw::runtime {

struct CubinEntry {
  std::string name;
  int registers = 0;        // a thread, at launch
  int parameter_bytes = 0;  // of all parameters
  int shared_bytes = 0;     // static
  int code_bytes = 0;
};

struct Cubin {
  int architecture = 0;  // 90 for sm_90 and sm_90a
  std::vector<CubinEntry> entries;
};

// What `image` holds. Reports cubin.not_elf and returns nothing when it is no cubin.
std::optional<Cubin> read_cubin(std::string_view image, Diagnostics& diagnostics);

struct CubinExpectation {
  std::string target;                     // "sm_90a"; the letter is not recorded in the image
  std::vector<std::string> entries;       // in any order
  std::vector<std::string> dead_globals;  // names that the PTX shows to be unused constants
  std::optional<int> parameter_bytes;     // of every entry, when known
};

// Reads `image` and reports everything that differs from the expectation. Returns what it holds
// when it could be read at all; it passes when nothing was reported.
std::optional<Cubin> audit_cubin(std::string_view image, const CubinExpectation& expected,
                                 Diagnostics& diagnostics);

}  // namespace kw::runtime
