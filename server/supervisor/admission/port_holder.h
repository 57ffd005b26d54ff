/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has a port that the daemon cannot have: what an operator would ask ss(8) next.
 */
#ifndef GPD_PORT_HOLDER_H
#define GPD_PORT_HOLDER_H

#include <stddef.h>
#include <stdint.h>

/* " (process 12, sshd, has it)", or what is known of whom the process cannot see; "": nothing. */
void gpd_port_describe_owner(uint16_t port, char *text, size_t size);

#endif /* GPD_PORT_HOLDER_H */
