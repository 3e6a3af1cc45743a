#include "kelvin/formats/numpy_pickle.h"

#include <gtest/gtest.h>

#include <string>

#include "kelvin/formats/pickle.h"
#include "tests/support/errors.h"
#include "tests/support/pickles.h"

namespace kelvin {
namespace {

using namespace std::string_literals;

const std::string kBlankArray = "cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\ntR"s;
const std::string kBytesType = "cnumpy\ndtype\n(S'u1'\ntR"s;

// An array with this state, given as opcodes.
std::string array_with(const std::string& state) { return kBlankArray + "(" + state + "tb."; }

// Why the file is refused, without its place.
std::string refusal_of(const std::string& bytes) {
  const auto message = error_of([&] { parse_pickle(bytes, "a"); });
  return message.substr(message.find(": ", 3) + 2);
}

TEST(NumpyPickle, FillsAnArray) {
  const auto bytes = array_with("K\x01(K\x02K\x01t"s + kBytesType + "I00\nU\x02xy"s);
  const auto pickle = parse_pickle(bytes, "a");
  ASSERT_EQ(pickle.root().kind, PickleKind::array);
  EXPECT_EQ(pickle.array(pickle.root()).bytes, "xy");
  EXPECT_EQ(pickle.array(pickle.root()).shape, (std::vector<int64_t>{2, 1}));
}

TEST(NumpyPickle, KnowsTheNewNameOfTheModule) {
  auto bytes = array_with("K\x01(K\x02t"s + kBytesType + "I00\nU\x02xy"s);
  bytes.replace(bytes.find("numpy.core"), 10, "numpy._core");
  EXPECT_EQ(parse_pickle(bytes, "a").root().kind, PickleKind::array);
}

TEST(NumpyPickle, RefusesArraysWhoseSizesLie) {
  const auto with_shape = [](const std::string& shape) {
    return refusal_of(array_with("K\x01("s + shape + "t" + kBytesType + "I00\nU\x02xy"s));
  };
  EXPECT_EQ(with_shape("K\x03"), "shape of an array needs 3 bytes, has 2");
  EXPECT_EQ(with_shape("I4611686018427387904\nK\x04"),
            "shape of an array is malformed or too large");
  EXPECT_EQ(with_shape("I-2\nI-1\n"), "shape of an array is malformed or too large");
  EXPECT_EQ(with_shape("N"), "shape of an array is malformed or too large");
  std::string many;
  for (int i = 0; i < 33; ++i) many += "K\x01"s;
  EXPECT_EQ(with_shape(many), "state of an array must be version, shape, dtype, order and bytes");
}

TEST(NumpyPickle, RefusesOtherStates) {
  EXPECT_EQ(refusal_of(array_with("NN")), "state of an array must have 5 parts, has 2");
  EXPECT_EQ(refusal_of(array_with("NNNNN")),
            "state of an array must be version, shape, dtype, order and bytes");
  EXPECT_EQ(refusal_of(kBlankArray + "Nb."), "BUILD must have a tuple as state");
  EXPECT_EQ(refusal_of("N(tb."), "BUILD must have an array or a dtype");
}

TEST(NumpyPickle, RefusesFortranOrderAndObjects) {
  const auto pickles =
      python_pickles({"np.zeros((2, 3), 'u1', order='F'), protocol=2",
                      "np.array(['text']), protocol=2", "np.array([None]), protocol=2"});
  EXPECT_EQ(refusal_of(pickles.at(0)), "array must be in C order, is in Fortran order");
  EXPECT_EQ(refusal_of(pickles.at(1)), "array must be of numbers, its dtype is 'U4'");
  EXPECT_EQ(refusal_of(pickles.at(2)),
            "state of an array must be version, shape, dtype, order and bytes");
}

TEST(NumpyPickle, RefusesOtherCallsOfTheNamesItKnows) {
  EXPECT_EQ(refusal_of("N)R."), "REDUCE must have a name and a tuple");
  EXPECT_EQ(refusal_of("cnumpy\ndtype\nNR."), "REDUCE must have a name and a tuple");
  EXPECT_EQ(refusal_of("cnumpy\ndtype\n)R."), "numpy.dtype must have a name");
  EXPECT_EQ(refusal_of("cnumpy\nndarray\n)R."),
            "numpy.ndarray must not be called with 0 arguments");
  EXPECT_EQ(refusal_of("cbuiltins\nbytes\n(K\x05tR."),
            "builtins.bytes must not be called with 1 arguments");
  EXPECT_EQ(refusal_of("cnumpy.core.multiarray\n_reconstruct\n(cnumpy\ndtype\ntR."),
            "_reconstruct must have numpy.ndarray as its first argument");
  EXPECT_EQ(refusal_of("c_codecs\nencode\n(Va\nVrot13\ntR."),
            "_codecs.encode must have a text and 'latin1' as arguments");
  EXPECT_EQ(refusal_of("c_codecs\nencode\n(V\\u20ac\nVlatin1\ntR."),
            "text to be encoded must be of Latin-1, is not");
}

}  // namespace
}  // namespace kelvin
