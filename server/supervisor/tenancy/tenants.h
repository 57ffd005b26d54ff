/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants at run time: applies the configuration to the ledger, assigns clients to tenants, and
 * devices to sessions.
 *
 * Shares in percent need the sizes of the devices, which the first worker reports; no session is
 * opened before that. A new configuration takes effect at once. A tenant that it no longer contains
 * keeps its limits until its last session ends.
 *
 * Ownership: part of struct gpd_quota (quota.h), which frees the configuration.
 * Threads: the supervisor's main thread. No function blocks, except that gpd_tenants_set_config()
 * and gpd_tenants_set_devices() read the machine's memory size from system files.
 * Errors: functions with an error buffer return 0 on success; otherwise they write a text to error,
 * a buffer of GPD_CONFIG_ERROR_MAX bytes.
 */
#ifndef GPD_TENANTS_H
#define GPD_TENANTS_H

#include "protocol/control.h"
#include "server/common/base/device_list.h"
#include "server/common/config/config.h"
#include "server/common/ledger/ledger.h"
#include "server/supervisor/tenancy/device_health.h"

/* Maximum number of parts (virtual devices) of a device, and of units (struct gpd_unit) of all
 * devices. */
#define GPD_VIRTUAL_MAX 64
#define GPD_UNITS_MAX (GPD_LEDGER_DEVICES * GPD_VIRTUAL_MAX)

/* A device as clients select it: a whole device, or one of the equal parts into which it is
 * divided. A part is assigned to one session at a time. */
struct gpd_unit {
	int device; /* ordinal of the physical device */
	int part;   /* number of the part, 0 to parts - 1 */
	int parts;  /* number of parts of the device; 1: not divided */
};

/* Worker groups: the sessions of a group share a worker (worker_pool.h). There is one for all
 * tenants of class "shared", and one for each index of a tenant in the ledger. */
#define GPD_GROUP_SHARED 0
#define GPD_GROUPS (GPD_LEDGER_TENANTS + 1)

static inline uint32_t
gpd_tenant_group(uint32_t tenant)
{
	return tenant + 1;
}

/* Tenant and devices of a session or of a client that waits for one. */
struct gpd_assignment {
	uint32_t tenant; /* index of the tenant in the ledger */
	bool dedicated;  /* the session gets a dedicated worker */
	/* Worker group of a session that gets no dedicated worker: GPD_GROUP_SHARED, or that of its
	 * tenant, gpd_tenant_group(). */
	uint32_t group;
	uint32_t compression; /* enum gp_pack_mode (protocol/pack.h) */
	int count;            /* number of units; 0: none assigned yet */
	struct gpd_unit units[GPD_LEDGER_DEVICES];
};

/* State of the tenants and devices. */
struct gpd_tenants {
	struct gpd_ledger *ledger;
	struct gpd_config *config; /* current configuration, owned */
	/* Bytes of memory of the daemon's machine, at the last change of the configuration. */
	uint64_t machine_memory;
	/* Indexed as the ledger's tenants: index in config->tenants, for a guest
	 * GPD_TENANT_DEFAULT; -1: not in the configuration. */
	int config_indexes[GPD_LEDGER_TENANTS];
	/* Indexed as the ledger's tenants: maximum number of sessions, as configured or as set
	 * since by gpupoolctl. */
	uint32_t sessions_max[GPD_LEDGER_TENANTS];
	/* Indexed as the ledger's tenants. true: a guest: a tenant of a token that is not
	 * configured. It has the limits of [tenant default], but is accounted separately. */
	bool guests[GPD_LEDGER_TENANTS];
	/* Reported by the first worker, except rule, health, context_memory and part_sessions. */
	bool software;           /* the devices are the software device */
	uint32_t driver_version; /* CUDA's, as cuDriverGetVersion() returns it */
	int device_count;        /* 0: not reported yet */
	/* Indexed by ordinal; the first device_count elements are valid, and health and
	 * context_memory of all. */
	struct gpd_tenants_device {
		char name[128];
		uint8_t uuid[16];
		uint64_t memory; /* total bytes */
		uint32_t multiprocessors;
		struct gpd_config_device rule; /* settings of the configuration */
		struct gpd_device_health health;
		/* Bytes that a context takes, the largest measured one; 0: none was measured. */
		uint64_t context_memory;
		/* ID of the session that has the part; 0: free. */
		uint64_t part_sessions[GPD_VIRTUAL_MAX];
	} devices[GPD_LEDGER_DEVICES];
};

