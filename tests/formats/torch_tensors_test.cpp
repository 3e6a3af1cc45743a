#include "kelvin/formats/torch_tensors.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "kelvin/formats/pickle.h"
#include "kelvin/formats/torch_file.h"
#include "tests/support/errors.h"
#include "tests/support/torch_files.h"

namespace kelvin::torch_tensors_test {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

std::string refusal_of(const StridedView& view) {
  return error_of([&] { check_inside(view, "a"); });
}

// The elements of a view of the letters a to l, which must lie inside of them.
std::string letters(const StridedView& shape_and_strides) {
  auto view = shape_and_strides;
  view.storage = "abcdefghijkl";
  check_inside(view, "a");
  const auto copy = copied_rows(view);
  if (view.is_contiguous()) {
    EXPECT_EQ(contiguous_bytes(view), copy);
  }
  return copy;
}

TEST(StridedView, GivesElementsRowByRow) {
  EXPECT_EQ(letters({.shape = {3, 4}, .strides = {4, 1}}), "abcdefghijkl");
  EXPECT_EQ(letters({.shape = {4, 3}, .strides = {1, 4}}), "aeibfjcgkdhl");
  EXPECT_EQ(letters({.offset = 1, .shape = {3}, .strides = {4}}), "bfj");
  EXPECT_EQ(letters({.shape = {2, 3, 2}, .strides = {1, 4, 2}}), "acegikbdfhjl");
  EXPECT_EQ(letters({.shape = {2, 2}, .strides = {0, 1}}), "abab");
  EXPECT_EQ(letters({.shape = {2, 2}, .strides = {1, 0}}), "aabb");
  EXPECT_EQ(letters({.element_bytes = 4, .shape = {3}, .strides = {1}}), "abcdefghijkl");
  EXPECT_EQ(letters({.element_bytes = 4, .shape = {2}, .strides = {2}}), "abcdijkl");
  EXPECT_EQ(letters({.offset = 11}), "l");
}

TEST(StridedView, IsEmptyWhereASizeIsZero) {
  EXPECT_EQ(letters({.shape = {0}, .strides = {1}}), "");
  EXPECT_EQ(letters({.offset = 99, .shape = {2, 0, 3}, .strides = {kHuge, 5, kHuge}}), "");
}

TEST(StridedView, IsContiguousIfNoElementLiesElsewhere) {
  EXPECT_TRUE((StridedView{.shape = {}, .strides = {}}.is_contiguous()));
  EXPECT_TRUE((StridedView{.shape = {2, 3}, .strides = {3, 1}}.is_contiguous()));
  EXPECT_TRUE((StridedView{.shape = {1, 3, 1}, .strides = {99, 1, 0}}.is_contiguous()));
  EXPECT_TRUE((StridedView{.shape = {2, 0}, .strides = {7, 7}}.is_contiguous()));
  EXPECT_FALSE((StridedView{.shape = {3, 2}, .strides = {1, 3}}.is_contiguous()));
  EXPECT_FALSE((StridedView{.shape = {2, 3}, .strides = {4, 1}}.is_contiguous()));
  EXPECT_FALSE((StridedView{.shape = {2}, .strides = {0}}.is_contiguous()));
}

TEST(StridedView, MustLieInsideOfItsStorage) {
  const std::string outside = "a: lies outside of its storage, which has 3 elements";
  const StridedView view{.storage = "abcabc", .element_bytes = 2};
  const auto with = [&](int64_t offset, std::vector<int64_t> shape, std::vector<int64_t> strides) {
    auto other = view;
    other.offset = offset;
    other.shape = std::move(shape);
    other.strides = std::move(strides);
    return refusal_of(other);
  };
  EXPECT_EQ(with(3, {}, {}), outside);
  EXPECT_EQ(with(0, {4}, {1}), outside);
  EXPECT_EQ(with(1, {2}, {2}), outside);
  EXPECT_EQ(with(0, {2, 2}, {2, 1}), outside);
  EXPECT_EQ(with(kHuge, {2}, {1}), outside);
  EXPECT_EQ(with(0, {3}, {kHuge}), outside);
  EXPECT_EQ(with(1, {2, 2}, {kHuge, 1}), outside);
  EXPECT_EQ(with(-1, {1}, {1}), "a: offset and strides must not be negative");
  EXPECT_EQ(with(2, {3}, {-1}), "a: offset and strides must not be negative");
  EXPECT_EQ(with(0, {3}, {}), "a: must have as many strides as sizes, 1, has 0");
}

using namespace std::string_literals;

const std::string kLetters = "aaaabbbbccccddddeeeeffff";

// Of a pickle whose only storage "0" is six floats: a letter four times each.
StoredTensors tensors_of(const std::string& opcodes, uint64_t file_bytes = 1000) {
  const auto bytes = opcodes + ".";
  const auto pickle = parse_pickle(bytes, "a", torch_names());
  return torch_tensors(pickle, {{"0", kLetters}}, file_bytes, "a");
}

std::string refusal_of(const std::string& opcodes, uint64_t file_bytes = 1000) {
  return error_of([&] { tensors_of(opcodes, file_bytes); });
}

std::string refusal_of(const PickledTensor& tensor) {
  return refusal_of(pickled_dict(tensor.opcodes()));
}

std::string names_of(const StoredTensors& tensors) {
  std::string names;
  for (const auto& tensor : tensors.tensors) names += tensor.name + " ";
  return names;
}

TEST(TorchTensors, PointIntoTheStorageIfTheyLieRowByRow) {
  const auto tensors = tensors_of(
      pickled_dict(PickledTensor{.offset = 2, .shape = {2, 2}, .strides = {2, 1}}.opcodes()));
  ASSERT_EQ(tensors.tensors.size(), 1U);
  EXPECT_EQ(tensors.tensors.at(0).name, "x");
  EXPECT_EQ(tensors.tensors.at(0).dtype, "F32");
  EXPECT_EQ(tensors.tensors.at(0).shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(tensors.tensors.at(0).bytes.data(), kLetters.data() + 8);
  EXPECT_EQ(tensors.tensors.at(0).bytes, "ccccddddeeeeffff");
  EXPECT_TRUE(tensors.copies->empty());
}

TEST(TorchTensors, AreCopiedIfTheyDoNot) {
  const auto tensors =
      tensors_of(pickled_dict(PickledTensor{.shape = {3, 2}, .strides = {1, 3}}.opcodes()));
  EXPECT_EQ(tensors.tensors.at(0).bytes, "aaaaddddbbbbeeeeccccffff");
  ASSERT_EQ(tensors.copies->size(), 1U);
  EXPECT_EQ(tensors.tensors.at(0).bytes.data(), tensors.copies->front().data());
}

TEST(TorchTensors, AreNamedByTheKeysThatLeadToThem) {
  const auto x = PickledTensor{}.opcodes();
  const auto tensors = tensors_of("}(" + pickled_text("b") + x + "U\x01" + "a}(U\x05inner}K\x07" +
                                  x + "sU\x04list](" + x + "e" + "uI-5\n" + x + "u");
  EXPECT_EQ(names_of(tensors), "b a.inner.7 -5 ");
}

TEST(TorchTensors, LeaveScalarsOfTheOutermostDictAsText) {
  const auto tensors = tensors_of(
      "}(Vname\nVcaf\\u00e9\nU\x03oldU\x02ok"
      "K\x01L-9223372036854775808L\nVreal\nF0.91729999\n"
      "Vyes\nI01\nVno\nI00\nVempty\nV\nVnone\nNVlist\n]Vdict\n}Vdeep\nVin\ns(NtVtuple key\nu"s);
  EXPECT_EQ(tensors.metadata, (std::map<std::string, std::string>{{"name", "caf??"},
                                                                  {"old", "ok"},
                                                                  {"1", "-9223372036854775808"},
                                                                  {"real", "0.91729999"},
                                                                  {"yes", "true"},
                                                                  {"no", "false"},
                                                                  {"empty", ""}}));
  EXPECT_TRUE(tensors.tensors.empty());
  const auto shown = tensors_of(
      "}" + pickled_text(std::string(5000, 'k')) + pickled_text(std::string(5000, '\n')) + "s",
      10000);
  EXPECT_EQ(shown.metadata.at(std::string(80, 'k') + "..."), std::string(80, '?') + "...");
}

TEST(TorchTensors, MustLieInADict) {
  EXPECT_EQ(refusal_of("]"), "a: must hold a dict of tensors");
  EXPECT_EQ(refusal_of(PickledTensor{}.opcodes()), "a: must hold a dict of tensors");
}

TEST(TorchTensors, MustHaveNames) {
  const auto x = PickledTensor{}.opcodes();
  EXPECT_TRUE(tensors_of("}N" + x + "s").tensors.empty()) << "no part of a name";
  EXPECT_EQ(refusal_of("}U\x01\xff" + x + "s"), "a: names must be in UTF-8, '?' is not");
  EXPECT_EQ(refusal_of("}" + pickled_text(std::string(1025, 'n')) + x + "s"),
            "a: names must have at most 1024 bytes, '" + std::string(80, 'n') + "...' has more");
  EXPECT_EQ(refusal_of("}(Vx\n" + x + "Vx\n" + x + "u"), "a: has two tensors 'x'");
  EXPECT_EQ(refusal_of("}(Vx.y\n" + x + "Vx\n}Vy\n" + x + "su"), "a: has two tensors 'x.y'");
}

TEST(TorchTensors, MustLieInsideOfTheirStorage) {
  EXPECT_EQ(refusal_of(PickledTensor{.offset = 1}),
            "a: 'x': lies outside of its storage, which has 6 elements");
  EXPECT_EQ(refusal_of(PickledTensor{.count = 5}),
            "a: 'x': lies outside of its storage, which has 5 elements");
  EXPECT_EQ(refusal_of(PickledTensor{.strides = {-3, 1}}),
            "a: 'x': offset and strides must not be negative");
  EXPECT_EQ(refusal_of(PickledTensor{.shape = {6}}),
            "a: 'x': must have as many strides as sizes, 1, has 2");
  EXPECT_EQ(refusal_of(PickledTensor{.shape = {-1, 2}}), "a: 'x': shape has a negative size");
  EXPECT_EQ(refusal_of(PickledTensor{.shape = {int64_t{1} << 40, int64_t{1} << 40}}),
            "a: 'x': shape is too large");
}

TEST(TorchTensors, MustHaveStoragesThatAreThere) {
  EXPECT_EQ(refusal_of(PickledTensor{.key = "1\n"}), "a: 'x': has no storage '1?'");
  EXPECT_EQ(refusal_of(PickledTensor{.count = 7}),
            "a: 'x': storage '0' must have 7 elements of 4 bytes, has 24 bytes");
  EXPECT_EQ(refusal_of(PickledTensor{.type = "DoubleStorage"}),
            "a: 'x': storage '0' must have 6 elements of 8 bytes, has 24 bytes");
  EXPECT_EQ(refusal_of(PickledTensor{.count = int64_t{1} << 62}),
            "a: 'x': storage '0' must have 4611686018427387904 elements of 4 bytes, has 24 bytes");
  EXPECT_EQ(refusal_of(PickledTensor{.type = "BoolStorage"}), "a: 'x': booleans must be 0 or 1");
}

TEST(TorchTensors, TakeMemoryInProportionToTheFile) {
  const std::string too_much = "a: its tensors would take more than 4 times the memory of the file";
  EXPECT_EQ(refusal_of(PickledTensor{.shape = {1000000, 1000000}, .strides = {0, 0}}), too_much);
  EXPECT_EQ(refusal_of(PickledTensor{.shape = {1000000}, .strides = {0}}), too_much);
  EXPECT_NO_THROW(
      tensors_of(pickled_dict(PickledTensor{.shape = {1000}, .strides = {0}}.opcodes())));
}

// A billion names by thirty doublings.
TEST(TorchTensors, AreNotMultipliedByDictsThatAreShared) {
  std::string opcodes = "}Vx\n" + PickledTensor{}.opcodes() + "sq\x00"s;
  for (char i = 0; i < 30; ++i) {
    opcodes += "0}(Va\nh"s + i + "Vb\nh"s + i + "uq"s + static_cast<char>(i + 1);
  }
  EXPECT_EQ(refusal_of(opcodes, opcodes.size()),
            "a: its tensors would take more than 4 times the memory of the file");
}

TEST(TorchTensors, DoNotEndInADictThatContainsItself) {
  EXPECT_EQ(refusal_of("}q\x00Vx\nh\x00s"s, 100000), "a: dicts must be nested at most 32 deep");
  EXPECT_EQ(refusal_of("}q\x00(Vx\nh\x00Vy\nh\x00Vz\nh\x00u"s, 100000),
            "a: dicts must be nested at most 32 deep");
}

}  // namespace kelvin::torch_tensors_test
