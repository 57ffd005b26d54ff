/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of tenants and devices: gpupoold.conf(5) as values.
 *
 * Made in one piece, never changed afterwards, freed by whoever loaded it; so any thread may read
 * it.  Functions that read a text return 0, GP_E_INVALID with a text that names file, line, key and
 * what would be right, or a negative errno with a text; no output is written then but the text.
 * What a quota means for calls is the ledger's business, here are only the numbers.
 */
#ifndef GPD_CONFIG_H
#define GPD_CONFIG_H

#include "base/status.h"
#include "server/common/ledger/ledger.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define GPD_CONFIG_TENANTS 255 /* GPD_TENANT_DEFAULT is one of them */
#define GPD_CONFIG_ERROR_MAX 512
#define GPD_CONFIG_CERTIFICATE_MAX 128
#define GPD_CONFIG_PATH_MAX 256

static_assert(GPD_CONFIG_TENANTS <= GPD_LEDGER_TENANTS, "each has a line in the ledger");

enum gpd_config_isolation {
	GPD_CONFIG_ISOLATION_SHARED,  /* in one worker, but for clients that ask for their own */
	GPD_CONFIG_ISOLATION_PROCESS, /* a worker for each */
	GPD_CONFIG_ISOLATION_SHARED_ONLY, /* who asks for a worker of its own is refused */
};

/* Whether the software device may replace NVIDIA's driver where that cannot be used. */
enum gpd_config_software {
	GPD_CONFIG_SOFTWARE_OFF,
	GPD_CONFIG_SOFTWARE_ON,
	GPD_CONFIG_SOFTWARE_UNSET,
};

/* A worker that does not answer. */
enum gpd_config_on_hang {
	GPD_CONFIG_ON_HANG_REPORT,
	GPD_CONFIG_ON_HANG_RESTART, /* it is killed, and its sessions end */
};

/* Bytes or multiprocessors: a number or a share of what the device has. */
struct gpd_config_amount {
	uint64_t number; /* counts where share is 0 */
	uint64_t share;  /* hundredths of a per cent */
};
#define GPD_CONFIG_SHARE_MAX 10000

/* A tenant on one device.  Has no padding: two are compared by memcmp(). */
struct gpd_config_quota {
	struct gpd_config_amount memory;         /* number GPD_NO_LIMIT: all */
	struct gpd_config_amount session_memory; /* of each session; the same */
	struct gpd_config_amount sm;             /* number 0: all */
	struct gpd_config_amount session_sm;     /* of each session; the same */
	uint32_t allowed;                        /* 1: the device is one of the tenant's */
	uint32_t weight;                         /* 1 to 1000 */
	uint32_t limit;                          /* per cent of GPU time, 100: none */
	uint32_t time_share;                     /* per cent, for the policy fixed; 0: none given */
};
static_assert(sizeof(struct gpd_config_quota) == 4 * 16 + 4 * 4, "no padding");

#define GPD_CONFIG_OLD_NAMES 8

/* Addresses of which the first `bits` are the same. */
struct gpd_config_network {
	uint8_t address[16]; /* IPv4: the first four */
	uint8_t is_v6;
	uint8_t bits;
};

/* The lines in which a key stands: for all devices, and for single ones.  0: nowhere. */
struct gpd_config_lines {
	int all;
	int single[GPD_LEDGER_DEVICES];
};

struct gpd_config_tenant {
	char name[GPD_TENANT_NAME_MAX];
	int line;                       /* of its section; 0: it has none */
	struct gpd_config_lines *lines; /* of its keys, as gpd_config_keys() has them; or NULL */
	struct gpd_config_quota devices[GPD_LEDGER_DEVICES];
	uint64_t bandwidth;    /* bytes per second; GPD_NO_LIMIT: as the link can */
	uint32_t sessions_max; /* UINT32_MAX: as many as the daemon has; 0: none is admitted */
	uint32_t priority;     /* as in the ledger: 0 normal, 1 low, 2 high */
	uint32_t isolation;    /* enum gpd_config_isolation; the daemon's unless given */
	uint32_t compression;  /* enum gp_pack_mode */
	struct gpd_config_amount code_memory;   /* number 0 and share 0: an equal part */
	struct gpd_config_amount pinned_memory; /* the same */
	int user_count;
	int certificate_count;
	int network_count; /* 0: from anywhere */
	char (*users)[GPD_TENANT_NAME_MAX];
	char (*certificates)[GPD_CONFIG_CERTIFICATE_MAX]; /* names in client certificates */
	struct gpd_config_network *networks;
};

struct gpd_config_device {
	uint32_t policy;         /* enum gpd_policy */
	uint32_t virtual_number; /* equal devices that it is shown as; 1: itself */
	uint32_t visible;        /* 1: clients may see it */
	uint32_t sm_granularity; /* multiprocessors are given out in multiples of it: 2 or 8 */
};

/* What a section [device ...] says; see gpd_config_device(). */
struct gpd_config_device_rule {
	int line;      /* of the section */
	int ordinal;   /* -1: not by ordinal */
	char uuid[41]; /* "gpu-...", in lower case; "" with ordinal -1: any device */
	unsigned int
		set_keys; /* what of `device` it says: bits, by the places of gpd_config_keys() */
	struct gpd_config_device device;
};