/* Returns the smaller of two numbers of multiprocessors, where 0 means all. */
uint32_t gpd_tenants_min_sms(uint32_t a, uint32_t b);
/* Converts an amount of the configuration to a number of multiprocessors of the device, rounded to
 * its granularity; 0: all, also before the devices are reported. */
uint32_t gpd_tenants_round_sms(const struct gpd_tenants *tenants, int device,
			       const struct gpd_config_amount *amount);
/* Returns the number of multiprocessors in a worker's description of a device; 0: not given. */
uint32_t gpd_tenants_get_sms(const Gpupool__Device *device);

/* Applies a configuration to the tenants and to limits of the daemon in the ledger, takes ownership
 * of it and frees the previous one. Limits set by gpupoolctl are overwritten. The limits of
 * existing sessions are set by gpd_quota_apply() (quota.h). */
void gpd_tenants_set_config(struct gpd_tenants *tenants, struct gpd_config *config);
/* Stores the devices as reported by the first worker, and applies the configuration to them. Later
 * calls do nothing, as all workers report the same devices. */
void gpd_tenants_set_devices(struct gpd_tenants *tenants, const Gpupool__Welcome *facts);

/* Assigns the client to a tenant and determines its isolation and compression, before it has a
 * session or devices. A guest gets an entry in the ledger. proven: the tenant of its credentials
 * (gpd_principal.tenant); "": the client may request one in hello. address: as returned by
 * gp_conn_peer(). Returns 0 with *assignment set, without devices; or GP_E_INVALID if the client is
 * refused, and *assignment is overwritten. */
GP_MUST_CHECK int gpd_tenants_admit(struct gpd_tenants *tenants, const Gpupool__Hello *hello,
				    const char *proven, const char *address,
				    struct gpd_assignment *assignment, char *error);
/* Returns the key because of which the sessions of the tenant at this index of the configuration
 * run as "shared", regardless of its class and its clients' requests: it holds within one CUDA
 * context only. A static text; NULL: there is none, or the tenant's section sets `isolation` to a
 * stricter class, which takes precedence. */
const char *gpd_tenants_sharing_key(const struct gpd_tenants *tenants, int config_index);
/* Returns whether there is a tenant besides "default", a guest included, whose sessions do not run
 * in the worker of class "shared". */
bool gpd_tenants_are_apart(const struct gpd_tenants *tenants);
/* Returns the memory in bytes that a context takes of the device: the largest that has been
 * measured there, else on any device, else GPD_CONTEXT_MEMORY; 0: none, on the software device. */
uint64_t gpd_tenants_get_context_memory(const struct gpd_tenants *tenants, int device);
/* Returns the number of workers that may have a context on the device: its places. Before the
 * devices are reported: GPD_PLACES_MAX. */
uint32_t gpd_tenants_get_places(const struct gpd_tenants *tenants, int device);
/* Returns whether a place on the device is held back for the tenant while it has none: it may have
 * sessions there that do not run in the worker of class "shared". False for "default". */
bool gpd_tenants_needs_place(const struct gpd_tenants *tenants, uint32_t tenant, int device);

/* Why a worker cannot have another context on a device. */
enum gpd_places_reason {
	GPD_PLACES_IN_USE,    /* all places are in use */
	GPD_PLACES_RESERVED,  /* the free ones are reserved for waiting clients */
	GPD_PLACES_HELD_BACK, /* the free ones are held back for tenants that have none */
};
/* Writes the reason. */
void gpd_tenants_format_places(const struct gpd_tenants *tenants, int device,
			       enum gpd_places_reason reason, char text[GPD_CONFIG_ERROR_MAX]);
