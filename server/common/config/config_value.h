/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values that gpupoold.conf(5) has to the right of "=", one at a time.
 *
 * Each function returns NULL, or what is wrong with the text as the end of a sentence that begins
 * with the text itself; the output is written only with NULL.  Any thread.
 */
#ifndef GPD_CONFIG_VALUE_H
#define GPD_CONFIG_VALUE_H

#include "server/common/config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Digits alone. */
bool gpd_value_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *value_p);
const char *gpd_value_parse_name(const char *text, char name[GPD_TENANT_NAME_MAX]);
const char *gpd_value_parse_certificate(const char *text, char name[GPD_CONFIG_CERTIFICATE_MAX]);
const char *gpd_value_parse_uuid(const char *text, char uuid[41]);
/* HOST:PORT, [ADDRESS]:PORT, PORT (which is 127.0.0.1's) or "off", which leaves host empty.
 * port_min: 0: a port 0 is taken, too. */
const char *gpd_value_parse_metrics(const char *text, uint16_t port_min, char *host,
				    size_t host_size, uint16_t *port_p);

/* One address, of a client.  An IPv4 address in the form of IPv6 is an IPv4 address. */
bool gpd_value_parse_address(const char *text, struct gpd_config_network *network);

#endif /* GPD_CONFIG_VALUE_H */
