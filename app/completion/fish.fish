# Completion of kelvin for fish, printed by 'kelvin completion fish'. The tool itself says what may follow the words
# typed so far, so this need not change with it.
function __kelvin_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l tool $words[1]
    set -e words[1]
    # The first line tells which paths to offer, each other one has a word and what it means.
    set -l reply ($tool completion fish -- $words "$current" 2>/dev/null)
    set -l paths $reply[1]
    set -e reply[1]
    printf '%s\n' $reply
    set -l flag (string match -r -- '^-[^=]*=' "$current"; or echo)
    set -l path (string replace -r -- '^-[^=]*=' '' "$current")
    switch "$paths"
        case files
            printf '%s\n' $flag(__fish_complete_path "$path")
        case folders
            printf '%s\n' $flag(__fish_complete_directories "$path")
    end
end
complete -c kelvin -f -a '(__kelvin_complete)'
