#include <gtest/gtest.h>

#include <string>

#include "kelvin/formats/pickle.h"
#include "kelvin/formats/torch_file.h"
#include "tests/support/errors.h"
#include "tests/support/pickles.h"
#include "tests/support/torch_files.h"

namespace kelvin::torch_pickle_test {

using namespace std::string_literals;

Pickle parsed_pickle(const std::string& bytes) { return parse_pickle(bytes, "a", torch_names()); }

// Why the file is refused, without its place.
std::string pickle_refusal_of(const std::string& bytes) {
  const auto message = error_of([&] { parsed_pickle(bytes); });
  return message.substr(message.find(": ", 3) + 2);
}

const std::string kStorage = "(" + pickled_text("storage") + "ctorch\nHalfStorage\n" +
                             pickled_text("7") + pickled_text("cuda:0") + "K\x05tQ"s;
const std::string kOrderedDict = "ccollections\nOrderedDict\n";

TEST(TorchPickle, MarksStorages) {
  const auto bytes = kStorage + ".";
  const auto pickle = parsed_pickle(bytes);
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
    const auto pickle = parsed_pickle(bytes);
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
    const auto pickle = parsed_pickle(bytes);
    ASSERT_EQ(pickle.root().kind, PickleKind::dict);
    ASSERT_EQ(pickle.root().items.size(), 4U);
    EXPECT_EQ(pickle.at(pickle.root().items.at(1)).integer, 2);
    EXPECT_EQ(pickle.at(pickle.root().items.at(3)).kind, PickleKind::none);
  }
}

TEST(TorchPickle, ReadsOrderedDictsOfPython) {
  for (const auto& bytes : in_all_protocols(
           "__import__('collections').OrderedDict([('a', [1]), ('b', {'c': None})])")) {
    const auto pickle = parsed_pickle(bytes);
    ASSERT_EQ(pickle.root().kind, PickleKind::dict);
    ASSERT_NE(pickle.find(pickle.root(), "b"), nullptr);
    EXPECT_EQ(pickle.find(pickle.root(), "b")->kind, PickleKind::dict);
  }
}

TEST(TorchPickle, MakesATupleOfASize) {
  const auto pickle = parsed_pickle("ctorch\nSize\n((K\x02K\x03ttR."s);
  EXPECT_EQ(pickle.root().kind, PickleKind::tuple);
  EXPECT_EQ(pickle.root().items.size(), 2U);
}

// What only running the pickle could build is a mark that holds nothing, whatever is done to it.
TEST(TorchPickle, MakesObjectsOfAllOtherNames) {
  const auto object = [](const std::string& bytes) {
    const auto pickle = parsed_pickle(bytes);
    EXPECT_EQ(pickle.root().kind, PickleKind::object) << bytes;
    EXPECT_TRUE(pickle.root().items.empty());
    return std::string(pickle.root().text);
  };
  EXPECT_EQ(object("cposix\nsystem\n(Vtrue\ntR."), "posix.system");
  EXPECT_EQ(object("\x80\x04\x8c\x08"s + "builtins\x8c\x04" + "eval\x93."), "builtins.eval");
  EXPECT_EQ(object("c__main__\nNet\n)\x81}Vx\nNsb."), "__main__.Net");
  EXPECT_EQ(object("cargparse\nNamespace\n)}\x92(Va\nNu."), "argparse.Namespace");
  EXPECT_EQ(object("(Vx\nios\nsystem\n."), "os.system");
  EXPECT_EQ(object("(cos\nsystem\nVx\no."), "os.system");
  EXPECT_EQ(object("cmy\nList\n)R(NNe."), "my.List");
  for (const std::string name :
       {"numpy.core.multiarray\n_reconstruct", "_codecs\nencode", "torch\nfloat32",
        "torch._utils\n_rebuild_qtensor", "torch\nload", "\n", "torch\n"}) {
    object("c" + name + "\n.");
  }
}

TEST(TorchPickle, ReadsWhateverPythonPicklesBesideTensors) {
  for (int protocol = 0; protocol <= 5; ++protocol) {
    const auto bytes = python_pickle(
        "{'args': __import__('argparse').Namespace(lr=0.1, ids=[1, 2]), 'acc': np.float64(91.5),"
        " 'loss': np.float32(0.5), 'many': np.arange(5.), 'state': np.random.PCG64(1).state,"
        " 'path': __import__('pathlib').Path('/x'), 'when': __import__('datetime').date(2020, 1, "
        "1),"
        " 'defaults': __import__('collections').defaultdict(list, a=[1]), 'set': {1, 2},"
        " 'bytes': b'abc', 'array': bytearray(b'abc'), 'type': int, 'function': len, 'huge': 2 ** "
        "100,"
        " 'complex': 1 + 2j, 'slice': slice(1, 2), 'epoch': 3}",
        protocol);
    const auto pickle = parsed_pickle(bytes);
    ASSERT_EQ(pickle.root().kind, PickleKind::dict) << protocol;
    EXPECT_EQ(pickle.find(pickle.root(), "args")->kind, PickleKind::object);
    // Before protocol 2 objects are made by a function.
    EXPECT_EQ(pickle.find(pickle.root(), "args")->text,
              protocol < 2 ? "copy_reg._reconstructor" : "argparse.Namespace");
    EXPECT_EQ(pickle.find(pickle.root(), "acc")->kind, PickleKind::object);
    EXPECT_EQ(pickle.find(pickle.root(), "defaults")->kind, PickleKind::dict);
    EXPECT_EQ(pickle.find(pickle.root(), "epoch")->integer, 3);
  }
}

