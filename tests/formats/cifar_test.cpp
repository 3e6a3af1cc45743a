#include "kelvin/formats/cifar.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kelvin/formats/pickle.h"
#include "tests/support/errors.h"
#include "tests/support/pickles.h"

namespace kelvin::cifar_test {

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

std::string record(const std::string& labels, char first) {
  std::string bytes = labels;
  for (int i = 0; i < 3072; ++i) bytes += static_cast<char>(first + i);
  return bytes;
}

TEST(ParseCifarBinary, GivesLabelsAndPlanesOfColour) {
  const auto images = parse_cifar_binary(record("\x07", 'a') + record("\x02", 'x'), "a", {});
  EXPECT_EQ(images.labels, (std::vector<int64_t>{7, 2}));
  EXPECT_EQ(images.channels, 3);
  EXPECT_EQ(images.height, 32);
  EXPECT_EQ(images.width, 32);
  ASSERT_EQ(images.pixels.size(), 2U * 3072);
  EXPECT_EQ(images.pixels.at(0), 'a');
  EXPECT_EQ(images.pixels.at(1), 'b');
  EXPECT_EQ(images.pixels.at(3072), 'x');
  EXPECT_EQ(images.pixels.at(6143), static_cast<uint8_t>('x' + 3071));
}

TEST(ParseCifarBinary, TakesTheChosenOfTwoLabels) {
  const auto bytes = record("\x13\x63", 'a');
  const CifarRecord coarse{.label_bytes = 2, .label_index = 0, .classes = 20};
  const CifarRecord fine{.label_bytes = 2, .label_index = 1, .classes = 100};
  EXPECT_EQ(parse_cifar_binary(bytes, "a", coarse).labels, std::vector<int64_t>{19});
  EXPECT_EQ(parse_cifar_binary(bytes, "a", fine).labels, std::vector<int64_t>{99});
  EXPECT_EQ(parse_cifar_binary(bytes, "a", fine).pixels.at(0), 'a');
}

TEST(ParseCifarBinary, RejectsALabelBeyondTheClassesAndSaysWhere) {
  const auto bytes = record("\x01", 'a') + record("\x0a", 'a');
  EXPECT_EQ(error_of([&] { parse_cifar_binary(bytes, "a.bin", {}); }),
            "a.bin: byte 3073: label must be below 10, is 10");
}

TEST(ParseCifarBinary, RejectsPartsOfRecords) {
  EXPECT_EQ(error_of([] { parse_cifar_binary(record("\x01", 'a') + "xyz", "a.bin", {}); }),
            "a.bin: byte 3073: cut off: records have 3073 bytes, the last one has 3");
  EXPECT_EQ(error_of([] { parse_cifar_binary("x", "a.bin", {}); }),
            "a.bin: byte 0: cut off: records have 3073 bytes, the last one has 1");
}

TEST(ParseCifarBinary, RejectsAnEmptyFile) {
  EXPECT_EQ(error_of([] { parse_cifar_binary("", "a.bin", {}); }),
            "a.bin: is empty, must hold records of 3073 bytes");
}

TEST(ParseCifarBinary, RejectsALabelThatRecordsDoNotHave) {
  EXPECT_EQ(error_of([] { parse_cifar_binary(record("\x01", 'a'), "a.bin", {.label_index = 1}); }),
            "a.bin: label 1 must be one of the 1 of a record");
}

// An expression of Python and why it is refused when it is pickled.
struct Refusal {
  std::string expression;
  std::string message;
};

void expect_refusals(const std::vector<Refusal>& refusals) {
  std::vector<std::string> arguments;
  arguments.reserve(refusals.size());
  for (const auto& refusal : refusals) arguments.push_back(refusal.expression + ", protocol=2");
  const auto pickles = python_pickles(arguments);
  for (size_t i = 0; i < refusals.size(); ++i) {
    EXPECT_EQ(error_of([&] { parse_cifar_pickle(pickles.at(i), "a", "labels", 10); }),
              refusals.at(i).message);
  }
}

TEST(ParseCifarPickle, GivesWhatPythonPutThere) {
  for (const auto& bytes : in_all_protocols(
           "{b'data': (np.arange(2 * 3072) * 7 % 251).astype('u1').reshape(2, 3072), "
           "b'fine_labels':"
           " [5, 99], b'coarse_labels': [1, 19], b'filenames': [b'a.png', b'b.png']}")) {
    const auto images = parse_cifar_pickle(bytes, "a", "fine_labels", 100);
    EXPECT_EQ(images.labels, (std::vector<int64_t>{5, 99}));
    EXPECT_EQ(parse_cifar_pickle(bytes, "a", "coarse_labels", 20).labels,
              (std::vector<int64_t>{1, 19}));
    EXPECT_EQ(images.channels, 3);
    EXPECT_EQ(images.height, 32);
    EXPECT_EQ(images.width, 32);
    ASSERT_EQ(images.pixels.size(), 6144U);
    for (size_t i = 0; i < images.pixels.size(); ++i) ASSERT_EQ(images.pixels.at(i), i * 7 % 251);
  }
}

TEST(ParseCifarPickle, ReadsWhatPython2Wrote) {
  const auto images = parse_cifar_pickle(python2_cifar_pickle(), "a", "labels", 10);
  EXPECT_EQ(images.labels, (std::vector<int64_t>{6, 9}));
  EXPECT_EQ(images.pixels, std::vector<uint8_t>(6144));
}

TEST(ParseCifarPickle, ReadsThereWhatPython3ReadsToo) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a", python2_cifar_pickle());
  EXPECT_EQ(python_output("import sys, pickle\n"
                          "d = pickle.load(open(sys.argv[1], 'rb'), encoding='latin1')\n"
                          "print(sorted(d), d['labels'], d['data'].shape, d['data'].sum())",
                          {folder / "a"}),
            "['batch_label', 'data', 'filenames', 'labels'] [6, 9] (2, 3072) 0\n");
}

