/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command-line options of the supervisor, and functions that combine them with defaults.
 *
 * Ownership: pointers refer to elements of argv or static text.
 * Threads: main() fills in the struct before the first thread starts; it is read-only afterwards.
 */
#ifndef GPD_OPTIONS_H
#define GPD_OPTIONS_H

#include "server/common/config/config.h"
#include "transport/url.h"

#include <stdbool.h>
#include <stdint.h>

/* Maximum number of addresses on which the daemon listens. */
#define GPD_LISTEN_MAX 16
/* Environment variable with "on" or "off": whether the software device may be used, if neither the
 * option nor the configuration sets it. */
#define GPD_SOFTWARE_VARIABLE "GPUPOOL_SOFTWARE_DEVICE"
/* Size of a path's buffer in bytes, including the terminating zero. */
#define GPD_OPTIONS_PATH_MAX 4096

/* The parsed command line. */
struct gpd_options {
	struct gp_url listen[GPD_LISTEN_MAX];
	int listen_count; /* number of elements of listen */
	/* URL on which workers listen for data connections over RDMA; NULL: none. */
	const char *rdma;
	/* --syscall-filter: value for the workers; NULL: on. */
	const char *syscall_filter;
	bool no_peer_memory; /* copies over RDMA always use the workers' staging buffers */
	const char *driver;  /* path of the CUDA driver library; NULL: the default one */
	/* --software-device; GPD_CONFIG_SOFTWARE_UNSET: not given. */
	enum gpd_config_software software_device;
	const char *config; /* path of the configuration; NULL: usual_config, if that file exists */
	/* Path of the default configuration; "": there is no default folder (pool_folder.h). */
	char usual_config[GPD_OPTIONS_PATH_MAX];
	/* Path of the admin socket; "off": none; NULL: the default path. */
	const char *admin_socket;
	bool has_metrics; /* --metrics is given, so that metrics_host and metrics_port are valid */
	char metrics_host[256]; /* address of the metrics server; "": no server */
	uint16_t metrics_port;  /* port of the metrics server; 0: any free port, or no server */
	/* Paths of the daemon's certificate and key, of the authorities of client certificates and
	 * of their CRL; NULL: as configured, else in the default folder. */
	const char *certificate, *key, *client_authority, *crl;
	bool print_address; /* print the addresses to standard output */
	bool insecure;      /* admit clients without credentials */
	const char *user;   /* user to switch to from root; NULL: GPD_PRIVILEGE_USER if it exists */
	/* Path of the token file; NULL: the configured path, else the default one. */
	const char *tokens;
	int sessions_max; /* maximum number of sessions; 0: as configured */
	int lanes_max;    /* maximum number of lanes per session; 0: as configured */
};

/* Returns the path of the configuration to read now: the option; else the default path if a file
 * exists there, also if it is not readable, which is then an error. Returns NULL if there is no
 * option and no file at the default path. The text belongs to options. */
const char *gpd_options_config(const struct gpd_options *options);

/* Parses "on" or "off". Returns false, and leaves *value_p unchanged, for any other text. */
bool gpd_options_software_parse(const char *text, enum gpd_config_software *value_p);

/* Returns whether a worker may use the software device if NVIDIA's driver cannot be used: set by
 * the command line, else the configuration, else GPUPOOL_SOFTWARE_DEVICE, else true. */
bool gpd_options_software(const struct gpd_options *options, const struct gpd_config *config);

#endif /* GPD_OPTIONS_H */
