#include "kelvin/formats/torch_file.h"

#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "kelvin/core/byte_reader.h"
#include "kelvin/core/check.h"
#include "kelvin/core/shown_text.h"
#include "kelvin/core/zip_file.h"
#include "kelvin/formats/pickle.h"
#include "kelvin/formats/torch_pickle.h"
#include "kelvin/formats/torch_tensors.h"

namespace kelvin {
namespace {

// The members of a zip by name.
class TorchZip {
 public:
  TorchZip(std::string_view file, const std::string& where) : file_(file, where) {
    for (const auto& member : zip_members(file_, "a file of torch.save")) {
      const bool is_new = members_.emplace(member.name, member).second;
      check(is_new, where, ": has two members '", shown_text(member.name), "'");
    }
    prefix_ = folder();
    check(!is_script(), where,
          ": is a program of TorchScript; must be a dict of tensors, save model.state_dict()");
    check(!members_.contains(prefix_ + "byteorder") || bytes_of("byteorder") == "little", where,
          ": must be little-endian");
  }

  // The bytes of a member in the archive's folder.
  std::string_view bytes_of(const std::string& name) const {
    const auto where = file_.where() + ": '" + shown_text(prefix_ + name) + "'";
    const auto found = members_.find(prefix_ + name);
    check(found != members_.end(), where, ": is not there");
    const auto& member = found->second;
    check(!member.is_encrypted, where, ": must not be encrypted");
    check(member.method == kZipStored && member.packed_size == member.size, where,
          ": must be stored uncompressed, has zip method ", member.method);
    const auto bytes = packed_bytes(file_, member, where);
    check_zip_crc(bytes, member, where);
    return bytes;
  }

 private:
  // All members lie in one folder, whose name is that of the file when it was saved.
  std::string folder() const {
    constexpr std::string_view kPickle = "/data.pkl";
    std::string folder;
    for (const auto& [name, member] : members_) {
      if (!name.ends_with(kPickle)) continue;
      check(folder.empty(), file_.where(), ": must have one data.pkl, has more");
      folder = name.substr(0, name.size() - kPickle.size() + 1);
    }
    check(!folder.empty(), file_.where(), ": is a zip, but none of torch.save: has no data.pkl");
    return folder;
  }

  bool is_script() const {
    const auto code = members_.lower_bound(prefix_ + "code/");
    return members_.contains(prefix_ + "constants.pkl") ||
           (code != members_.end() && code->first.starts_with(prefix_ + "code/"));
  }

  ByteReader file_;
  std::map<std::string_view, ZipMember> members_;
  std::string prefix_;
};

StoredTensors parse_zip(std::string_view file, const std::string& where) {
  const TorchZip zip(file, where);
  const auto inner = where + ": data.pkl";
  const auto pickle = parse_pickle(zip.bytes_of("data.pkl"), inner, torch_names());
  TorchStorages storages;
  for (size_t place = 0; place < pickle.size(); ++place) {
    const auto& value = pickle.at(place);
    if (value.kind != PickleKind::storage) continue;
    const auto key = pickle.at(value.items.at(0)).text;
    if (!storages.contains(key)) storages[key] = zip.bytes_of("data/" + std::string(key));
  }
  return torch_tensors(pickle, storages, file.size(), where);
}

// --- Before PyTorch 1.6: pickles one after the other, then the storages.

constexpr int64_t kProtocol = 1001;

// The first pickle is an integer of ten bytes.  Leaves `input` behind it.
void expect_magic(PickleInput& input, const std::string& where) {
  constexpr std::string_view kMagic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
  constexpr std::string_view kNoMagic = ": is a pickle, but none of torch.save";
  check(input.left() > 2 + kMagic.size(), where, kNoMagic);
  input.take(2);  // the protocol of the pickle
  if (input.peek() == '\x95') input.take(1 + sizeof(uint64_t));
  check(input.left() >= kMagic.size() && input.take(kMagic.size()) == kMagic, where, kNoMagic);
}

void check_system(const Pickle& system, const std::string& where) {
  const auto* is_little = system.root().kind == PickleKind::dict
                              ? system.find(system.root(), "little_endian")
                              : nullptr;
  check(is_little != nullptr && is_little->kind == PickleKind::boolean && is_little->integer == 1,
        where, ": must be little-endian");
}

// Bytes of an element of each storage that the pickle names.
std::map<std::string_view, uint64_t> element_sizes(const Pickle& pickle, const std::string& where) {
  std::map<std::string_view, uint64_t> sizes;
  for (size_t place = 0; place < pickle.size(); ++place) {
    const auto& value = pickle.at(place);
    if (value.kind != PickleKind::storage) continue;
    const auto key = pickle.at(value.items.at(0)).text;
    const auto size = torch_element_bytes(value.text);
    check(sizes.emplace(key, size).first->second == size, where, ": storage '", shown_text(key),
          "' has two types");
  }
  return sizes;
}

// The list of keys, then for each the number of elements and the elements.
TorchStorages take_storages(PickleInput& input, const Pickle& pickle, const std::string& where) {
  const auto sizes = element_sizes(pickle, where);
  const auto keys = take_pickle(input, torch_names());
  check(keys.root().kind == PickleKind::list, where, ": must have a list of storages");
  TorchStorages storages;
  for (const auto place : keys.root().items) {
    const auto& key = keys.at(place);
    const auto size = is_pickle_text(key) ? sizes.find(key.text) : sizes.end();
    check(size != sizes.end(), where, ": lists storage '", shown_text(key.text),
          "', which no tensor has");
    const auto count = input.number<int64_t>();
    uint64_t bytes = 0;
    const bool is_sane =
        count >= 0 && !__builtin_mul_overflow(static_cast<uint64_t>(count), size->second, &bytes);
    check(is_sane, where, ": storage '", shown_text(key.text), "' has a length of ", count);
    const bool is_new = storages.emplace(size->first, input.take(bytes)).second;
    check(is_new, where, ": lists storage '", shown_text(key.text), "' twice");
  }
  check(input.left() == 0, where, ": ", input.left(), " bytes follow the end");
  return storages;
}

StoredTensors parse_legacy(std::string_view file, const std::string& where) {
  PickleInput input(file, where);
  expect_magic(input, where);
  const auto protocol = take_pickle(input, torch_names());
  check(protocol.root().kind == PickleKind::integer && protocol.root().integer == kProtocol, where,
        ": must have protocol ", kProtocol, " of torch.save, has another one");
  check_system(take_pickle(input, torch_names()), where);
  const auto pickle = take_pickle(input, torch_names());
  const auto storages = take_storages(input, pickle, where);
  return torch_tensors(pickle, storages, file.size(), where);
}

}  // namespace

StoredTensors parse_torch_file(std::string file, const std::string& where) {
  const auto kept = std::make_shared<const std::string>(std::move(file));
  check(kept->starts_with("PK") || kept->starts_with('\x80'), where,
        ": is not a file of torch.save, begins with '", shown_text(kept->substr(0, 16)), "'");
  auto tensors = kept->starts_with("PK") ? parse_zip(*kept, where) : parse_legacy(*kept, where);
  tensors.file = kept;
  return tensors;
}

}  // namespace kelvin
