/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the command line says to the supervisor.  main() fills it in; read-only afterwards.
 */
#ifndef GPD_OPTIONS_H
#define GPD_OPTIONS_H

#include "server/common/config/config.h"
#include "transport/url.h"

#include <stdbool.h>
#include <stdint.h>

#define GPD_LISTEN_MAX 16
#define GPD_SOFTWARE_VARIABLE "GPUPOOL_SOFTWARE_DEVICE"
#define GPD_OPTIONS_PATH_MAX 4096

struct gpd_options {
	struct gp_url listen[GPD_LISTEN_MAX];
	int listen_count;
	const char *rdma;    /* where the workers listen for lanes over RDMA, as a URL, or NULL */
	bool no_peer_memory; /* copies over RDMA always go through the workers' staging */
	const char *driver;  /* path, or NULL */
	enum gpd_config_software software_device;
	const char *config;                      /* path, or NULL: the usual file, if it is there */
	char usual_config[GPD_OPTIONS_PATH_MAX]; /* its path; "": this user has no such folder */
	const char *admin_socket;                /* path, "off", or NULL: the usual one */
	bool has_metrics;
	char metrics_host[256]; /* "": none */
	uint16_t metrics_port;
	const char *certificate, *key, *client_authority, *crl; /* paths, or NULL */
	bool print_address;
	bool insecure;
	const char *user;   /* that root becomes, or NULL: the usual one if it exists */
	const char *tokens; /* path, or NULL: as the configuration says, or the usual one */
	int sessions_max;   /* 0: as the configuration says */
	int lanes_max;      /* of a session; 0: as the configuration says */
};

/* The configuration that is to be read now, or NULL: none is named, and none is at the usual place.
 * Any thread. */
const char *gpd_options_config(const struct gpd_options *options);

/* Reads "on" or "off"; false: it is neither. */
bool gpd_options_software_parse(const char *text, enum gpd_config_software *value_p);

/* Whether a worker may serve the software device where NVIDIA's driver cannot be used: what the
 * command line says, else the configuration, else GPUPOOL_SOFTWARE_DEVICE, else yes. */
bool gpd_options_software(const struct gpd_options *options, const struct gpd_config *config);

#endif /* GPD_OPTIONS_H */
