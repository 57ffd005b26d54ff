/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsers of single values of gpupoold.conf(5).
 *
 * Threads: any; the functions keep no state and do not block.
 * Errors: functions that return a string return NULL on success, else a static text: the end of an
 * error sentence that begins with the value. The other functions return true on success, else
 * false. The output is written on success only.
 */
#ifndef GPD_CONFIG_VALUE_H
#define GPD_CONFIG_VALUE_H

#include "server/common/config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses decimal digits into a number from min to max. */
bool gpd_value_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *value_p);
/* Parses the name of a tenant: 1 to 63 characters of A-Z a-z 0-9 . _ -. */
const char *gpd_value_parse_name(const char *text, char name[GPD_TENANT_NAME_MAX]);
/* Parses a name in a client certificate: 1 to 127 printable ASCII characters except * , ; = and
 * double quotes. */
const char *gpd_value_parse_certificate(const char *text, char name[GPD_CONFIG_CERTIFICATE_MAX]);
/* Parses "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" in upper or lower case. Writes it in lower case
 * with its prefix "gpu-" and the terminating zero. */
const char *gpd_value_parse_uuid(const char *text, char uuid[41]);
/* Parses HOST:PORT, [ADDRESS]:PORT, PORT (on 127.0.0.1) or "off", which sets host to "" and *port_p
 * to 0. A port less than port_min is invalid. A longer host than host_size - 1 bytes is truncated.
 * Implemented in config_key.c. */
const char *gpd_value_parse_metrics(const char *text, uint16_t port_min, char *host,
				    size_t host_size, uint16_t *port_p);

/* Parses a numeric address into a network that contains only this address. An IPv4-mapped IPv6
 * address becomes an IPv4 address. */
bool gpd_value_parse_address(const char *text, struct gpd_config_network *network);

#endif /* GPD_CONFIG_VALUE_H */
