// What is understood so far of a foreign kernel, and how answers add to it.
//
// Three questions, as in CuBridge (Ma et al., ACL 2026, semantic lifting): what single lines do
// (notes), which lines belong together and who runs them (regions), and what each of them is in TL
// (parts). A part names the regions that it says, so every line of TL knows its lines of CUDA: a
// change of the program is later put back there and nowhere else. A region that no part says is
// left out with a reason, or still missing: then the lift is partial, and is kept. Whoever goes on
// with it is asked for what is missing or wrong.
//
// The parts' lines, one after the other, are the program, in its canonical text.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "foreign/description.h"
#include "propose/answer.h"

namespace kw::foreign {

struct LineNote {
  std::string file;
  int line = 0;
  std::string note;
};

struct Region {
  std::string name;
  Range range;
  std::string who;  // which threads run it
};

struct Part {
  std::string name;
  std::vector<std::string> regions;  // by name; none: what the text has no line for
  std::vector<std::string> tl;
};

struct LeftOut {
  std::string region, why;
};

struct Lift {
  std::string description;  // its SHA-256
  std::vector<LineNote> notes;
  std::vector<Region> regions;
  std::vector<Part> parts;
  std::vector<LeftOut> left_out;
  std::vector<std::string> who;  // answered, each once
  std::string verdict;           // of the last check; empty: none has run

  const Region* region(const std::string& name) const;
  std::string program() const;  // the parts' lines
  // The part that holds this line of the program, from 1; null past the end.
  const Part* part_of(int line) const;
  // Regions that neither a part says nor an answer leaves out.
  std::vector<std::string> missing() const;
};

nlohmann::ordered_json to_json(const Lift& lift);
// Reports foreign.lift.
std::optional<Lift> read_lift(const SourcePtr& text, Diagnostics& diagnostics);

// JSON Schemas of the three answers.
nlohmann::json notes_schema();
nlohmann::json regions_schema();
nlohmann::json parts_schema();

// Each adds what an answer says to `lift`, or leaves it and gives the reason, lift.*:
// of notes (lift.note: a line that is not there), of regions (lift.region: a range outside of what
// is read, two that overlap, a name twice, a line of code in none), of parts (lift.part: a region
// that there is not, or that is both said and left out; a line with a control character).
using Refusal = propose::Refusal;
Refusal add_notes(Lift& lift, const nlohmann::json& answer, const Description& description);
Refusal add_regions(Lift& lift, const nlohmann::json& answer, const Description& description,
                    const Sources& sources);
Refusal add_parts(Lift& lift, const nlohmann::json& answer);

}  // namespace kw::foreign