/* A line that gives a key under its old name. */
struct gpd_config_old_name {
	int line;
	const char *old_name, *name;
};

struct gpd_config {
	char *file; /* that it was read from; NULL: none */
	uint32_t sessions_max;
	uint32_t lanes_max;            /* of a session */
	uint32_t sessions_per_address; /* UINT32_MAX: no limit; 0: not given */
	uint32_t ready_workers;        /* in reserve for sessions of class process */
	uint32_t idle_timeout;         /* seconds; 0: none */
	uint32_t timeout;              /* seconds; 0: not given */
	uint32_t isolation;            /* enum gpd_config_isolation */
	uint32_t on_hang;              /* enum gpd_config_on_hang */
	uint32_t software_device;      /* enum gpd_config_software */
	struct gpd_config_amount host_memory;
	struct gpd_config_amount code_memory;   /* of all tenants */
	struct gpd_config_amount pinned_memory; /* likewise */
	char metrics_host[256];
	uint16_t metrics_port;            /* 0: off */
	char admin_socket[108];           /* "": not given */
	char tokens[GPD_CONFIG_PATH_MAX]; /* "": not given */
	char certificate[GPD_CONFIG_PATH_MAX];
	char key[GPD_CONFIG_PATH_MAX];
	char client_authority[GPD_CONFIG_PATH_MAX];
	char crl[GPD_CONFIG_PATH_MAX];
	char usage[GPD_CONFIG_PATH_MAX];
	int device_rule_count;
	int tenant_count; /* at least 1 */
	int old_name_count;
	struct gpd_config_old_name old_names[GPD_CONFIG_OLD_NAMES]; /* the first ones */
	struct gpd_config_device_rule *device_rules;
	struct gpd_config_tenant *tenants; /* "default", then the others in the order of the file */
};

/* NULL for path: no file, so one tenant without limits.  -ENOENT: the named one is not there. */
GP_MUST_CHECK int gpd_config_load(const char *path, struct gpd_config **config_p, char *error,
				  size_t error_size);
/* Gets one error, which is only valid during the call. */
typedef void gpd_config_report_func(void *arg, const char *error);
/* As gpd_config_load(), but reports each error of the text before it returns; those of the file
 * itself are in `error` alone.  report NULL: only the first one, in `error`. */
GP_MUST_CHECK int gpd_config_load_all(const char *path, gpd_config_report_func *report, void *arg,
				      struct gpd_config **config_p, char *error, size_t error_size);
GP_MUST_CHECK int gpd_config_parse_all(const char *text, const char *name,
				       gpd_config_report_func *report, void *arg,
				       struct gpd_config **config_p, char *error,
				       size_t error_size);
/* The same from memory; the errors give `name` as the file's. */
GP_MUST_CHECK int gpd_config_parse(const char *text, const char *name, struct gpd_config **config_p,
				   char *error, size_t error_size);
void gpd_config_free(struct gpd_config *config);

/* Bytes of the machine's memory for what all sessions keep there, of so many that it has. */
uint64_t gpd_config_get_host_memory(const struct gpd_config *config, uint64_t machine_bytes);
/* And for device code of the tenant in this place, if so many tenants have equal parts. */
uint64_t gpd_config_get_code_memory(const struct gpd_config *config, int tenant,
				    uint64_t machine_bytes, unsigned int parts);
/* The same for memory that kernels reach. */
uint64_t gpd_config_get_pinned_memory(const struct gpd_config *config, int tenant,
				      uint64_t machine_bytes, unsigned int parts);

/* Its index; -1: there is none of this name. */
int gpd_config_tenant_find(const struct gpd_config *config, const char *name);

/* The tenant of this name in a client certificate: the one that lists it, else the one of that very
 * name; -1: there is none. */
int gpd_config_certificate_find(const struct gpd_config *config, const char *name);

/*
 * Whose a new session is.  name: the tenant that the client names, NULL or "" for none; user: as it
 * says; address: numeric or as gp_conn_peer() has it, NULL for a client that came over no network,
 * which counts as a loopback address.  GP_E_INVALID: refused, and the text says why.
 */
GP_MUST_CHECK int gpd_config_admit(const struct gpd_config *config, const char *name,
				   const char *user, const char *address, int *tenant_p,
				   char *error, size_t error_size);

/*
 * What holds for a device.  Key by key, the section of its UUID ("GPU-..." or NULL) goes before
 * that of its ordinal, and this before [device *].
 */
struct gpd_config_device gpd_config_device(const struct gpd_config *config, int ordinal,
					   const char *uuid);

/* Of a device: bytes, in multiples of 2 MiB, at most the device's; GPD_NO_LIMIT: no quota. */
uint64_t gpd_config_get_bytes(const struct gpd_config_amount *amount, uint64_t device_bytes);
/* Multiprocessors, rounded down but at least 1, at most the device's; 0: no quota. */
uint32_t gpd_config_get_sms(const struct gpd_config_amount *amount, uint32_t device_sms);
/* So many are given out who gets `wanted` (0: all), in pieces of so many; 0: all. */
uint32_t gpd_config_round_sms(uint32_t wanted, uint32_t device_sms, uint32_t piece);

#endif /* GPD_CONFIG_H */
