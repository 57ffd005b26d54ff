/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of the daemon, its devices and its tenants: gpupoold.conf(5) parsed into a
 * struct.
 *
 * It is built by one call and not changed afterwards. It only states the settings: the supervisor
 * writes the quotas into the ledger (ledger.h), where they are enforced.
 *
 * Ownership: the caller frees the configuration with gpd_config_free(). Pointers in it are valid
 * until then.
 * Threads: any may read a configuration. Functions that load a file block on the file system; the
 * others do not block.
 * Errors: functions that load or parse return 0 with *config_p set. On failure they return
 * GP_E_INVALID (an error in the file) or a negative errno (-ENOMEM, or the file cannot be read,
 * shared_file.h), with a text in error that names the file and, for an error in a line, line, key
 * and the valid values. *config_p is then unchanged, and nothing must be freed.
 */
#ifndef GPD_CONFIG_H
#define GPD_CONFIG_H

#include "base/status.h"
#include "server/common/ledger/ledger.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPD_CONFIG_TENANTS 255 /* maximum number of tenants, including GPD_TENANT_DEFAULT */
/* Sizes of buffers in bytes, including the terminating zero: of an error text, of a name in a
 * certificate, of a path. */
#define GPD_CONFIG_ERROR_MAX 512
#define GPD_CONFIG_CERTIFICATE_MAX 128
#define GPD_CONFIG_PATH_MAX 256

static_assert(GPD_CONFIG_TENANTS <= GPD_LEDGER_TENANTS, "each has a line in the ledger");

/* Value of ready_workers if it is not set: gpd_tenants_get_ready_workers() (tenants.h) decides. */
#define GPD_READY_WORKERS_DEFAULT UINT32_MAX

/* Worker processes of a tenant's sessions. */
enum gpd_config_isolation {
	/* In the worker that tenants share, unless the client requests a stricter class. */
	GPD_CONFIG_ISOLATION_SHARED,
	GPD_CONFIG_ISOLATION_TENANT,  /* in the tenant's own worker */
	GPD_CONFIG_ISOLATION_SESSION, /* a worker for each session */
	/* As SHARED, but a client that requests a stricter class is refused. */
	GPD_CONFIG_ISOLATION_SHARED_ONLY,
};

/* Whether the software device may replace NVIDIA's driver if the driver cannot be used. */
enum gpd_config_software {
	GPD_CONFIG_SOFTWARE_OFF,
	GPD_CONFIG_SOFTWARE_ON,
	GPD_CONFIG_SOFTWARE_UNSET, /* GPUPOOL_SOFTWARE_DEVICE decides (options.h) */
};

/* Action for a worker that does not respond. */
enum gpd_config_on_hang {
	GPD_CONFIG_ON_HANG_REPORT,  /* only the log and the reports contain it */
	GPD_CONFIG_ON_HANG_RESTART, /* the worker is killed, which ends its sessions */
};

/* An amount of bytes or multiprocessors: an absolute number or a share of the device's total. */
struct gpd_config_amount {
	uint64_t number; /* absolute number; valid if share is 0 */
	/* Share of the total in hundredths of a percent, at most GPD_CONFIG_SHARE_MAX; 0: not a
	 * share. */
	uint64_t share;
};
#define GPD_CONFIG_SHARE_MAX 10000

/* Quota of a tenant on one device. Has no padding, so that two can be compared by memcmp().
 * Per-device defaults: all memory, all multiprocessors, allowed, weight 100, limit 100, time_share
 * 0. */
struct gpd_config_quota {
	struct gpd_config_amount memory; /* device memory in bytes; number GPD_NO_LIMIT: all */
	/* Limit of each session in bytes; number GPD_NO_LIMIT: all. */
	struct gpd_config_amount session_memory;
	struct gpd_config_amount sm;         /* multiprocessors; number 0: all */
	struct gpd_config_amount session_sm; /* limit of each session; number 0: all */
	uint32_t allowed;                    /* 1: the tenant may use the device */
	uint32_t weight;     /* share of GPU time relative to other tenants, 1 to 1000 */
	uint32_t limit;      /* percent of GPU time; 100: no limit */
	uint32_t time_share; /* percent, for the policy "fixed"; 0: not set */
};
static_assert(sizeof(struct gpd_config_quota) == 4 * 16 + 4 * 4, "no padding");

/* Maximum number of entries in gpd_config.old_names. */
#define GPD_CONFIG_OLD_NAMES 8