TEST(TorchPickle, ShowsHostileNamesInOnePrintableLine) {
  const std::string strange = "c\x1b[2J\r\nx\n.";
  EXPECT_EQ(parsed_pickle(strange).root().text, "?[2J?.x");
  const auto long_name = "c" + std::string(100000, 'm') + "\nx\n.";
  EXPECT_LT(parsed_pickle(long_name).root().text.size(), 200U);
}

// A tensor that somebody set an attribute on, and one of a storage whose type is not known.
TEST(TorchPickle, TakesTensorsWithAttributesAndSkipsThoseOfOtherTypes) {
  const auto arguments = "(" + kStorage + "K\x01(K\x02tK\x03\x85"s;
  for (const std::string name : {"_rebuild_from_type_v2", "_rebuild_from_type"}) {
    const auto bytes = "ctorch._tensor\n" + name + "\n(ctorch._utils\n_rebuild_tensor_v2\n" +
                       "ctorch\nTensor\n" + arguments + "\x89}t}tR.";
    EXPECT_EQ(parsed_pickle(bytes).root().kind, PickleKind::tensor) << name;
  }
  EXPECT_EQ(parsed_pickle("ctorch._utils\n_rebuild_parameter_with_state\n(ctorch._utils\n"
                          "_rebuild_tensor_v2\n" +
                          arguments + "\x89}tR\x88}}tR.")
                .root()
                .kind,
            PickleKind::tensor);
  for (const std::string type : {"ComplexFloatStorage", "QInt8Storage", "Float8_e5m2Storage"}) {
    const auto storage = "(" + pickled_text("storage") + "ctorch\n" + type + "\n" +
                         pickled_text("7") + pickled_text("cpu") + "K\x05tQ"s;
    const auto bytes = "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + "K\x01))\x89}tR."s;
    EXPECT_EQ(parsed_pickle(bytes).root().kind, PickleKind::object) << type;
  }
  EXPECT_EQ(pickle_refusal_of("ctorch._tensor\n_rebuild_from_type_v2\n)R."),
            "a tensor with attributes must have a function, a class and arguments");
  EXPECT_EQ(pickle_refusal_of("ctorch._tensor\n_rebuild_from_type_v2\nq\x00(h\x00N)}tR."s),
            "a tensor with attributes must have a function that makes a tensor");
}

TEST(TorchElementBytes, KnowsStoragesThatAreSkipped) {
  EXPECT_EQ(torch_element_bytes("F32"), 4U);
  EXPECT_EQ(torch_element_bytes("C128"), 16U);
  EXPECT_EQ(torch_element_bytes("QI8"), 1U);
  EXPECT_EQ(torch_element_bytes("X"), 0U);
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
    const auto pickle = parsed_pickle(bytes);
    EXPECT_EQ(pickle.find(pickle.root(), "data")->kind, PickleKind::object);
  }
}

TEST(TorchPickle, RefusesOtherCallsOfTheNamesItKnows) {
  EXPECT_EQ(pickle_refusal_of("ctorch\nFloatStorage\n)R."),
            "torch.FloatStorage must not be called");
  EXPECT_EQ(pickle_refusal_of("ctorch._utils\n_rebuild_parameter\n)R."),
            "a parameter must have a tensor");
  EXPECT_EQ(pickle_refusal_of("ctorch.nn.parameter\nParameter\n(NtR."),
            "a parameter must have a tensor");
  EXPECT_EQ(pickle_refusal_of("ctorch\nSize\n)R."), "torch.Size must have a tuple of integers");
  EXPECT_EQ(pickle_refusal_of("ctorch\nSize\n(K\x02K\x03tR."s),
            "torch.Size must have a tuple of integers");
  for (const std::string arguments : {"(Nt", "(]]t", "(](Net", "(](](NNNeet",
                                      "(](K\x01"
                                      "et"}) {
    EXPECT_EQ(pickle_refusal_of(kOrderedDict + arguments + "R."),
              "OrderedDict must have nothing or a list of pairs as arguments")
        << arguments;
  }
  EXPECT_EQ(pickle_refusal_of("N)R."), "REDUCE must have a name and a tuple");
  EXPECT_EQ(pickle_refusal_of("]}b."), "BUILD must have a dict or a tensor");
}

TEST(TorchPickle, RefusesTensorsThatAreNone) {
  const std::string needed = "a tensor must have a storage, an offset, a shape and strides";
  const auto with = [](const std::string& arguments) {
    return pickle_refusal_of("ctorch._utils\n_rebuild_tensor_v2\n(" + arguments + "tR.");
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
  const auto with = [](const std::string& id) { return pickle_refusal_of(id + "Q."); };
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
  EXPECT_EQ(pickle_refusal_of(bytes), "must have at most 1048576 values");
}

}  // namespace kelvin::torch_pickle_test