TEST(ParseCifarPickle, RejectsOtherContents) {
  expect_refusals(
      {{"[1]", "a: must hold a dict"},
       {"{'labels': [1]}", "a: has no 'data'"},
       {"{'data': [1], 'labels': [1]}", "a: 'data' must be an array of NumPy"},
       {"{'data': np.zeros((1, 3072), 'u1')}", "a: has no 'labels'"},
       {"{'data': np.zeros((1, 3072), 'u1'), 'labels': (1,)}", "a: 'labels' must be a list"}});
}

TEST(ParseCifarPickle, RejectsOtherArrays) {
  expect_refusals({{"{'data': np.zeros((2, 3071), 'u1'), 'labels': [1]}",
                    "a: 'data' must be bytes of shape [n, 3072], is u1 of shape [2, 3071]"},
                   {"{'data': np.zeros((2, 3072), 'f4'), 'labels': [1]}",
                    "a: 'data' must be bytes of shape [n, 3072], is f4 of shape [2, 3072]"},
                   {"{'data': np.zeros(3072, 'u1'), 'labels': [1]}",
                    "a: 'data' must be bytes of shape [n, 3072], is u1 of shape [3072]"},
                   {"{'data': np.zeros((0, 3072), 'u1'), 'labels': []}",
                    "a: 'data' must be bytes of shape [n, 3072], is u1 of shape [0, 3072]"}});
}

TEST(ParseCifarPickle, RejectsOtherLabels) {
  const std::string data = "{'data': np.zeros((2, 3072), 'u1'), 'labels': ";
  expect_refusals(
      {{data + "[1]}", "a: 'labels' must have as many labels as there are images, 2, has 1"},
       {data + "[1, 10]}", "a: 'labels' 1: label must be below 10, is 10"},
       {data + "[-1, 1]}", "a: 'labels' 0: label must be below 10, is -1"},
       {data + "[1, 1.0]}", "a: 'labels' 1: label must be an integer"}});
}

}  // namespace kelvin::cifar_test