/* Returns the memory of the device in bytes of which configured shares are taken: without that of
 * contexts in all its places; without that of one context if all tenants that may use the device
 * are of class "shared". */
uint64_t gpd_tenants_get_remaining(const struct gpd_tenants *tenants, int device);
/* Called when the memory of a context on the device has been measured. If none was larger, tenants'
 * limits that are shares of the device's memory change; those of running sessions do not. */
void gpd_tenants_measure_context(struct gpd_tenants *tenants, int device, uint64_t bytes);
/* Returns the number of idle workers to keep in reserve for each device: the configured one; by
 * default 1 if gpd_tenants_are_apart(), else 0. */
uint32_t gpd_tenants_get_ready_workers(const struct gpd_tenants *tenants);
/* Returns 0 if the tenant may have one more session after `ahead` further ones, which are reserved
 * for clients that wait before this one; else GP_E_RESOURCE. */
GP_MUST_CHECK int gpd_tenants_has_room(const struct gpd_tenants *tenants,
				       const struct gpd_assignment *assignment, unsigned int ahead,
				       char *error);
/* Assigns devices to the session with this ID: those that the client selects in hello; or, without
 * a selection, all devices that its tenant may use and that are not sick, of divided devices one
 * free part. Parts belong
 * to the session until gpd_tenants_release(). Returns 0; GP_E_INVALID if a device does not exist,
 * is not allowed, is sick or is selected twice, or the tenant may use none; or GP_E_RESOURCE if a
 * selected part is in use, or if without a selection all are. On failure the session has no part,
 * and the assignment's units are undefined. */
GP_MUST_CHECK int gpd_tenants_assign(struct gpd_tenants *tenants, const Gpupool__Hello *hello,
				     uint64_t session, struct gpd_assignment *assignment,
				     char *error);
/* Returns the ordinal of the device that a session of the client will probably use first: the first
 * one that it selects in hello, else the first one that its tenant may use and that is not sick; 0:
 * there is none. */
int gpd_tenants_get_first_device(const struct gpd_tenants *tenants, const Gpupool__Hello *hello,
				 const struct gpd_assignment *assignment);
/* Returns the devices that sessions of the worker group may use: allowed, visible and not sick. Bit
 * n: device n. Before the devices are reported: all that are not sick. */
uint32_t gpd_tenants_get_usable(const struct gpd_tenants *tenants, uint32_t group);
/* Returns 0 if the devices that the client selects in hello are not sick, and one that its tenant
 * may use is not; else GP_E_INVALID, and the client must be refused. */
GP_MUST_CHECK int gpd_tenants_check_health(const struct gpd_tenants *tenants,
					   const Gpupool__Hello *hello,
					   const struct gpd_assignment *assignment, char *error);
/* The same for a session: none of its assigned devices has become sick since. */
GP_MUST_CHECK int gpd_tenants_check_assigned(const struct gpd_tenants *tenants,
					     const struct gpd_assignment *assignment, char *error);
/* Describes the devices for a process that may use these of them. */
void gpd_tenants_list_devices(const struct gpd_tenants *tenants, uint32_t used,
			      struct gpd_device_list *list);
/* Frees the parts of devices that the session has. Does nothing if it has none. */
void gpd_tenants_release(struct gpd_tenants *tenants, uint64_t session);

/* Sets the limits of a session's ledger entry that depend on the configuration and the assigned
 * devices: allowed devices, and memory and multiprocessors of each. */
void gpd_tenants_apply_limits(const struct gpd_tenants *tenants,
			      const struct gpd_assignment *assignment,
			      struct gpd_ledger_session *entry);

/* Fills units with all devices and parts that clients can select, in the order of the devices'
 * ordinals. Returns their number. */
int gpd_tenants_units(const struct gpd_tenants *tenants, struct gpd_unit units[GPD_UNITS_MAX]);

#endif /* GPD_TENANTS_H */
