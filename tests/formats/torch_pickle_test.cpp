#include "kelvin/formats/torch_pickle.h"

#include <gtest/gtest.h>

#include <string>

#include "kelvin/formats/pickle.h"
#include "tests/support/errors.h"
#include "tests/support/pickles.h"
#include "tests/support/torch_files.h"

namespace kelvin {
namespace {

using namespace std::string_literals;

Pickle parsed(const std::string& bytes) { return parse_pickle(bytes, "a", torch_names()); }

// Why the file is refused, without its place.
std::string refusal_of(const std::string& bytes) {
  const auto message = error_of([&] { parsed(bytes); });
  return message.substr(message.find(": ", 3) + 2);
}

const std::string kStorage = "(" + pickled_text("storage") + "ctorch\nHalfStorage\n" +
                             pickled_text("7") + pickled_text("cuda:0") + "K\x05tQ"s;
const std::string kOrderedDict = "ccollections\nOrderedDict\n";

TEST(TorchPickle, MarksStorages) {
  const auto bytes = kStorage + ".";
  const auto pickle = parsed(bytes);
  ASSERT_EQ(pickle.root().kind, PickleKind::storage);
  EXPECT_EQ(pickle.root().text, "F16");
  EXPECT_EQ(pickle.at(pickle.root().items.at(0)).text, "7");
  EXPECT_EQ(pickle.at(pickle.root().items.at(1)).integer, 5);
}

TEST(TorchPickle, MarksTensorsOfEveryAge) {
  const auto arguments = "(" + kStorage + "K\x01(K\x02tK\x03\x85"s;
  for (const auto& bytes :
       {"ctorch._utils\n_rebuild_tensor\n" + arguments + "tR.",
        "ctorch._utils\n_rebuild_tensor_v2\n" + arguments + "\x89}tR.",
        "ctorch._utils\n_rebuild_tensor_v2\n" + arguments + "\x89}NtR.",
        "ctorch._utils\n_rebuild_tensor_v2\n" + arguments + "\x89}}tR.",
        "ctorch._utils\n_rebuild_parameter\n(ctorch._utils\n_rebuild_tensor_v2\n" + arguments +
            "\x89}tR\x88}tR.",
        "ctorch.nn.parameter\nParameter\n(ctorch._utils\n_rebuild_tensor\n" + arguments +
            "tRtR(\x88\x89}tb."}) {
    const auto pickle = parsed(bytes);
    ASSERT_EQ(pickle.root().kind, PickleKind::tensor);
    ASSERT_EQ(pickle.root().items.size(), 4U);
    EXPECT_EQ(pickle.at(pickle.root().items.at(0)).text, "F16");
    EXPECT_EQ(pickle.at(pickle.root().items.at(1)).integer, 1);
    EXPECT_EQ(pickle.at(pickle.at(pickle.root().items.at(2)).items.at(0)).integer, 2);
    EXPECT_EQ(pickle.at(pickle.at(pickle.root().items.at(3)).items.at(0)).integer, 3);
  }
}

TEST(TorchPickle, MakesDictsOfOrderedDicts) {
  for (const auto& bytes : {kOrderedDict + ")R(K\x01K\x02K\x03Nu."s,
                            kOrderedDict + "(](](K\x01K\x02"s + "e(K\x03NtetR."s,
                            kOrderedDict + ")R(K\x01K\x02K\x03Nu}U\x09_metadataNsb."s}) {
    const auto pickle = parsed(bytes);
    ASSERT_EQ(pickle.root().kind, PickleKind::dict);
    ASSERT_EQ(pickle.root().items.size(), 4U);
    EXPECT_EQ(pickle.at(pickle.root().items.at(1)).integer, 2);
    EXPECT_EQ(pickle.at(pickle.root().items.at(3)).kind, PickleKind::none);
  }
}

TEST(TorchPickle, ReadsOrderedDictsOfPython) {
  for (const auto& bytes : in_all_protocols(
           "__import__('collections').OrderedDict([('a', [1]), ('b', {'c': None})])")) {
    const auto pickle = parsed(bytes);
    ASSERT_EQ(pickle.root().kind, PickleKind::dict);
    ASSERT_NE(pickle.find(pickle.root(), "b"), nullptr);
    EXPECT_EQ(pickle.find(pickle.root(), "b")->kind, PickleKind::dict);
  }
}

TEST(TorchPickle, MakesATupleOfASize) {
  const auto pickle = parsed("ctorch\nSize\n((K\x02K\x03ttR."s);
  EXPECT_EQ(pickle.root().kind, PickleKind::tuple);
  EXPECT_EQ(pickle.root().items.size(), 2U);
}

TEST(TorchPickle, RefusesAllOtherNames) {
  EXPECT_EQ(refusal_of("cposix\nsystem\n(Vtrue\ntR."),
            "refuses to build 'posix.system': only tensors and plain values are known");
  EXPECT_EQ(refusal_of("\x80\x04\x8c\x08"s + "builtins\x8c\x04" + "eval\x93."),
            "refuses to build 'builtins.eval': only tensors and plain values are known");
  for (const std::string name :
       {"numpy.core.multiarray\n_reconstruct", "_codecs\nencode", "torch\nComplexFloatStorage",
        "torch\nQInt8Storage", "torch._utils\n_rebuild_qtensor", "torch\nload", "\n", "torch\n"}) {
    EXPECT_NE(refusal_of("c" + name + "\n.").find("only tensors and plain values are known"),
              std::string::npos)
        << name;
  }
}

TEST(TorchPickle, SaysWhatToSaveInsteadOfAModel) {
  EXPECT_EQ(refusal_of("c__main__\nNet\n)\x81."),
            "refuses to build '__main__.Net': only dicts of tensors are read; of a model, save "
            "model.state_dict()");
}

TEST(TorchPickle, ShowsHostileNamesInOnePrintableLine) {
  EXPECT_EQ(refusal_of("c\x1b[2J\r\nx\n."),
            "refuses to build '?[2J?.x': only tensors and plain values are known");
  EXPECT_LT(refusal_of("c" + std::string(100000, 'm') + "\nx\n.").size(), 200U);
}

// Neither reader knows the names of the other.
TEST(TorchPickle, IsNoPickleOfNumpy) {
  EXPECT_NE(error_of([] {
              parse_pickle(kStorage + ".", "a");
            }).find("refuses to build 'torch.HalfStorage': only arrays of NumPy are known"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              parse_pickle(kOrderedDict + ")R.", "a");
            }).find("refuses to build 'collections.OrderedDict': only arrays of NumPy"),
            std::string::npos);
  for (const auto& bytes : in_all_protocols("{'data': np.zeros(3)}")) {
    EXPECT_NE(refusal_of(bytes).find("refuses to build 'numpy"), std::string::npos);
  }
}

TEST(TorchPickle, RefusesOtherCallsOfTheNamesItKnows) {
  EXPECT_EQ(refusal_of("ctorch\nFloatStorage\n)R."), "torch.FloatStorage must not be called");
  EXPECT_EQ(refusal_of("ctorch._utils\n_rebuild_parameter\n)R."), "a parameter must have a tensor");
  EXPECT_EQ(refusal_of("ctorch.nn.parameter\nParameter\n(NtR."), "a parameter must have a tensor");
  EXPECT_EQ(refusal_of("ctorch\nSize\n)R."), "torch.Size must have a tuple of integers");
  EXPECT_EQ(refusal_of("ctorch\nSize\n(K\x02K\x03tR."s),
            "torch.Size must have a tuple of integers");
  for (const std::string arguments : {"(Nt", "(]]t", "(](Net", "(](](NNNeet",
                                      "(](K\x01"
                                      "et"}) {
    EXPECT_EQ(refusal_of(kOrderedDict + arguments + "R."),
              "OrderedDict must have nothing or a list of pairs as arguments")
        << arguments;
  }
  EXPECT_EQ(refusal_of("N)R."), "REDUCE must have a name and a tuple");
  EXPECT_EQ(refusal_of("]}b."), "BUILD must have a dict or a tensor");
}

TEST(TorchPickle, RefusesTensorsThatAreNone) {
  const std::string needed = "a tensor must have a storage, an offset, a shape and strides";
  const auto with = [](const std::string& arguments) {
    return refusal_of("ctorch._utils\n_rebuild_tensor_v2\n(" + arguments + "tR.");
  };
  EXPECT_EQ(with(""), needed);
  EXPECT_EQ(with(kStorage + "K\x01))"s), needed);
  EXPECT_EQ(with("NK\x01))\x89}"s), needed);
  EXPECT_EQ(with(kStorage + "N))\x89}"), needed);
  EXPECT_EQ(with(kStorage + "K\x01])\x89}"s), needed);
  EXPECT_EQ(with(kStorage + "K\x01)(Nt\x89}"s), needed);
  EXPECT_EQ(with(kStorage + "K\x01)(G" + std::string(8, '\0') + "t\x89}"), needed);
  EXPECT_EQ(with(kStorage + "K\x01))\x89}NN"s), needed);
  EXPECT_EQ(with(kStorage + "K\x01))\x89}}U\x03neg\x88s"s),
            "a tensor must hold its values as they are, this one has metadata");
}

TEST(TorchPickle, RefusesPersistentIdsThatAreNoStorages) {
  const auto with = [](const std::string& id) { return refusal_of(id + "Q."); };
  EXPECT_EQ(with("N"), "a persistent id must be that of a storage");
  EXPECT_EQ(with("(Vmodule\nNNNNt"), "a persistent id must be that of a storage");
  EXPECT_EQ(with("(Vstorage\nNNNt"), "a persistent id must be that of a storage");
  const std::string needed = "a storage must have a type, a key and a count of elements";
  EXPECT_EQ(with("(Vstorage\nNV0\nNK\x01t"s), needed);
  EXPECT_EQ(with("(Vstorage\nccollections\nOrderedDict\nV0\nNK\x01t"s), needed);
  EXPECT_EQ(with("(Vstorage\nctorch\nFloatStorage\nNNK\x01t"s), needed);
  EXPECT_EQ(with("(Vstorage\nctorch\nFloatStorage\nV0\nNNt"), needed);
  EXPECT_EQ(with("(Vstorage\nctorch\nFloatStorage\nV0\nNI-1\nt"), needed);
  EXPECT_EQ(with("(Vstorage\nctorch\nFloatStorage\nV" + std::string(257, '0') + "\nNK\x01t"),
            needed);
  EXPECT_EQ(with("(Vstorage\nctorch\nFloatStorage\nV0\nNK\x01(Nt" + "t"s),
            "a storage that is a view of another one is not supported");
}

// Each call copies the list: a few bytes that take a million values.
TEST(TorchPickle, LimitsWhatCallsCopy) {
  std::string bytes = kOrderedDict + "q\x00]q\x01("s;
  for (int i = 0; i < 1000; ++i) bytes += "NN\x86"s;
  bytes += "eh\x01\x85q\x02"s;
  for (int i = 0; i < 1000; ++i) bytes += "h\x00h\x02R"s;
  EXPECT_EQ(refusal_of(bytes), "must have at most 1048576 values");
}

}  // namespace
}  // namespace kelvin
