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

set -l commands run devices check env login help
complete -c gpupool -f
complete -c gpupool -n "not __fish_seen_subcommand_from $commands" -a run -d 'Run a program on a pool'
complete -c gpupool -n "not __fish_seen_subcommand_from $commands" -a devices -d 'GPUs, load, quota, sessions'
complete -c gpupool -n "not __fish_seen_subcommand_from $commands" -a check -d 'Find out what is wrong'
complete -c gpupool -n "not __fish_seen_subcommand_from $commands" -a env -d 'Print what run would set'
complete -c gpupool -n "not __fish_seen_subcommand_from $commands" -a login -d 'Store a token for a pool'
complete -c gpupool -n "not __fish_seen_subcommand_from $commands" -a help -d 'Commands and options'
complete -c gpupool -n "not __fish_seen_subcommand_from $commands" -l version -d 'Print the version'
complete -c gpupool -n '__fish_seen_subcommand_from run env devices check' -s p -l pool -x -a '(__gpupool_pools)' -d 'A pool, or an address'
complete -c gpupool -n '__fish_seen_subcommand_from run env' -l gpus -x -d 'See the first N devices'
complete -c gpupool -n '__fish_seen_subcommand_from run env' -l memory -x -d 'No more of each device'
complete -c gpupool -n '__fish_seen_subcommand_from run env' -l sm -x -d 'No more of the multiprocessors'
complete -c gpupool -n '__fish_seen_subcommand_from run env' -l wait -x -d 'Wait so long for a place'
complete -c gpupool -n '__fish_seen_subcommand_from devices' -s L -l list -d 'One line for each GPU'
complete -c gpupool -n '__fish_seen_subcommand_from devices' -l json -d 'For programs'
complete -c gpupool -n '__fish_seen_subcommand_from run check' -a '(__fish_complete_command)' -F
complete -c gpupool -n '__fish_seen_subcommand_from login' -a '(__gpupool_pools)'
complete -c gpupool -n '__fish_seen_subcommand_from help' -a "$commands"
