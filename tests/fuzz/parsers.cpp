#include "parsers.h"

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "compile/cubin.h"
#include "driver/certificate/verify.h"
#include "in_clone.h"
#include "models/transcript.h"
#include "models/wire/sse.h"
#include "models/wire/wire.h"
#include "num/npy.h"
#include "operator/graph/graph.h"
#include "runtime/launch/launch_spec.h"
#include "tl/laws/laws.h"
#include "tl/program.h"
#include "transfer/tile_database.h"

namespace kw::fuzz {
namespace {

// A promise that does not hold: libFuzzer keeps the input.
void demand(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not true: %s\n", what);
  std::abort();
}

void tl_text(const std::string& bytes) {
  Diagnostics d;
  const auto program = tl::parse(make_source("input.tl", bytes), d);
  demand(program || d.has_errors(), "what cannot be read is reported");
  if (!program) return;
  const std::string text = tl::print(*program);
  const auto again = tl::parse(make_source("printed.tl", text), d);
  demand(again && tl::equal(*program, *again), "printing gives text that reads back the same");
  tl::verify(*program, d);
  render(d);
}

void graph(const std::string& bytes) {
  Diagnostics d;
  const auto g =
      spec::parse_graph(make_source("graph.json", bytes), make_source("user.py", "x\ny\n"), d);
  demand(g || d.has_errors(), "what cannot be read is reported");
  render(d);
}

void cubin(const std::string& bytes) {
  Diagnostics d;
  runtime::audit_cubin(bytes, {"sm_90a", {"attention_fwd"}, {}, 64}, d);
  render(d);
}

void npy(const std::string& bytes) {
  Diagnostics d;
  const auto t = parse_npy(bytes, "input.npy", d, Dtype::bf16);
  demand(!t || t->count() == element_count(t->shape), "a tensor has the elements of its shape");
}

void launch(const std::string& bytes) {
  Diagnostics d;
  runtime::read_launch_spec(make_source("launch.json", bytes), d);
  render(d);
}

void tiles(const std::string& bytes) {
  Diagnostics d;
  const auto read = transfer::read_tiles(make_source("tiles.json", bytes), d);
  demand(read || d.has_errors(), "what cannot be read is reported");
  if (!read) return;
  const auto again = transfer::read_tiles(make_source("tiles.json", transfer::print(*read)), d);
  demand(again && again->rows.size() == read->rows.size(), "printing gives rows that read back");
}

const nlohmann::json& schema() {
  static const nlohmann::json read = [] {
    const SourcePtr text = read_source(in_clone("/docs/certificate.schema.json"));
    demand(text != nullptr, "the schema is there");
    return nlohmann::json::parse(text->text);
  }();
  return read;
}

void certificate(const std::string& bytes) {
  Diagnostics d;
  const auto read = driver::read_certificate(make_source("certificate.json", bytes), schema(), d);
  demand(read || d.has_errors(), "what cannot be read is reported");
  render(d);
  if (!read) return;
  const std::string text = read->dump();
  const auto again = driver::read_certificate(make_source("printed.json", text), schema(), d);
  demand(again && driver::difference(*read, *again).empty(), "printing gives the same claims");
}

// What an endpoint may send, as a stream and whole, in each protocol.
void stream(const std::string& bytes) {
  for (const char* api : {"chat", "responses", "anthropic"}) {
    const auto wire = models::make_wire(api, false);
    models::Reply reply;
    models::SseParser events([&](const models::SseEvent& e) { wire->event(e, reply); });
    try {
      for (size_t at = 0; at < bytes.size(); at += 7) events.feed(bytes.substr(at, 7));
    } catch (const models::WireFault&) {
    } catch (const models::WireError&) {
    }
    try {
      wire->whole(models::object_of(bytes), reply);
    } catch (const models::WireFault&) {
    } catch (const models::WireError&) {
    }
  }
}

void transcript(const std::string& bytes) {
  std::string line;
  try {
    line = models::to_line(models::from_line(bytes));
  } catch (const std::runtime_error&) {
    return;
  }
  demand(models::to_line(models::from_line(line)) == line, "a record reads back the same");
  models::readable({models::from_line(line)});
}

}  // namespace

const std::vector<Parser>& parsers() {
  static const std::vector<Parser> all = {{"tl", tl_text},
                                          {"graph", graph},
                                          {"cubin", cubin},
                                          {"npy", npy},
                                          {"launch", launch},
                                          {"tiles", tiles},
                                          {"certificate", certificate},
                                          {"stream", stream},
                                          {"transcript", transcript}};
  return all;
}

const Parser* find_parser(std::string_view name) {
  for (const Parser& p : parsers())
    if (p.name == name) return &p;
  return nullptr;
}

}  // namespace kw::fuzz
