#include "kelvin/formats/pickle.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/pickles.h"

namespace kelvin::pickle_test {

using namespace std::string_literals;

std::string refusal_of(const std::string& bytes) {
  return error_of([&] { parse_pickle(bytes, "a"); });
}

// A value as Python's repr shows it, for values without cycles.
std::string repr(const Pickle& pickle, const PickleValue& value) {
  const auto joined = [&](const std::string& open, const std::string& close) {
    std::string text;
    for (const auto item : value.items) {
      text += (text.empty() ? "" : ", ") + repr(pickle, pickle.at(item));
    }
    return open + text + close;
  };
  switch (value.kind) {
    case PickleKind::none:
      return "None";
    case PickleKind::boolean:
      return value.integer != 0 ? "True" : "False";
    case PickleKind::integer:
      return std::to_string(value.integer);
    case PickleKind::real:
      return std::to_string(value.real);
    case PickleKind::bytes:
      return "b'" + std::string(value.text) + "'";
    case PickleKind::text:
      return "'" + std::string(value.text) + "'";
    case PickleKind::list:
      return joined("[", "]");
    case PickleKind::tuple:
      return joined("(", ")");
    case PickleKind::dict:
      return joined("{", "}");
    default:
      return "?";
  }
}

std::string repr_of(const std::string& bytes) {
  const auto pickle = parse_pickle(bytes, "a");
  return repr(pickle, pickle.root());
}

TEST(ParsePickle, GivesPlainValuesOfPythonBack) {
  for (const auto& bytes : in_all_protocols(
           "{'n': None, 'b': [True, False], b'bytes\\xe9': (b'', b'\\x00\\xff'), 'i': [0, 255,"
           " 256, 65536, -1, 2**40, -2**63, 2**63 - 1], 'f': (1.5, -0.25), 't': 'a\\u20ac\\\\\\n',"
           " 'e': [[], (), {}], 1: (1,), 2: (1, 2), 3: (1, 2, 3), 4: (1, 2, 3, 4)}")) {
    EXPECT_EQ(repr_of(bytes),
              "{'n', None, 'b', [True, False], b'bytes\xe9', (b'', b'\0\xff'), 'i', [0, 255, 256, "
              "65536, -1, 1099511627776, -9223372036854775808, 9223372036854775807], 'f', "
              "(1.500000, -0.250000), 't', 'a\xe2\x82\xac\\\n', 'e', [[], (), {}], 1, (1), 2, (1, "
              "2), 3, (1, 2, 3), 4, (1, 2, 3, 4)}"s);
  }
}

TEST(ParsePickle, GivesArraysOfNumpyBack) {
  for (const auto& bytes :
       in_all_protocols("{'x': np.arange(6, dtype='u1').reshape(2, 3) * 50, 'y': np.arange(3)}")) {
    const auto pickle = parse_pickle(bytes, "a");
    const auto* x = pickle.find(pickle.root(), "x");
    ASSERT_NE(x, nullptr);
    ASSERT_EQ(x->kind, PickleKind::array);
    EXPECT_EQ(pickle.array(*x).dtype, "u1");
    EXPECT_EQ(pickle.array(*x).shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(pickle.array(*x).bytes, "\0\x32\x64\x96\xc8\xfa"s);
    const auto& y = *pickle.find(pickle.root(), "y");
    EXPECT_EQ(pickle.array(y).dtype, "i8");
    EXPECT_EQ(pickle.array(y).bytes.size(), 24U);
  }
}

TEST(ParsePickle, SharesWhatIsShared) {
  for (const auto& bytes : in_all_protocols("(lambda x: [x, x])(['once'])")) {
    const auto pickle = parse_pickle(bytes, "a");
    ASSERT_EQ(pickle.root().items.size(), 2U);
    EXPECT_EQ(pickle.root().items.at(0), pickle.root().items.at(1));
  }
}

TEST(ParsePickle, RefusesWhatWouldRunCode) {
  for (const auto& bytes : in_all_protocols("type('Evil', (), {'__reduce__': lambda self: "
                                            "(__import__('os').system, ('exit',))})()")) {
    const auto message = refusal_of(bytes);
    EXPECT_NE(message.find("refuses to build 'posix.system': only arrays of NumPy are known"),
              std::string::npos)
        << message;
  }
}

TEST(ParsePickle, FindsTheLastOfEqualKeysAndNoneThatIsNotThere) {
  const auto bytes = "(X\x01\x00\x00\x00kK\x01X\x01\x00\x00\x00kK\x02K\x05K\x06"s + "d."s;
  const auto pickle = parse_pickle(bytes, "a");
  ASSERT_NE(pickle.find(pickle.root(), "k"), nullptr);
  EXPECT_EQ(pickle.find(pickle.root(), "k")->integer, 2);
  EXPECT_EQ(pickle.find(pickle.root(), "j"), nullptr);
}

TEST(ParsePickle, FollowsTheStackOfPython) {
  EXPECT_EQ(repr_of("K\x01K\x02"s + "0."s), "1");           // POP
  EXPECT_EQ(repr_of("K\x01(K\x02K\x03"s + "1."s), "1");     // POP_MARK
  EXPECT_EQ(repr_of("K\x01(0."s), "1");                     // POP of a mark
  EXPECT_EQ(repr_of("K\x01"s + "2\x86."s), "(1, 1)");       // DUP
  EXPECT_EQ(repr_of("(K\x01K\x02lp7\n0g7\n."s), "[1, 2]");  // LIST, PUT, GET
  EXPECT_EQ(repr_of("K\x09\x94\x8c\x01x\x94h\x00\x87."s), "(9, 'x', 9)");
}

TEST(ParsePickle, HoldsAListThatContainsItself) {
  const auto pickle = parse_pickle("]q\x00h\x00"s + "a."s, "a");
  ASSERT_EQ(pickle.root().items.size(), 1U);
  EXPECT_EQ(&pickle.at(pickle.root().items.at(0)), &pickle.root());
}

TEST(ParsePickle, HoldsDictsAndTuplesThatContainThemselves) {
  EXPECT_NO_THROW(parse_pickle("}q\x00K\x01h\x00s."s, "a"));
  EXPECT_NO_THROW(parse_pickle("]q\x00(h\x00tq\x01"s + "a."s, "a"));
}

// A billion values by thirty doublings; shared, they are thirty.
TEST(ParsePickle, IsNotBlownUpByReferences) {
  std::string bytes = "]q\x00"s;
  for (char i = 0; i < 30; ++i) {
    bytes += "(h"s + i + "h"s + i + "lq"s + static_cast<char>(i + 1);
  }
  const auto pickle = parse_pickle(bytes.append(30, '\x86') + "."s, "a");
  EXPECT_EQ(pickle.root().items.size(), 2U);
}

TEST(ParsePickle, HoldsDeepNesting) {
  const std::string deep = std::string(200000, ']') + std::string(199999, 'a') + ".";
  const auto pickle = parse_pickle(deep, "a");
  EXPECT_EQ(pickle.root().items.size(), 1U);
}

TEST(ParsePickle, LimitsTheNumberOfValues) {
  EXPECT_EQ(refusal_of(std::string(1100000, 'N')),
            "a: byte 1048576: must have at most 1048576 values");
  EXPECT_EQ(refusal_of("N" + std::string(1100000, '2')),
            "a: byte 1048576: must have at most 1048576 values");
  EXPECT_EQ(refusal_of(std::string(1100000, '(')),
            "a: byte 1048576: must have at most 1048576 values");
  EXPECT_EQ(refusal_of("N" + std::string(1100000, '\x94')),
            "a: byte 1048576: must have at most 1048576 values");
}

TEST(ParsePickle, LimitsTheTextThatIsEncodedAgain) {
  std::string bytes = "c_codecs\nencode\nq\x00"s + "X\x00\x10\x00\x00"s + std::string(4096, 'x') +
                      "X\x06\x00\x00\x00latin1\x86q\x01"s;
  for (int i = 0; i < 100; ++i) bytes += "h\x00h\x01R0"s;
  EXPECT_NE(refusal_of(bytes + "N.").find("holds more text than the file"), std::string::npos);
}

TEST(ParsePickle, RefusesNamesInEveryOpcodeThatHasThem) {
  EXPECT_EQ(refusal_of("cos\nsystem\n(S'true'\ntR."),
            "a: byte 0: refuses to build 'os.system': only arrays of NumPy are known");
  EXPECT_EQ(refusal_of("\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R."s),
            "a: byte 14: refuses to build 'os.system': only arrays of NumPy are known");
  EXPECT_EQ(refusal_of("c__builtin__\neval\n(S'1'\ntR."),
            "a: byte 0: refuses to build '__builtin__.eval': only arrays of NumPy are known");
  EXPECT_EQ(refusal_of("(S'true'\nios\nsystem\n."),
            "a: byte 9: refuses to build 'os.system': only arrays of NumPy are known");
  EXPECT_EQ(refusal_of("(cnumpy\nndarray\no."),
            "a: byte 16: opcode 111 is refused: it makes no plain value");
  EXPECT_EQ(refusal_of("cnumpy\nndarray\n)\x81."),
            "a: byte 16: opcode 129 is refused: it makes no plain value");
}

TEST(ParsePickle, ShowsHostileNamesInOnePrintableLine) {
  EXPECT_EQ(refusal_of("c\x1b[2J\xff\r\nx\n."),
            "a: byte 0: refuses to build '?[2J??.x': only arrays of NumPy are known");
  EXPECT_LT(refusal_of("c" + std::string(100000, 'm') + "\nx\n.").size(), 200U);
}

TEST(ParsePickle, RefusesExtensionsAndPersistentIds) {
  for (const std::string bytes : {"\x82\x01.", "\x83\x01\x01.", "\x84\x01\x01\x01\x01.", "Pid\n.",
                                  "NQ.", "\x97.", "\x98.", "N)\x81.", "N)}\x92."}) {
    EXPECT_NE(refusal_of(bytes).find("is refused: it makes no plain value"), std::string::npos);
  }
}

TEST(ParsePickle, RefusesAnEmptyStack) {
  EXPECT_EQ(refusal_of("."), "a: byte 0: the stack is empty");
  EXPECT_EQ(refusal_of("N(a."), "a: byte 2: the stack is empty");  // not through a mark
  EXPECT_EQ(refusal_of("0."), "a: byte 0: the stack is empty");
  EXPECT_EQ(refusal_of("t."), "a: byte 0: there is no mark on the stack");
  EXPECT_EQ(refusal_of("NN\x87."), "a: byte 2: the stack is empty");
}

TEST(ParsePickle, RefusesWhatDoesNotFit) {
  EXPECT_EQ(refusal_of("NNa."), "a: byte 2: must have a list to put values into");
  EXPECT_EQ(refusal_of("]NNs."), "a: byte 3: must have a dict to put values into");
  EXPECT_EQ(refusal_of("}(Nu."), "a: byte 3: a dict must have a value for each key");
  EXPECT_EQ(refusal_of("h\x05."), "a: byte 0: value 5 is not remembered");
  EXPECT_EQ(refusal_of("NN\x93."), "a: byte 2: module and name must be text");
}

TEST(ParsePickle, RefusesABadEnd) {
  EXPECT_EQ(refusal_of(""), "a: byte 0: cut off: needs 1 bytes, has 0");
  EXPECT_EQ(refusal_of("N"), "a: byte 1: cut off: needs 1 bytes, has 0");
  EXPECT_EQ(refusal_of("NN."), "a: byte 2: values are left over at the end");
  EXPECT_EQ(refusal_of("N.x"), "a: byte 1: 1 bytes follow the end");
}

TEST(ParsePickle, RefusesOtherProtocolsAndFalseFrames) {
  EXPECT_EQ(refusal_of("\x80\x06N."), "a: byte 0: protocol must be at most 5, is 6");
  EXPECT_EQ(refusal_of("\x95\xff\x00\x00\x00\x00\x00\x00\x00N."s),
            "a: byte 0: cut off: needs 255 bytes, has 2");
}

TEST(ParsePickle, RefusesAFileCutOffAtAnyByte) {
  for (const auto& bytes : in_all_protocols("{'x': np.zeros(3, 'u1'), 'y': [1, 'a']}")) {
    for (size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_THROW(parse_pickle(bytes.substr(0, length), "a"), Error) << length;
    }
  }
}

TEST(ParsePickle, ReadsProtocol5AndSetsAsLists) {
  for (const auto& bytes :
       python_pickles({"[{1}, frozenset([2]), bytearray(b'abc')], protocol=4",
                       "[{1}, frozenset([2]), bytearray(b'abc')], protocol=5"})) {
    if (bytes.find("bytearray") != std::string::npos) continue;  // built by name in protocol 4
    const auto pickle = parse_pickle(bytes, "a");
    ASSERT_EQ(pickle.root().items.size(), 3U);
    for (int i = 0; i < 2; ++i) {
      const auto& set = pickle.at(pickle.root().items.at(static_cast<size_t>(i)));
      EXPECT_EQ(set.kind, PickleKind::list);
      EXPECT_EQ(pickle.at(set.items.at(0)).integer, i + 1);
    }
    EXPECT_EQ(pickle.at(pickle.root().items.at(2)).text, "abc");
  }
}

}  // namespace kelvin::pickle_test
