/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command-line options of the supervisor.
 *
 * Threads: main() fills the struct in before the first thread starts; read-only afterwards.
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
	const char *rdma; /* URL on which workers listen for data connections over RDMA, or NULL */
	bool no_peer_memory; /* copies over RDMA always use the workers' staging buffers */
	const char *driver;  /* path, or NULL */
	enum gpd_config_software software_device;
	const char *config; /* path, or NULL: the default file, if it exists */
	/* Path of the default file; "": this user has no such folder. */
	char usual_config[GPD_OPTIONS_PATH_MAX];
	const char *admin_socket; /* path, "off", or NULL: the default one */
	bool has_metrics;
	char metrics_host[256]; /* "": none */
	uint16_t metrics_port;
	const char *certificate, *key, *client_authority, *crl; /* paths, or NULL */
	bool print_address;
	bool insecure;
	const char *user;   /* user to switch to from root, or NULL: the default one if it exists */
	const char *tokens; /* path, or NULL: the configured path, else the default one */
	int sessions_max;   /* 0: as configured */
	int lanes_max;      /* per session; 0: as configured */
};

/* Returns the path of the configuration to read now, or NULL if none is given and there is no file
 * at the default path. */
const char *gpd_options_config(const struct gpd_options *options);

/* Parses "on" or "off". Returns false for any other text. */
bool gpd_options_software_parse(const char *text, enum gpd_config_software *value_p);

/* Returns whether a worker may use the software device if NVIDIA's driver cannot be used: set by
 * the command line, else the configuration, else GPUPOOL_SOFTWARE_DEVICE, else true. */
bool gpd_options_software(const struct gpd_options *options, const struct gpd_config *config);

#endif /* GPD_OPTIONS_H */
