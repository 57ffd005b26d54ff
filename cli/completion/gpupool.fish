# SPDX-License-Identifier: Apache-2.0
# Completion of gpupool(1) for fish.

function __gpupool_pools
    set -l folder $HOME/.config
    set -q XDG_CONFIG_HOME; and set folder $XDG_CONFIG_HOME
    for file in $folder/gpupool/pools.conf /etc/gpupool/pools.conf
        test -r $file
        and string replace -rf '^\s*\[pool\s+([A-Za-z0-9._-]+)\s*\].*' '$1' <$file
    end
end

# The first word behind `run` or `check` that is neither an option nor its value is the program; all
# behind it is the program's own.
function __gpupool_program
    set -l words (commandline -opc)
    contains -- "$words[2]" run check; or return 1
    for at in (seq 3 (count $words))
        contains -- $words[(math $at - 1)] -p --pool --gpus --memory --sm --wait; and continue
        string match -q -- '-*' $words[$at]; or return 0
    end
    return 1
end

function __gpupool_options_of
    not __gpupool_program; and __fish_seen_subcommand_from $argv
end

set -l commands run devices check env login logout pools help
complete -c gpupool -f
complete -c gpupool -n "not __fish_seen_subcommand_from $commands" -a run -d 'Run a program on a pool'
complete -c gpupool -n "not __fish_seen_subcommand_from $commands" -a devices -d 'GPUs, load, quota, sessions'
complete -c gpupool -n "not __fish_seen_subcommand_from $commands" -a check -d 'Find out what is wrong'
complete -c gpupool -n "not __fish_seen_subcommand_from $commands" -a env -d 'Print what run would set'
complete -c gpupool -n "not __fish_seen_subcommand_from $commands" -a login -d 'Store a token for a pool'
complete -c gpupool -n "not __fish_seen_subcommand_from $commands" -a logout -d 'Remove a pool\'s token'
complete -c gpupool -n "not __fish_seen_subcommand_from $commands" -a pools -d 'List the pools'
complete -c gpupool -n "not __fish_seen_subcommand_from $commands" -a help -d 'Commands and options'
complete -c gpupool -n "not __fish_seen_subcommand_from $commands" -l version -d 'Print the version'
complete -c gpupool -n '__gpupool_options_of run env devices check' -s p -l pool -x -a '(__gpupool_pools)' -d 'A pool, or an address'
complete -c gpupool -n '__gpupool_options_of run env' -l gpus -x -d 'See the first N devices'
complete -c gpupool -n '__gpupool_options_of run env' -l memory -x -d 'No more of each device'
complete -c gpupool -n '__gpupool_options_of run env' -l sm -x -d 'No more of the multiprocessors'
complete -c gpupool -n '__gpupool_options_of run env' -l wait -x -d 'Wait so long for a place'
complete -c gpupool -n '__gpupool_options_of devices' -s L -l list -d 'One line for each GPU'
complete -c gpupool -n '__gpupool_options_of devices' -l json -d 'For programs'
complete -c gpupool -n '__gpupool_options_of run check' -a '(__fish_complete_command)' -F
complete -c gpupool -n '__gpupool_program' -F
complete -c gpupool -n '__fish_seen_subcommand_from login logout' -a '(__gpupool_pools)'
complete -c gpupool -n '__fish_seen_subcommand_from login' -l no-check -d 'Store it without a connection to the pool'
complete -c gpupool -n '__fish_seen_subcommand_from help' -a "$commands"
