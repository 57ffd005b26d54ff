/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the process that listens on a TCP port, for the error message if the daemon cannot open the
 * port. Linux only: reads /proc.
 *
 * Threads: any; the function keeps no state. It reads files of all processes, so it may take long.
 */
#ifndef GPD_PORT_OWNER_H
#define GPD_PORT_OWNER_H

#include <stddef.h>
#include <stdint.h>

/* Writes for example " (in use by process 12, sshd)"; " (in use by a process of user 1000)" if the
 * process is not visible to the caller; "" if no listener on the port is found. size: of text in
 * bytes. */
void gpd_port_describe_owner(uint16_t port, char *text, size_t size);

#endif /* GPD_PORT_OWNER_H */
