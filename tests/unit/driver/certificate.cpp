// A certificate's text against its schema, what differs between two, and the schema's own keywords.
// What a whole certificate says, and every field of it spoilt: tests/python/check/test_verify.py.
#include <gtest/gtest.h>

#include "driver/certificate/cubin_code.h"
#include "driver/certificate/schema.h"
#include "driver/certificate/verify.h"
#include "in_clone.h"
#include "tiny_cubin.h"

namespace kw {
namespace {

using Json = nlohmann::json;

std::string fault(const char* value, const char* schema) {
  return driver::mismatch(Json::parse(value), Json::parse(schema)).value_or("");
}

TEST(Schema, refuses_by_each_keyword_and_says_where) {
  EXPECT_EQ(fault("1", R"({"type": "integer"})"), "");
  EXPECT_EQ(fault("1.5", R"({"type": "integer"})"), "/: is 1.5, and must be of type integer");
  EXPECT_EQ(fault("true", R"({"type": "number"})"), "/: is true, and must be of type number");
  EXPECT_EQ(fault("\"b\"", R"({"const": "a"})"), "/: is \"b\", and must be \"a\"");
  EXPECT_NE(fault("\"b\"", R"({"enum": ["a", "c"]})").find("one of"), std::string::npos);
  EXPECT_NE(fault("\"b\"", R"({"pattern": "^a$"})").find("match"), std::string::npos);
  EXPECT_NE(fault("-1", R"({"minimum": 0})").find("at least 0"), std::string::npos);
  EXPECT_NE(fault("2", R"({"maximum": 1})").find("at most 1"), std::string::npos);
  EXPECT_EQ(fault("[]", R"({"minItems": 1})"), "/: has 0 items, and must have at least 1");
  EXPECT_EQ(fault("[1, \"x\"]", R"({"items": {"type": "integer"}})"),
            "/1: is \"x\", and must be of type integer");
  EXPECT_EQ(fault("{}", R"({"required": ["a"]})"), "/: has no 'a'");
  EXPECT_EQ(fault(R"({"b": 1})", R"({"additionalProperties": false})"),
            "/b: is not a field of this form");
  EXPECT_EQ(fault(R"({"b": 1})", R"({"additionalProperties": {"type": "string"}})"),
            "/b: is 1, and must be of type string");
  EXPECT_EQ(fault(R"({"a": {"b": 1}})",
                  R"({"properties": {"a": {"$ref": "#/$defs/x"}},
                      "$defs": {"x": {"properties": {"b": {"type": "null"}}}}})"),
            "/a/b: is 1, and must be of type null");
}

TEST(Schema, of_several_forms_names_what_is_wrong_with_the_one_that_is_meant) {
  const char* forms = R"({"oneOf": [
      {"required": ["n"], "properties": {"check": {"const": "a"}}},
      {"required": ["m"], "properties": {"check": {"const": "b"}}}]})";
  EXPECT_EQ(fault(R"({"check": "b", "m": 1})", forms), "");
  EXPECT_EQ(fault(R"({"check": "b", "n": 1})", forms), "/: has no 'm'");
  EXPECT_NE(fault(R"({"check": "c"})", forms).find("none of the forms"), std::string::npos);
}

TEST(Schema, with_a_keyword_that_is_not_read_is_a_fault_of_ours) {
  EXPECT_EQ(fault("1", R"({"multipleOf": 2})").rfind("schema.keyword", 0), 0u);
}

TEST(Difference, names_the_first_place_with_was_and_is) {
  const auto of = [](const char* was, const char* is) {
    return driver::difference(Json::parse(was), Json::parse(is));
  };
  EXPECT_EQ(of(R"({"a": 1, "b": [2, 3]})", R"({"b": [2, 3], "a": 1})"), "");
  EXPECT_EQ(of(R"({"rows": 7560})", R"({"rows": 7000})"), "/rows: was 7560, is 7000");
  EXPECT_EQ(of(R"({"a": [1, 2]})", R"({"a": [1, 3]})"), "/a/1: was 2, is 3");
  EXPECT_EQ(of(R"({"a": 1})", "{}"), "/a: was 1, is not there");
  EXPECT_EQ(of(R"({"a": 1, "b": 2})", R"({"a": 2, "c": 2})"), "/a: was 1, is 2 (and 2 more)");
  EXPECT_EQ(of("[1]", "[1, 2]"), ": was [1], is [1,2]");
  const std::string a = '"' + std::string(90, 'a') + '"', b = '"' + std::string(9, 'b') + '"';
  EXPECT_EQ(of(("[" + a + "]").c_str(), ("[" + a + "," + b + "]").c_str()),
            ": was 1 long, is 2: \"bbbbbbbbb\" was not there");
  EXPECT_EQ(of(("[" + b + "," + a + "]").c_str(), ("[" + a + "]").c_str()),
            ": was 2 long, is 1: \"bbbbbbbbb\" is not there");
  EXPECT_EQ(of(("[" + a + "]").c_str(), ("[" + a + "," + a + "]").c_str()), ": was 1 long, is 2");
}

