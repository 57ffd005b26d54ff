/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpupoold --check-config: what a start or a reload would say of a configuration, without one.
 *
 * All that a start with the same options uses is checked, as the user that the daemon becomes:
 * files, sockets, addresses, the user.  Nothing is made.  Each error is reported, not the first one
 * alone. It opens the driver to see which devices there are, and makes no context.  The check may
 * run on another machine than the node, so a driver that cannot be opened is a warning.
 */
#ifndef GPD_CHECK_CONFIG_H
#define GPD_CHECK_CONFIG_H

struct gpd_options;

/* The exit status: 0: it can be used; 1: it cannot, and standard error says in which line. */
int gpd_check_config(const struct gpd_options *options);

#endif /* GPD_CHECK_CONFIG_H */
