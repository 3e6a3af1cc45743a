#include "kelvin/formats/cifar_pickle.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/pickles.h"

namespace kelvin {
namespace {

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

}  // namespace
}  // namespace kelvin
