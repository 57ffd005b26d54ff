/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsers of single values of gpupoold.conf(5).
 *
 * Threads: any.
 * Errors: functions that return a string return NULL on success, else the end of an error sentence
 * that begins with the value; the others return false. The output is written on
 * success only.
 */
#ifndef GPD_CONFIG_VALUE_H
#define GPD_CONFIG_VALUE_H

#include "server/common/config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses decimal digits into a number from min to max. */
bool gpd_value_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *value_p);
/* Parses the name of a tenant. */
const char *gpd_value_parse_name(const char *text, char name[GPD_TENANT_NAME_MAX]);
/* Parses a name in a client certificate. */
const char *gpd_value_parse_certificate(const char *text, char name[GPD_CONFIG_CERTIFICATE_MAX]);
/* Parses "GPU-xxxxxxxx-...", in any case, into lower case. */
const char *gpd_value_parse_uuid(const char *text, char uuid[41]);
/* Parses HOST:PORT, [ADDRESS]:PORT, PORT (on 127.0.0.1) or "off", which sets host to "". port_min 0
 * also accepts port 0. */
const char *gpd_value_parse_metrics(const char *text, uint16_t port_min, char *host,
				    size_t host_size, uint16_t *port_p);

/* Parses a numeric address. An IPv4-mapped IPv6 address becomes an IPv4 address. */
bool gpd_value_parse_address(const char *text, struct gpd_config_network *network);

#endif /* GPD_CONFIG_VALUE_H */
