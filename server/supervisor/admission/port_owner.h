/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the process that listens on a TCP port which the daemon cannot open, for the error message.
 * Linux only: reads /proc.
 *
 * Threads: any; the function keeps no state.
 */
#ifndef GPD_PORT_OWNER_H
#define GPD_PORT_OWNER_H

#include <stddef.h>
#include <stdint.h>

/* Writes " (process 12, sshd, has it)"; only the user if the process is not visible to the caller;
 * "" if no listener on the port is found. size: of text in bytes. */
void gpd_port_describe_owner(uint16_t port, char *text, size_t size);

#endif /* GPD_PORT_OWNER_H */
