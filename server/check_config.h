/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpupoold --check-config: what a start or a reload would say of a configuration, without one.
 *
 * It opens the driver to see which devices there are, and makes no context; of a driver that cannot
 * be opened it says so, and what it says of devices is left out.
 */
#ifndef GPD_CHECK_CONFIG_H
#define GPD_CHECK_CONFIG_H

struct gpd_options;

/* The exit status: 0: it can be used; 1: it cannot, and standard error says in which line. */
int gpd_check_config(const struct gpd_options *options);

#endif /* GPD_CHECK_CONFIG_H */