/* An address range: all addresses with the same first `bits` bits. */
struct gpd_config_network {
	uint8_t address[16]; /* an IPv4 address is in the first four bytes */
	uint8_t is_v6;
	uint8_t bits;
};

/* Line numbers in the file at which a key is set. 0: it is not set. */
struct gpd_config_lines {
	int all;                        /* for all devices */
	int single[GPD_LEDGER_DEVICES]; /* for the device of this ordinal */
};

/* A section [tenant NAME], or the default settings of the tenant "default". */
struct gpd_config_tenant {
	char name[GPD_TENANT_NAME_MAX];
	int line; /* line of its section in the file; 0: it has no section */
	/* Lines of its keys: GPD_CONFIG_KEYS_MAX elements, indexed as
	 * gpd_config_keys(GPD_CONFIG_SECTION_TENANT) (config_key.h). NULL: it has no section. */
	struct gpd_config_lines *lines;
	struct gpd_config_quota devices[GPD_LEDGER_DEVICES]; /* by ordinal */
	uint64_t bandwidth; /* bytes per second; GPD_NO_LIMIT: no limit */
	/* Maximum number of concurrent sessions. UINT32_MAX: only the daemon's limit; 0: no session
	 * is admitted. */
	uint32_t sessions_max;
	uint32_t priority;    /* as in the ledger: 0 normal, 1 low, 2 high */
	uint32_t isolation;   /* enum gpd_config_isolation; default: the daemon's */
	bool isolation_set;   /* its section sets it */
	uint32_t compression; /* enum gp_pack_mode (protocol/pack.h) */
	/* Host memory for device code. Number 0 and share 0: an equal part of the daemon's
	 * total. */
	struct gpd_config_amount code_memory;
	/* Pinned host memory that kernels access; values as code_memory. */
	struct gpd_config_amount pinned_memory;
	int user_count;        /* number of users */
	int certificate_count; /* number of certificates */
	int network_count;     /* number of networks; 0: any client may use the tenant */
	/* Users whose clients get this tenant if they request none. */
	char (*users)[GPD_TENANT_NAME_MAX];
	/* Names in client certificates whose clients get the tenant. */
	char (*certificates)[GPD_CONFIG_CERTIFICATE_MAX];
	struct gpd_config_network *networks; /* addresses of clients that may use the tenant */
};

/* Settings of a device. Defaults: GPD_POLICY_NONE, 1 virtual device, visible, granularity 2, and
 * the daemon's workers_per_device. */
struct gpd_config_device {
	uint32_t policy; /* enum gpd_policy (ledger.h) */
	/* Number of equal virtual devices that it is presented as; 1: itself. */
	uint32_t virtual_number;
	uint32_t visible;        /* 1: clients can see it */
	uint32_t sm_granularity; /* multiprocessors are assigned in multiples of it: 2 or 8 */
	/* Number of workers that may have a context on it; 0: gpd_config_get_places() decides. */
	uint32_t workers;
};

/* A section [device ...] of the file; gpd_config_device() applies it. */
struct gpd_config_device_rule {
	int line;      /* line of the section in the file */
	int ordinal;   /* ordinal of the device; -1: not selected by ordinal */
	char uuid[41]; /* "gpu-...", in lower case; "" with ordinal -1: any device */
	/* Keys of `device` that the section sets: bit i for the key at index i of
	 * gpd_config_keys(GPD_CONFIG_SECTION_DEVICE); other members of `device` are 0. */
	unsigned int set_keys;
	struct gpd_config_device device;
};

/* Records that the file uses the former name of a key. */
struct gpd_config_old_name {
	int line;
	const char *old_name, *name; /* former and present name of the key; static text */
};

/* All settings. Defaults of keys that the file does not set: 256 sessions, 8 lanes, isolation
 * TENANT, GPD_READY_WORKERS_DEFAULT, 60 s for worker_idle_timeout, 600 s for quarantine, 25 % of
 * the machine's memory for host_memory, 50 % each for code_memory and pinned_memory,
 * software_device UNSET, and 0 or "" otherwise. */
