# Completion of kelvin for bash, printed by 'kelvin completion bash'. The tool itself says what may follow the words
# typed so far, so this need not change with it.
_kelvin() {
  # Bash cuts words at = and : as well; pieces with no space between them are one word.
  local rest=${COMP_LINE:0:COMP_POINT} words=() i piece spaceless
  for ((i = 0; i <= COMP_CWORD; ++i)); do
    spaceless=${rest#"${rest%%[![:space:]]*}"}
    piece=${COMP_WORDS[i]}
    ((i < COMP_CWORD)) || piece=$spaceless
    if ((i > 0)) && [[ $spaceless == "$rest" ]]; then
      words[-1]+=$piece
    else
      words+=("$piece")
    fi
    rest=${spaceless#"$piece"}
  done
  # The first line tells which paths to offer, each other one has a word and what it means.
  local reply
  mapfile -t reply < <("${words[0]/#\~/$HOME}" completion bash -- "${words[@]:1}" 2>/dev/null)
  COMPREPLY=("${reply[@]:1}")
  COMPREPLY=("${COMPREPLY[@]%%$'\t'*}")
  # Bash replaces the last piece alone.
  local kept=${words[-1]%"$2"}
  COMPREPLY=("${COMPREPLY[@]#"$kept"}")
  case ${reply[0]} in
    files) compopt -o default ;;
    folders) compopt -o dirnames ;;
  esac
}
complete -F _kelvin kelvin
