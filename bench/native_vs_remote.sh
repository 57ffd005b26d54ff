#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU: the same programs on it directly and through a daemon on loopback.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/native_vs_remote.py" "$@"