struct gpd_config {
	char *file;            /* path that it was read from; NULL: not read from a file */
	uint32_t sessions_max; /* maximum number of concurrent sessions */
	uint32_t lanes_max;    /* maximum number of lanes (data connections) per session */
	/* Sessions of one client address; UINT32_MAX: no limit; 0: not set. */
	uint32_t sessions_per_address;
	/* Idle workers kept in reserve for each device; GPD_READY_WORKERS_DEFAULT: not set. */
	uint32_t ready_workers;
	/* Workers that may have a context on a device; 0: gpd_config_get_places() decides. */
	uint32_t workers_per_device;
	/* Seconds after which a worker without sessions ends. */
	uint32_t worker_idle_timeout;
	uint32_t quarantine;   /* seconds for which a faulting program is isolated; 0: never */
	uint32_t idle_timeout; /* seconds after which an idle session is ended; 0: never */
	uint32_t timeout;      /* seconds after which a silent peer is disconnected; 0: not set */
	uint32_t isolation;    /* enum gpd_config_isolation */
	uint32_t on_hang;      /* enum gpd_config_on_hang */
	uint32_t software_device; /* enum gpd_config_software */
	/* Of all sessions together, for queued records, handles and printed text. */
	struct gpd_config_amount host_memory;
	/* Host memory for device code of all tenants together. */
	struct gpd_config_amount code_memory;
	struct gpd_config_amount pinned_memory; /* pinned host memory of all tenants together */
	char metrics_host[256];                 /* address of the metrics server; "": no server */
	uint16_t metrics_port;                  /* TCP port of the metrics server; 0: no server */
	char admin_socket[108];                 /* path of the admin socket; "": not set */
	/* Paths; "": not set. */
	char tokens[GPD_CONFIG_PATH_MAX];           /* the token file */
	char certificate[GPD_CONFIG_PATH_MAX];      /* of the daemon */
	char key[GPD_CONFIG_PATH_MAX];              /* of the certificate */
	char client_authority[GPD_CONFIG_PATH_MAX]; /* authorities of client certificates */
	char crl[GPD_CONFIG_PATH_MAX];              /* revoked client certificates */
	char usage[GPD_CONFIG_PATH_MAX];            /* usage records */
	int device_rule_count;
	int tenant_count; /* at least 1 */
	int old_name_count;
	/* The first uses in the file, at most GPD_CONFIG_OLD_NAMES. */
	struct gpd_config_old_name old_names[GPD_CONFIG_OLD_NAMES];
	struct gpd_config_device_rule *device_rules;
	struct gpd_config_tenant *tenants; /* "default", then the others in the order of the file */
};

/* Loads the file. path NULL: there is no file, which results in one tenant without limits. Returns
 * 0; -ENOENT if the file does not exist; or another error as in the comment at the start of this
 * file. */
GP_MUST_CHECK int gpd_config_load(const char *path, struct gpd_config **config_p, char *error,
				  size_t error_size);
/* Receives the text of one error, or of one warning of config_lint.h. The text is valid only during
 * the call. arg: as passed with the function. */
typedef void gpd_config_report_func(void *arg, const char *error);
/* As gpd_config_load(), but does not stop at the first error in the file's text: it passes the text
 * of each one to report(), and returns GP_E_INVALID at the end. The texts are formatted in error,
 * so error_size must not be 0. An error that concerns the whole file is returned in error alone: it
 * cannot be read, is larger than 1 MiB, contains a zero byte, or memory is exhausted. With report
 * NULL parsing stops at the first error, whose text is in error. */
GP_MUST_CHECK int gpd_config_load_all(const char *path, gpd_config_report_func *report, void *arg,
				      struct gpd_config **config_p, char *error, size_t error_size);
/* As gpd_config_load_all(), for text in memory, of any size. Errors name the file `name`, which
 * becomes gpd_config.file; "": not read from a file. text and name need to be valid only during the
 * call. */
GP_MUST_CHECK int gpd_config_parse_all(const char *text, const char *name,
				       gpd_config_report_func *report, void *arg,
				       struct gpd_config **config_p, char *error,
				       size_t error_size);
/* As gpd_config_parse_all() with report NULL. */
GP_MUST_CHECK int gpd_config_parse(const char *text, const char *name, struct gpd_config **config_p,
				   char *error, size_t error_size);
/* Frees the configuration. Accepts NULL. */
void gpd_config_free(struct gpd_config *config);

/* Returns the host memory in bytes that all sessions together may use for queued records, handles
 * and printed text, if the machine has machine_bytes; at most machine_bytes. */
uint64_t gpd_config_get_host_memory(const struct gpd_config *config, uint64_t machine_bytes);
/* Returns the tenant's limit of host memory for device code in bytes. tenant: index in
 * config->tenants. A tenant without a limit of its own gets one of `parts` equal parts of the
 * daemon's total (parts 0 counts as 1). machine_bytes: memory of the machine, which the result does
 * not exceed. */
uint64_t gpd_config_get_code_memory(const struct gpd_config *config, int tenant,
				    uint64_t machine_bytes, unsigned int parts);