TEST(Difference, of_measured_reals_counts_from_one_percent) {
  EXPECT_EQ(driver::difference(0.500, 0.501), "");
  EXPECT_NE(driver::difference(0.50, 0.51), "");
  EXPECT_NE(driver::difference(100, 101), "");  // counted, not measured
  EXPECT_EQ(driver::difference(0.0, 0.0), "");
  EXPECT_NE(driver::difference(1e-34, 0.0), "");
}

TEST(SameCode, is_every_byte_of_a_cubin_but_those_for_debuggers) {
  std::string cubin = tiny_cubin("debug_xx", 8);  // the kernel's name is no section's kind
  EXPECT_TRUE(driver::same_code(cubin, cubin));
  for (size_t n = 0; n < cubin.size(); ++n) {
    std::string other = cubin;
    other[n] ^= 1;
    EXPECT_FALSE(driver::same_code(cubin, other)) << "byte " << n;
  }
  EXPECT_FALSE(driver::same_code(cubin, cubin + '\0'));
  cubin.replace(cubin.find(".nv.info.debug_xx"), 11, ".debug_info");
  std::string other = cubin;
  other[other.find("\x04\x17\x0c")] ^= 1;  // what that section holds
  EXPECT_TRUE(driver::same_code(cubin, other));
}

// Whatever the text, it is read or refused: cut short anywhere, and with any byte another.
TEST(Certificate, of_any_text_is_read_or_refused) {
  Diagnostics none;
  const Json schema = Json::parse(read_source(in_clone("/docs/certificate.schema.json"))->text);
  const std::string text = R"({"schema": "kernelwright.certificate/2", "files": {"a": [1e9]}})";
  for (size_t n = 0; n <= text.size(); ++n) {
    for (std::string other : {text.substr(0, n), text.substr(0, n) + '\x80' + text.substr(n)}) {
      Diagnostics d;
      EXPECT_FALSE(driver::read_certificate(make_source("c", other), schema, d));
      EXPECT_TRUE(d.has_errors());
      EXPECT_FALSE(d.all()[0].hint.empty());
    }
  }
}

TEST(Certificate, of_version_one_is_refused_and_so_is_a_name_twice) {
  const Json schema = Json::parse(read_source(in_clone("/docs/certificate.schema.json"))->text);
  const auto refusal = [&](const std::string& text) {
    Diagnostics d;
    EXPECT_FALSE(driver::read_certificate(make_source("c", text), schema, d));
    return render(d);
  };
  EXPECT_NE(refusal(R"({"schema": "kernelwright.certificate/1"})").find("make the kernel again"),
            std::string::npos);
  const std::string twice = refusal(R"({"a": [{"b": 1, "c": {"b": 1}}, {"b": 1, "b": 2}]})");
  EXPECT_NE(twice.find("one object has 'b' twice"), std::string::npos) << twice;
  EXPECT_EQ(refusal(R"({"a": [{"b": 1, "c": {"b": 1}}, {"b": 1}]})").find("twice"),
            std::string::npos);
}

TEST(Certificate, with_a_number_too_large_or_values_too_deep_is_refused) {
  const Json schema = Json::parse(read_source(in_clone("/docs/certificate.schema.json"))->text);
  const auto refusal = [&](const std::string& value) {
    Diagnostics d;
    const std::string text = R"({"schema": "kernelwright.certificate/2", "x": )" + value + "}";
    EXPECT_FALSE(driver::read_certificate(make_source("c", text), schema, d));
    return render(d);
  };
  EXPECT_NE(refusal("1e999").find("number overflow"), std::string::npos);
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_NE(refusal(deep).find("nested more than 100 deep"), std::string::npos);
  EXPECT_NE(refusal("[[1]]").find("certificate.form"),
            std::string::npos);  // read, and no such form
}

}  // namespace
}  // namespace kw
