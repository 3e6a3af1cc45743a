#pragma once

#include <string>
#include <vector>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/python.h"

namespace kelvin {

// What Python's pickle.dumps makes of each of these calls' arguments, in one start of Python; numpy
// is at hand as np.
inline std::vector<std::string> python_pickles(const std::vector<std::string>& arguments) {
  const TemporaryFolder folder;
  std::string script = "import sys, pickle, numpy as np\n";
  for (size_t i = 0; i < arguments.size(); ++i) {
    script += "open(sys.argv[1] + '" + std::to_string(i) + "', 'wb').write(pickle.dumps(" +
              arguments.at(i) + "))\n";
  }
  python_output(script, {folder / "a"});
  std::vector<std::string> pickles;
  for (size_t i = 0; i < arguments.size(); ++i) {
    pickles.push_back(read_file(folder / ("a" + std::to_string(i))));
  }
  return pickles;
}

inline std::string python_pickle(const std::string& expression, int protocol) {
  return python_pickles({expression + ", protocol=" + std::to_string(protocol)}).at(0);
}

// The same value in every protocol that is read, 0 to 4.
inline std::vector<std::string> in_all_protocols(const std::string& expression) {
  std::vector<std::string> arguments;
  for (int protocol = 0; protocol <= 4; ++protocol) {
    arguments.push_back(expression + ", protocol=" + std::to_string(protocol));
  }
  return python_pickles(arguments);
}

// As Python 2 wrote CIFAR's own files: protocol 2, str for keys and elements.  The elements are
// those of two images, all zero.
inline std::string python2_cifar_pickle() {
  using namespace std::string_literals;
  const std::string count = "\x02\x00"s;
  const std::string elements = "\x00\x18\x00\x00"s + std::string(6144, '\0');
  return "\x80\x02}q\x01(U\x0b"s + "batch_labelq\x02U\x15training batch 1 of 5q\x03U\x06labels"s +
         "q\x04]q\x05(K\x06K\x09"s + "eU\x04"s + "dataq\x06"s +
         "cnumpy.core.multiarray\n_reconstruct\nq\x07"s + "cnumpy\nndarray\nq\x08K\x00\x85q\x09"s +
         "U\x01"s + "bq\n\x87q\x0bRq\x0c(K\x01"s + "M"s + count + "M\x00\x0c\x86q\x0d"s +
         "cnumpy\ndtype\nq\x0eU\x02u1q\x0fK\x00K\x01\x87q\x10Rq\x11(K\x03U\x01|q\x12NNN"s +
         "J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x13"s + "b\x89T"s + elements + "q\x14tq\x15"s +
         "bU\x09"s + "filenamesq\x16]q\x17(U\x05"s + "a.pngq\x18U\x05"s + "b.pngq\x19"s + "eu."s;
}

}  // namespace kelvin