/* As gpd_config_get_code_memory(), for pinned host memory that kernels access. */
uint64_t gpd_config_get_pinned_memory(const struct gpd_config *config, int tenant,
				      uint64_t machine_bytes, unsigned int parts);

/* Returns the index in config->tenants of the tenant of this name, or -1 if there is none. */
int gpd_config_tenant_find(const struct gpd_config *config, const char *name);

/* Returns the index of the tenant for this name in a client certificate: the tenant that lists the
 * name under `certificate`, else the tenant of that name; or -1. */
int gpd_config_certificate_find(const struct gpd_config *config, const char *name);

/*
 * Finds the tenant of a client. With a request it is the requested one; otherwise the first one
 * that lists the client's user and permits its address, else "default". The tenant found must
 * permit the address. name: the requested tenant, NULL or "" for none. user: as reported by the
 * client; NULL: unknown. address: numeric or as returned by gp_conn_peer() (transport/transport.h).
 * NULL and the addresses of local sockets count as both loopback addresses. Returns 0 with
 * *tenant_p set to the tenant's index; or GP_E_INVALID with a text in error if the tenant is
 * unknown or does not permit the address, and *tenant_p is unchanged.
 */
GP_MUST_CHECK int gpd_config_admit(const struct gpd_config *config, const char *name,
				   const char *user, const char *address, int *tenant_p,
				   char *error, size_t error_size);

/*
 * Returns the settings of a device; a key that no section sets has its default. For each key, the
 * section of the device's UUID ("GPU-..." or NULL) takes precedence over that of its ordinal, and
 * that over [device *].
 */
struct gpd_config_device gpd_config_device(const struct gpd_config *config, int ordinal,
					   const char *uuid);

/* Memory that a CUDA context takes of a device until one has been measured, in bytes. */
#define GPD_CONTEXT_MEMORY ((uint64_t)512 << 20)

/* Returns the number of workers that may have a context on the device: its places. If no key sets
 * it, the number that fits into a tenth of the device's memory, at least 2. context: memory of a
 * context in bytes; 0: it takes none, and without a key there are GPD_PLACES_MAX. */
uint32_t gpd_config_get_places(const struct gpd_config_device *device, uint64_t memory,
			       uint64_t context);
/* Maximum number of places of a device. */
#define GPD_PLACES_MAX 4096
/* Returns the memory of the device in bytes of which shares are taken: all except `contexts`
 * contexts of this size. */
uint64_t gpd_config_get_remaining(uint64_t memory, uint32_t contexts, uint64_t context);
/* Returns the key because of which a tenant with this quota on the device needs one context for all
 * of its sessions there; NULL: there is none. A static text. */
const char *gpd_config_get_sharing_key(const struct gpd_config_quota *quota,
				       const struct gpd_config_device *device);
/* Returns whether all tenants that may use the device and have sessions run in one worker, that of
 * class "shared". devices: settings of all devices, `count` elements. */
bool gpd_config_has_one_worker(const struct gpd_config *config,
			       const struct gpd_config_device *devices, int count, int device);
/* Returns the number of tenants besides "default" that may have sessions on the device and are not
 * of class "shared". devices: as above. */
uint32_t gpd_config_count_apart(const struct gpd_config *config,
				const struct gpd_config_device *devices, int count, int device);
/* Returns whether the tenant's own section sets a class stricter than "shared", which takes
 * precedence over gpd_config_get_sharing_key(). */
bool gpd_config_is_apart(const struct gpd_config_tenant *tenant);

/* Returns whether the amount is a limit. */
bool gpd_config_amount_is_set(const struct gpd_config_amount *amount);
/* Returns the amount in bytes for a device with device_bytes: at most device_bytes, rounded down to
 * a multiple of 2 MiB, but at least 2 MiB. GPD_NO_LIMIT: no quota. */
uint64_t gpd_config_get_bytes(const struct gpd_config_amount *amount, uint64_t device_bytes);
/* Returns the amount in multiprocessors, rounded down but at least 1, and at most device_sms. 0: no
 * quota. */
uint32_t gpd_config_get_sms(const struct gpd_config_amount *amount, uint32_t device_sms);
/* Rounds a request of `wanted` multiprocessors (0: all) down to a multiple of piece, but to at
 * least piece. piece 0: does not round. Returns 0, which means all, if the result would be
 * device_sms or more. */
uint32_t gpd_config_round_sms(uint32_t wanted, uint32_t device_sms, uint32_t piece);

#endif /* GPD_CONFIG_H */
