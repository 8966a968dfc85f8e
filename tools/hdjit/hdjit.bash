# SPDX-License-Identifier: MIT
# bash completion for hdjit(1). The options come from `hdjit COMMAND --help`, so they are always those of the program.

_hdjit_options()
{
    # shellcheck disable=SC2086 # the command may be two words
    "$1" $2 --help 2>/dev/null | sed -n 's/^  \(-[A-Za-z],\)\{0,1\} *\(--*[A-Za-z_-]*=\{0,1\}\).*/\2/p'
}

_hdjit_commands()
{
    "$1" --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' | tr '\n' ' '
}

_hdjit()
{
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command='' word
    local commands cache_commands="stats list path verify trim clear explain"
    commands=$(_hdjit_commands "${COMP_WORDS[0]}")

    COMPREPLY=()
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case " $commands " in
        *" $word "*) command=$word; break ;;
        esac
    done
    if [ "$command" = cache ]; then
        for word in "${COMP_WORDS[@]:2:COMP_CWORD-2}"; do
            case " $cache_commands " in
            *" $word "*) command="cache $word"; break ;;
            esac
        done
    fi
    # Bash splits --name=value at the equals sign.
    if [ "$current" = "=" ]; then
        current=
    elif [ "$previous" = "=" ]; then
        previous=${COMP_WORDS[COMP_CWORD-2]}
    fi
    case $previous in
    --driver) COMPREPLY=($(compgen -W "auto cuda soft" -- "$current")); return ;;
    --check) COMPREPLY=($(compgen -W "memory race init memory,race,init" -- "$current")); return ;;
    --compiler) COMPREPLY=($(compgen -W "auto nvrtc clang" -- "$current")); return ;;
    --diagnostics) COMPREPLY=($(compgen -W "text json" -- "$current")); return ;;
    --log) COMPREPLY=($(compgen -W "none error warn info debug" -- "$current")); return ;;
    --fmad|--ftz|--prec-div|--prec-sqrt) COMPREPLY=($(compgen -W "true false" -- "$current")); return ;;
    -std|--std) COMPREPLY=($(compgen -W "c++14 c++17 c++20" -- "$current")); return ;;
    -I|--cache-dir|--libexec|--into) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- "$current")); return ;;
    esac
    case $current in
    -*)
        COMPREPLY=($(compgen -W "$(_hdjit_options "${COMP_WORDS[0]}" "$command")" -- "$current"))
        [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
        ;;
    *)
        if [ -z "$command" ]; then
            COMPREPLY=($(compgen -W "$commands" -- "$current"))
        elif [ "$command" = cache ]; then
            COMPREPLY=($(compgen -W "$cache_commands" -- "$current"))
        else
            compopt -o filenames 2>/dev/null
            COMPREPLY=($(compgen -f -- "$current"))
        fi
        ;;
    esac
}

complete -F _hdjit hdjit
