// What stands before the kernel's own statements: constants, the struct of the arguments, shared
// memory, records and functions of scalars.
//
// The struct has the bytes that the launch plan derives from the same program, and says so in
// static_asserts: a launcher that packs by launch.json packs for this text too.
#include "cute/printer.h"

namespace kw::cute {
using namespace tl;
namespace {

std::string kind_of(const Stmt& a, bool hopper) {
  switch (a.op) {
    case Op::arg_tensor: {
      const Item& access = a.access().at(0);
      return fmt::format("tl::Strided<{}{}, {}>", type_name(access.type),
                         access.name == "out" ? "" : " const", a.dims().size());
    }
    case Op::arg_size:
    case Op::arg_i32:
      return "int";
    case Op::arg_f32:
      return "float";
    case Op::arg_scratch:
      return "tl::Words";
    case Op::arg_tiled:  // with rows, what a pre-pass wrote
      return hopper && a.access().at(0).name != "scratch" ? "tl::TensorMap" : "";
    case Op::arg_workspace:
      return hopper ? "tl::Counter" : "";
    default:
      return {};
  }
}

}  // namespace

bool Printer::head(const Stmt& s, const Scope& scope) {
  switch (s.op) {
    case Op::include:
    case Op::level:
      return true;  // the text has its own includes
    case Op::element:
      line("// " + print_head(s));
      line(fmt::format("using element = {};", type_name(s.type())));
      return true;
    case Op::param:
    case Op::toggle: {
      line("// " + print_head(s));
      Scope here(&scope);
      for (const Item& d : s.names()) {
        line(fmt::format("constexpr {} {} = {};", s.op == Op::param ? "int" : "bool", d.name,
                         text(s, here, d.expr)));
        here.add(symbol_of(s, d, here));
      }
      return true;
    }
    case Op::args:
      arguments(s, scope);
      return true;
    case Op::shared:
      shared(s, scope);
      return true;
    case Op::record: {
      std::string names;
      for (const Item& d : s.names()) names += (names.empty() ? "" : ", ") + d.name;
      line("// " + print_head(s));
      line(fmt::format("struct {} {{ int {}; }};", s.name(), names));
      return true;
    }
    case Op::def: {
      std::string parameters = "Args const& args";
      for (const Item& p : s.params()) parameters += ", " + type_name(p.type) + " " + p.name;
      line("");
      line("// " + print_head(s));
      line(fmt::format("CUTE_DEVICE {} {}({}) {{", type_name(s.result()), s.name(), parameters));
      braces(s, scope);
      return true;
    }
    case Op::kernel:
    case Op::warpgroups_kernel:
      kernel(s, scope);
      return true;
    case Op::lists:
      lists_kernel(s, scope);
      return true;
    default:
      return false;
  }
}

void Printer::arguments(const Stmt& args, const Scope&) {
  line("");
  line("struct Args {");
  ++depth_;
  for (const Stmt& a : args.body) {
    const std::string kind = kind_of(a, hopper_);
    if (kind.empty()) {
      refuse(a, hopper_ ? "no pre-pass over rows is spelled that would fill it"
                        : "tensor maps and workspaces are Hopper's");
      continue;
    }
    line("// " + print_head(a));  // a value is for whoever launches
    std::string names;
    for (const Item& d : a.names()) names += (names.empty() ? "" : ", ") + d.name;
    line(fmt::format("{} {};", kind, names));
  }
  --depth_;
  line("};");
  line(fmt::format("static_assert(sizeof(Args) == {}, \"as launch.json has it\");",
                   plan_.parameter_bytes));
  line("#ifndef __CUDACC_RTC__  // whose offsetof is no constant");
  for (const lower::LaunchArgument& a : plan_.arguments)
    line(fmt::format("static_assert(offsetof(Args, {}) == {}, \"as launch.json has it\");", a.name,
                     a.offset));
  line("#endif");
}

void Printer::shared(const Stmt& shared, const Scope& scope) {
  line("");
  line("struct Shared {");
  ++depth_;
  for (const Stmt& s : shared.body) {
    if (hopper_shared(s, scope)) continue;
    if (s.op != Op::tile && s.op != Op::ring) {
      refuse(s, "barriers in shared memory are Hopper's");
      continue;
    }
    line("// " + print_head(s));
    for (const Item& d : s.names()) {
      std::string count = s.op == Op::ring ? " * (" + text(s, scope, s.stages()) + ")" : "";
      if (d.expr) count += " * (" + text(s, scope, d.expr) + ")";
      line(fmt::format("alignas(1024) {} {}[({}) * ({}){}];", type_name(s.type()), d.name,
                       text(s, scope, s.rows()), text(s, scope, s.columns()), count));
    }
  }
  --depth_;
  line("};");
  line(fmt::format("static_assert(sizeof(Shared) <= {}, \"as launch.json has it\");",
                   plan_.shared_bytes));
}

void Printer::shared_views(const Scope& scope) {
  const Stmt* shared = program_.find(Op::shared);
  for (const Stmt& s : shared->body) {
    if (s.op != Op::tile && s.op != Op::ring) continue;
    for (const Item& d : s.names()) {
      std::string extents;
      const auto extent = [&](const ExprPtr& e) {
        extents += (extents.empty() ? "" : ", ") + fmt::format("Int<{}>", text(s, scope, e));
      };
      extent(s.rows());
      extent(s.columns());
      if (d.expr) extent(d.expr);
      if (s.op == Op::ring) extent(s.stages());
      line(fmt::format(
          "Tensor {0} = make_tensor(make_smem_ptr(shared.{0}), tl::{2}<Shape<{1}>>{{}});", d.name,
          extents, s.type() == "e4m3" ? "NarrowTile" : "Tile"));
    }
  }
}

}  // namespace kw::cute
