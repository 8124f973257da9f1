// Whole captures: tests/spec/right/*/*.py are spellings of attention, each with the form that it
// must give in its head; tests/spec/bad/*/*.py are specs that must be refused, each with the code,
// the line and words of the message. PyTorch is imported once for all right ones, and once for all
// bad ones.
#include "operator/capture/capture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "in_clone.h"
#include "operator/graph/graph.h"
#include "support/process.h"

namespace kw::spec {
namespace {

namespace fs = std::filesystem;

std::string python() {
  const char* given = std::getenv("KW_PYTHON");
  return given ? given : in_clone("/.venv/bin/python");
}

// Captures every spec of a folder's folders, after those that `specs` holds already; returns where.
fs::path capture_all(const fs::path& folder, std::vector<fs::path>& specs) {
  for (const fs::directory_entry& e : fs::recursive_directory_iterator(folder))
    if (e.path().extension() == ".py") specs.push_back(e.path());
  std::sort(specs.begin(), specs.end());
  const fs::path out = fs::path(testing::TempDir()) /  // another run may have one of its own
                       fmt::format("kw_{}_{}", folder.filename().string(), getpid());
  fs::remove_all(out);
  std::vector<std::string> command = {python(), in_clone("/tests/spec/capture_all.py"),
                                      out.string()};
  std::set<fs::path> names;  // what capture_all.py calls their folders
  for (const fs::path& s : specs) {
    EXPECT_TRUE(names.insert(s.stem()).second) << s << " has the name of another";
    command.push_back(s.string());
  }
  const ProcessResult result = run_process(command);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(specs.empty());
  return out;
}

// The lines of a file's head: "# form\n#   score ..." without the marks.
std::string head_of(const fs::path& path) {
  std::ifstream file(path);
  std::string out, line;
  while (std::getline(file, line) && line.rfind("# ", 0) == 0) out += line.substr(2) + "\n";
  return out;
}

// Each change of a right form makes it compute something else, and the goldens say so.
void expect_wrong_forms_are_noticed(const Capture& right) {
  const auto i = leaf(Kind::index, Type::integer, "i"), j = leaf(Kind::index, Type::integer, "j");
  std::vector<Capture> wrong(6, right);
  wrong[0].form.terms[0].keep = binary("<", j, i);
  wrong[1].form.terms[0].keep = nullptr;
  wrong[2].form.terms[0].score = binary("*", right.form.terms[0].score, real(1.0001));
  wrong[3].form.epilogue = binary("*", right.form.epilogue, real(1 + 1e-8));
  std::swap(wrong[4].form.terms[0].k.argument, wrong[4].form.terms[0].v.argument);
  for (ExprPtr& e : wrong[5].form.terms[0].v.indices)
    if (e->kind == Kind::binary) e = integer(0);
  for (const Capture& w : wrong) {
    Diagnostics diagnostics;
    EXPECT_FALSE(check_goldens(w, 1, diagnostics)) << print(w.form);
    ASSERT_TRUE(diagnostics.has_errors());
    EXPECT_EQ(diagnostics.all()[0].code, "internal.form");
  }
}

void expect_refused_as_ours(const Capture& wrong) {
  Diagnostics diagnostics;
  EXPECT_FALSE(check_goldens(wrong, 1, diagnostics)) << print(wrong.form);
  ASSERT_TRUE(diagnostics.has_errors());
  EXPECT_EQ(diagnostics.all()[0].code, "internal.form");
}

// A further product is of its own operands, over all of its columns.
void expect_wrong_products_are_noticed(const Capture& right) {
  std::vector<Capture> wrong(3, right);
  std::swap(wrong[0].form.terms[0].more[0].q.argument, wrong[0].form.terms[0].more[0].k.argument);
  wrong[1].form.terms[0].more[0].D -= 1;
  wrong[2].form.terms[0].score = binary("*", score_leaf(0), real(0.125));
  for (const Capture& w : wrong) expect_refused_as_ours(w);
}

// Sums of columns are held against PyTorch's, one by one.
void expect_wrong_sums_are_noticed(const Capture& right) {
  Capture wrong = right;
  ASSERT_FALSE(wrong.cases.back().others.empty());
  Tensor& sums = *wrong.cases.back().others[0].values;
  ASSERT_GT(sums.count(), 0);
  sums.values.back() *= 1 + 1e-7;
  expect_refused_as_ours(wrong);
}

// Some golden row keeps no key, and its uniform softmax is told from zero.
void expect_rows_without_a_key_are_noticed(const Capture& right) {
  Capture wrong = right;
  wrong.form.terms[0].finite_mask = false;
  EXPECT_EQ(right.lengths, (std::map<std::string, int64_t>{{"length", 1}}));
  EXPECT_EQ(draws_for(right, {{"M", 40}, {"N", 70}}, 1).arguments.at("length").high, 70);
  Diagnostics diagnostics;
  EXPECT_FALSE(check_goldens(wrong, 1, diagnostics));
}

// A window of 700 is seen from both sides, though no case that programs run on has as many rows.
void expect_another_window_is_noticed(const Capture& right) {
  ASSERT_EQ(right.far.size(), 2u);
  for (const int64_t other : {699, 701}) {
    Capture wrong = right;
    wrong.form.terms[0].keep = rewrite(right.form.terms[0].keep, [&](const ExprPtr& e) {
      return is_number(e, 700) || is_number(e, -700) ? integer(e->integer < 0 ? -other : other)
                                                     : nullptr;
    });
    expect_refused_as_ours(wrong);
    wrong.far.clear();
    Diagnostics diagnostics;
    EXPECT_TRUE(check_goldens(wrong, 1, diagnostics));
  }
}

bool says_rows_without_a_key(const Form& form) {
  return std::any_of(form.notes.begin(), form.notes.end(), [](const Note& n) {
    return n.message.find("which is not held against it") != std::string::npos;
  });
}

TEST(Problem, a_size_that_an_argument_alone_has_is_what_is_read_of_it) {
  const auto i = leaf(Kind::index, Type::integer, "i"), j = leaf(Kind::index, Type::integer, "j");
  Form form;
  form.B = {"", 1}, form.M = {"M", 0}, form.N = {"N", 0};
  form.H = form.G = form.D = form.Dv = {"", 1};
  for (const char* name : {"blocks", "kinds"}) {
    Argument a;
    a.name = name, a.dtype = Dtype::i32, a.is_tensor = true;
    a.dims = {{name == std::string("blocks") ? "L1" : "L2", 0}};
    form.arguments.push_back(a);
  }
  const ExprPtr block = binary(
      "//", binary("+", binary("-", j, i), leaf(Kind::size, Type::integer, "M")), integer(64));
  form.terms.resize(1);
  form.terms[0].keep =
      binary("<", read("kinds", Type::integer, {read("blocks", Type::integer, {block})}), i);
  Draws draws;
  draws.arguments["blocks"] = draws.arguments["kinds"] = {Draw::Kind::integer, 0, 1, 0, 3};
  for (const auto& [given, due] : {std::pair<int64_t, int64_t>{2, 6}, {9, 9}}) {
    Diagnostics d;
    const auto problem =
        make_problem(form, {{"M", 20}, {"N", 312}, {"L1", given}, {"L2", 4}}, draws, d);
    ASSERT_TRUE(problem) << render(d);
    EXPECT_EQ(problem->sizes.at("L1"), due);  // (311 - 0 + 20) // 64, and one more
    EXPECT_EQ(problem->tensors.at("blocks").count(), due);
    EXPECT_EQ(problem->sizes.at("L2"), 4);  // its indices are data
  }
  Diagnostics d;
  const auto unknown = make_problem(form, {{"N", 312}, {"L1", 2}, {"L2", 4}}, draws, d);
  ASSERT_TRUE(unknown);  // of any M
  EXPECT_EQ(unknown->sizes.at("L1"), 2);
}

// Scales of blocks of 128 keys, in the rows of k; of a head for each key head.
TEST(Problem, a_size_grows_to_what_operands_rows_read_too) {
  const auto h = leaf(Kind::index, Type::integer, "h"), j = leaf(Kind::index, Type::integer, "j");
  Form form;
  form.B = {"", 1}, form.M = {"M", 0}, form.N = {"N", 0};
  form.H = {"", 6}, form.G = {"", 2}, form.D = form.Dv = {"", 1};
  Argument a;
  a.name = "scales", a.dtype = Dtype::f32, a.is_tensor = true;
  a.dims = {{"L1", 0}, {"L2", 0}};
  form.arguments.push_back(a);
  form.terms.resize(1);
  form.terms[0].k.row = RowMap{{}, read("scales", Type::real, {h, binary("//", j, integer(128))})};
  Draws draws;
  draws.arguments["scales"] = {Draw::Kind::uniform, 0, 1, 0, 3};
  Diagnostics d;
  const auto problem = make_problem(form, {{"M", 20}, {"N", 300}, {"L1", 1}, {"L2", 1}}, draws, d);
  ASSERT_TRUE(problem) << render(d);
  EXPECT_EQ(problem->sizes.at("L2"), 3);
  EXPECT_EQ(problem->sizes.at("L1"), 2);
}

// What the examples' own texts say they are.
const std::map<std::string, std::string> kExamples = {
    {"full", "  score   s * 0.0883883\n"},
    {"causal", "  score   s * 0.0883883\n  keep    j <= i\n"},
    {"prefix_lm", "  score   s * 0.0883883\n  keep    j <= i or j < prefix[b]\n"},
    {"alibi", "  score   s * 0.0883883 + slopes[h] * (j - i)\n  keep    j <= i\n"}};

std::string expected_form(const fs::path& path) {
  const auto example = kExamples.find(path.stem().string());
  if (example == kExamples.end()) return head_of(path);
  return example->first + ": bf16, 32 query / 8 key heads, D 128; any B, M, N\n" + example->second +
         "  softmax over j\n";
}

TEST(Capture, every_spelling_gives_the_form_in_its_head_and_computes_what_pytorch_does) {
  std::vector<fs::path> specs;
  for (const auto& [name, form] : kExamples) specs.push_back(in_clone("/examples/") + name + ".py");
  const fs::path out = capture_all(in_clone("/tests/spec/right"), specs);
  EXPECT_GE(specs.size(), 51u);
  for (const fs::path& path : specs) {
    Diagnostics diagnostics;
    const std::optional<Capture> capture =
        load_capture(out / path.stem(), diagnostics, SelfCheck::all);
    ASSERT_TRUE(capture) << path << "\n" << render(diagnostics);
    EXPECT_EQ(print(capture->form), expected_form(path));
    EXPECT_EQ(capture->cases.size(), 5u);
    // Its lengths may be 0, and it does not use scaled_dot_product_attention, which then gives 0.
    if (path.stem() == "number_argument" || path.stem() == "causal") {
      EXPECT_EQ(says_rows_without_a_key(capture->form), path.stem() == "number_argument");
    }
    if (path.stem() == "softcap") expect_wrong_forms_are_noticed(*capture);
    if (path.stem() == "two_products") expect_wrong_products_are_noticed(*capture);
    if (path.stem() == "window_beyond") expect_another_window_is_noticed(*capture);
    if (path.stem() == "column_sums") expect_wrong_sums_are_noticed(*capture);
    if (path.stem() == "finite_rows") expect_rows_without_a_key_are_noticed(*capture);
  }
}

TEST(Capture, every_bad_spec_is_refused_as_its_head_says) {
  std::vector<fs::path> specs;
  const fs::path out = capture_all(in_clone("/tests/spec/bad"), specs);
  for (const fs::path& path : specs) {
    Diagnostics diagnostics;
    const SourcePtr problems = read_source((out / path.stem() / "problems.json").string());
    if (problems)
      EXPECT_TRUE(read_problems(problems->text, diagnostics));
    else
      EXPECT_FALSE(load_capture(out / path.stem(), diagnostics)) << path;
    ASSERT_EQ(diagnostics.all().size(), 1u) << path << render(diagnostics);
    const Diagnostic& d = diagnostics.all()[0];
    const std::string said =
        "error " + d.code + " at line " + std::to_string(d.span.start().line) + ": " + d.message;
    std::string expected = head_of(path);
    expected.pop_back();
    const size_t colon = expected.find(": ");
    EXPECT_EQ(said.substr(0, colon), expected.substr(0, colon)) << path << "\n" << said;
    EXPECT_NE(d.message.find(expected.substr(colon + 2)), std::string::npos) << path << "\n"
                                                                             << said;
    EXPECT_EQ(fs::path(d.span.source ? d.span.source->name : "").filename(), path.filename());
    const std::string shown = render(diagnostics);
    EXPECT_LE(std::count(shown.begin(), shown.end(), '\n'), 24) << shown;
    EXPECT_EQ(shown.find("Traceback"), std::string::npos);
  }
}

TEST(Capture, the_command_carries_every_request) {
  const CaptureRequest request{"a.py", "f", "bf16", "out", {{1, 500, 700}}};
  EXPECT_EQ(
      capture_command(request, "py"),
      (std::vector<std::string>{"py", "-m", "kernelwright.capture", "a.py", "--out", "out",
                                "--function", "f", "--dtype", "bf16", "--case", "1,500,700"}));
}

TEST(Capture, a_folder_that_is_not_a_capture_is_refused) {
  Diagnostics diagnostics;
  EXPECT_FALSE(load_capture("/nonexistent", diagnostics));
  EXPECT_EQ(diagnostics.all()[0].code, "spec.capture");
  EXPECT_FALSE(read_problems("not json", diagnostics));
}

TEST(Capture, numbers_of_heads_are_known_by_three_words) {
  const std::string graph = read_source(in_clone("/tests/fuzz/inputs/graph/seed4"))->text;
  const SourcePtr user = make_source("source.py", "");
  const auto with = [&](const std::string& heads, Diagnostics& diagnostics) {
    return parse_graph(
        make_source("graph.json", fmt::format(R"({{"heads": "{}", )", heads) + graph.substr(1)),
        user, diagnostics);
  };
  Diagnostics none, one;
  EXPECT_EQ(with("own", none)->heads, Form::Heads::own);
  EXPECT_EQ(with("grouped", none)->heads, Form::Heads::grouped);
  EXPECT_EQ(with("any", none)->heads, Form::Heads::any);
  EXPECT_FALSE(with("some", one));
  EXPECT_NE(render(one).find("heads are 'some', not any, grouped or own"), std::string::npos);
}

}  // namespace
}  // namespace kw::spec
