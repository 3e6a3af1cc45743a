#compdef kelvin
# Completion of kelvin for zsh, printed by 'kelvin completion zsh'. The tool itself says what may follow the words typed
# so far, so this need not change with it.
_kelvin() {
  # The first line tells which paths to offer, each other one has a word and what it means.
  local -a reply found
  reply=("${(@f)$(${(Q)words[1]/#\~/$HOME} completion zsh -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
  local line word
  for line in "${(@)reply[2,-1]}"; do
    word=${line%%$'\t'*}
    found+=("${word//:/\\:}:${line#*$'\t'}")
  done
  local failed=1
  ((${#found})) && _describe -V kelvin found && failed=0
  [[ $PREFIX == -*=* ]] && compset -P 1 '*='
  case ${reply[1]} in
    files) _files && failed=0 ;;
    folders) _files -/ && failed=0 ;;
  esac
  return failed
}
# From a folder of functions zsh runs this file as the function; elsewhere it only declares it.
if [[ ${funcstack[1]} == _kelvin ]]; then
  _kelvin "$@"
else
  compdef _kelvin kelvin
fi
