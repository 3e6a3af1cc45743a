#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace kelvin {

// JSON from files that may be damaged.  Whatever is not as it must be is an Error that names
// `origin` (a path, or a path and a line) and the key; no exception of the JSON library gets out.

// An object; the message of the Error is `origin` and "not a JSON object".  Nesting beyond what any
// of kelvin's files has is refused, because it would cost stack wherever the value is copied.
nlohmann::ordered_json parse_json_object(std::string_view text, const std::string& origin);
nlohmann::ordered_json load_json_object(const std::filesystem::path& path);

// JSON has no NaN or infinity: they are written as null, and come back as NaN.
double number_or_nan(const nlohmann::ordered_json& value, const std::string& origin);

// The fields of one object, by the type they must have.  It must outlive this.
class JsonFields {
 public:
  // An Error if `object` is none.
  JsonFields(const nlohmann::ordered_json& object, std::string origin);

  bool has(const std::string& key) const { return object_.contains(key); }

  // Each is an Error if the key is missing or holds something else.
  void read(const std::string& key, bool& field) const;
  void read(const std::string& key, int64_t& field) const;
  void read(const std::string& key, double& field) const;  // a number, not null
  void read(const std::string& key, std::string& field) const;
  void read(const std::string& key, std::map<std::string, int64_t>& field) const;
  bool flag(const std::string& key) const { return value_of<bool>(key); }
  int64_t whole(const std::string& key) const { return value_of<int64_t>(key); }
  double number(const std::string& key) const { return value_of<double>(key); }
  std::string text(const std::string& key) const { return value_of<std::string>(key); }
  double number_or_nan(const std::string& key) const;
  const nlohmann::ordered_json& list(const std::string& key) const;
  const nlohmann::ordered_json& object(const std::string& key) const;

  // Empty if the key is missing.
  std::string text_or_empty(const std::string& key) const;

  // What stands before messages about a field.
  std::string place_of(const std::string& key) const;

 private:
  const nlohmann::ordered_json& at(const std::string& key) const;

  template <class Value>
  Value value_of(const std::string& key) const {
    Value value{};
    read(key, value);
    return value;
  }

  const nlohmann::ordered_json& object_;
  std::string origin_;
};

}  // namespace kelvin
