/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: limits and usage of every tenant and session, in memory that the supervisor shares
 * with its workers.
 *
 * The supervisor creates the ledger, assigns its entries and writes the limits; the worker that
 * runs a session writes the session's usage. If a worker dies, its entries keep their values until
 * the supervisor closes them. A tenant's usage is the sum over its sessions in all workers; it is
 * only changed by atomic operations and never exceeds the limit. Lowering a quota below the current
 * usage frees nothing: only new allocations fail.
 *
 * Ownership: the mapping is created by gpd_ledger_create() or gpd_ledger_attach(), and unmapped by
 * gpd_ledger_destroy(); it contains no pointers.
 * Threads: any, of any process; all fields that two processes access are atomic. Opening and
 * closing entries and setting limits is the supervisor's.
 * Units: bytes, and nanoseconds of the monotonic clock, unless a field states otherwise.
 */
#ifndef GPD_LEDGER_H
#define GPD_LEDGER_H

#include "protocol/frame.h"
#include "server/common/ledger/log_budget.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPD_LEDGER_DEVICES 32
/* Index after the devices: host memory for device code that sessions have loaded. It is charged and
 * uncharged as a device's memory. */
#define GPD_LEDGER_CODE GPD_LEDGER_DEVICES
/* The next index: pinned host memory that kernels of sessions access (host_space.h). */
#define GPD_LEDGER_PINNED (GPD_LEDGER_DEVICES + 1)
#define GPD_LEDGER_LINES (GPD_LEDGER_DEVICES + 2)
#define GPD_LEDGER_TENANTS 256
#define GPD_LEDGER_SESSIONS 4096
#define GPD_TENANT_NAME_MAX 64
/* The tenant of clients that request none; it always exists. */
#define GPD_TENANT_DEFAULT 0

#define GPD_NO_LIMIT UINT64_MAX

/* Host memory that each session may use regardless of other sessions: for records queued after host
 * functions (the deferred queue), and for handles and printed text. */
#define GPD_DEFERRED_QUEUE_MIN GP_DEFERRED_QUEUE_MIN
#define GPD_HOST_MIN ((uint64_t)4 << 20)

/* Maximum of device code that a session may have loaded. */
#define GPD_CODE_SESSION_MAX ((uint64_t)8 << 30)

/* How a device's time is shared among tenants. */
enum gpd_policy {
	GPD_POLICY_NONE,        /* no scheduling: work is submitted to the GPU as it arrives */
	GPD_POLICY_BEST_EFFORT, /* by weight; unused time goes to the other tenants */
	GPD_POLICY_EQUAL, /* equal parts for all tenants with a session; unused time is lost */
	GPD_POLICY_FIXED, /* each tenant its time_share; unused time is lost */
};

/* Monotonic counters. */
struct gpd_ledger_counts {
	_Atomic uint64_t launches, copies;
	_Atomic uint64_t copied_in, copied_out; /* bytes from and to the client */
	_Atomic uint64_t refusals;              /* allocations rejected by a quota */
	_Atomic uint64_t waited_ns;             /* launches delayed for other tenants */
	_Atomic uint64_t throttled_ns;          /* copies delayed by the bandwidth limit */
};

/* clang-format off */
#define GPD_LEDGER_EACH_COUNT(DO) \
	DO(launches) DO(copies) DO(copied_in) DO(copied_out) DO(refusals) DO(waited_ns) DO(throttled_ns)
/* clang-format on */

/* A tenant on one device. */
struct gpd_ledger_tenant_line {
	_Atomic uint64_t memory_max; /* GPD_NO_LIMIT: the device's memory */
	_Atomic uint64_t memory;     /* charged by its sessions */
	/* Part of `memory`: reserved, but not yet used by the clients. */
	_Atomic uint64_t allowance;
	_Atomic uint32_t sm_wanted;  /* multiprocessors of all its sessions together; 0: all */
	_Atomic uint32_t weight;     /* of GPU time */
	_Atomic uint32_t limit;      /* percent of GPU time; 100: no limit */
	_Atomic uint32_t time_share; /* percent, for GPD_POLICY_FIXED */
	_Atomic uint64_t gpu_ns;     /* measured kernel time of ended sessions */
};

struct gpd_ledger_tenant {
	char name[GPD_TENANT_NAME_MAX]; /* "": the entry is free */
	uint64_t identity; /* unique per tenant; an entry may be reused by another tenant */
	_Atomic uint32_t sessions;
	_Atomic uint32_t priority;      /* 0 normal, 1 low, 2 high */
	_Atomic uint64_t bandwidth_max; /* bytes per second of the link; GPD_NO_LIMIT */
	_Atomic uint64_t link_free_ns;  /* time at which the link is free for the next bytes */
	_Atomic uint32_t link_limit;    /* number of times that the bandwidth limit has changed */
	/* When a session was slow to release its cache (see below); 0: never. */
	_Atomic uint64_t slow_ns;
	_Atomic uint64_t frees_slow_ns; /* the same for frees that were slow */
	_Atomic uint64_t sessions_total;
	/* Supervisor: until this time new sessions get workers of their own. */
	int64_t isolated_until_ms;
	struct gpd_ledger_counts ended; /* of ended sessions */
	struct gpd_ledger_tenant_line devices[GPD_LEDGER_LINES];
};

/* A session on one device. */
struct gpd_ledger_line {
	_Atomic uint32_t allowed;     /* 1: the session may use the device */
	_Atomic uint64_t memory_max;  /* the session's own limit; GPD_NO_LIMIT */
	_Atomic uint32_t sm_wanted;   /* multiprocessors; 0: all */
	_Atomic uint32_t sm_assigned; /* set by the worker; 0: all */
	_Atomic uint64_t memory;
	_Atomic uint64_t allowance; /* part of `memory`: reserved, but not yet used by the client */
	/* Device memory that the worker has allocated for the allowance. */
	_Atomic uint64_t allowance_backing;
	/* Part of the memory in use: cached by the client, as it reports. */
	_Atomic uint64_t cached;
	_Atomic uint64_t memory_peak; /* of the memory in use */
	_Atomic uint64_t gpu_ns;
};

/* The last state of a session that the log contains. */
enum gpd_ledger_logged {
	GPD_LOGGED_NOTHING,
	GPD_LOGGED_OPEN,
	GPD_LOGGED_CLOSED,
};

/* State of a client's cache of unused memory. */
enum gpd_ledger_cache_state {
	GPD_CACHE_EMPTY,
	GPD_CACHE_FILLED,
	GPD_CACHE_RECALLED, /* the client has been requested to release it */
};

struct gpd_ledger_session {
	_Atomic uint64_t id;      /* 0: the entry is free */
	uint32_t tenant;          /* index */
	int32_t worker;           /* process ID of the worker */
	_Atomic uint32_t pid;     /* of the client's process, on the client's machine */
	_Atomic uint64_t machine; /* hash of the name of the client's machine, as it reports it */
	uint32_t log_budget;      /* index of its log budget */
	_Atomic uint32_t logged;  /* enum gpd_ledger_logged */
	_Atomic uint32_t priority;
	/* Number of frees in progress, counted in two epochs: pending_epoch is the index for new
	 * frees, and the other entry counts those that began before pending_epoch_ns. */
	_Atomic uint32_t pending_frees[2];
	_Atomic uint32_t pending_epoch;
	_Atomic uint64_t pending_epoch_ns;
	_Atomic uint32_t frees_slow; /* 1: a free once took longer than GPD_FREE_LATE_NS */
	/* 1: the client has disconnected, and all its memory is being freed. */
	_Atomic uint32_t ended;
	_Atomic uint32_t cache_state; /* enum gpd_ledger_cache_state */
	_Atomic uint64_t recalled_ns; /* time of the last recall */
	/* Time since the recall in which it was itself waiting, and could not respond. */
	_Atomic uint64_t recall_extension_ns;
	_Atomic uint32_t slow;    /* 1: it once took too long to release its cache */
	_Atomic uint32_t waiting; /* 1: its executor waits for memory of other sessions */
	uint64_t deferred_max;    /* limit in bytes of its deferred queue */
	_Atomic uint64_t host;    /* host memory for handles and printed text */
	_Atomic uint64_t link_ns; /* link time that it has reserved and waits for */
	struct gpd_ledger_counts counts;
	struct gpd_ledger_line devices[GPD_LEDGER_LINES];
} __attribute__((aligned(64)));

struct gpd_ledger {
	/* Random number of this run of the daemon, part of handles that clients exchange. */
	uint64_t daemon;
	_Atomic uint32_t policies[GPD_LEDGER_DEVICES]; /* enum gpd_policy */
	/* Multiprocessors are assigned in multiples of it: 2 or 8. */
	_Atomic uint32_t sm_granularity[GPD_LEDGER_DEVICES];
	/* Total memory of a device, as reported by its workers; 0: not reported yet. */
	_Atomic uint64_t device_memory[GPD_LEDGER_LINES];
	_Atomic uint32_t ended;        /* number of sessions with `ended` set */
	_Atomic uint32_t idle_timeout; /* of sessions, in seconds; 0: none */
	_Atomic uint32_t timeout_ms;   /* of silent peers, in ms; 0: none */
	/* Limit of host memory for all sessions: half of it for deferred queues, half for handles
	 * and printed text. */
	_Atomic uint64_t host_max;
	/* For handles and printed text: sum of what sessions use beyond GPD_HOST_MIN. */
	_Atomic uint64_t host;
	struct gpd_ledger_tenant tenants[GPD_LEDGER_TENANTS];
	struct gpd_ledger_session sessions[GPD_LEDGER_SESSIONS];
	struct gpd_log_budget log_budgets[GPD_LOG_BUDGET_OWNERS * GPD_LOG_BUDGETS];
	uint64_t tenant_identities; /* number of identities assigned; written by the supervisor */
	/* Connections that workers rejected for lack of a valid ticket. */
	_Atomic uint64_t lanes_refused;
};

/* Creates a ledger with the tenant "default". *fd_p is its descriptor for the workers,
 * close-on-exec, which the caller closes. Returns NULL with errno set on failure. */
struct gpd_ledger *gpd_ledger_create(int *fd_p);
/* Maps the ledger in a worker, and closes the descriptor. Returns NULL with errno set on
 * failure. */
struct gpd_ledger *gpd_ledger_attach(int fd);
void gpd_ledger_destroy(struct gpd_ledger *ledger);

/* Supervisor: initializes the entry at this index for a tenant without limits. */
void gpd_ledger_add_tenant(struct gpd_ledger *ledger, uint32_t index, const char *name);

/* Supervisor: assigns an entry to a session of this tenant, without limits of its own. Returns NULL
 * if all entries are in use. The limit of its deferred queue is GP_DEFERRED_QUEUE_MAX while host
 * memory for that is available, else GPD_DEFERRED_QUEUE_MIN. */
struct gpd_ledger_session *gpd_ledger_open(struct gpd_ledger *ledger, uint64_t id, uint32_t tenant,
					   int32_t worker);
/* Returns the session's index, by which processes refer to it. */
uint32_t gpd_ledger_index(const struct gpd_ledger *ledger,
			  const struct gpd_ledger_session *session);
/* Returns the session with this ID, or NULL. */
struct gpd_ledger_session *gpd_ledger_find(struct gpd_ledger *ledger, uint64_t id);
/* Writes a summary of the session's activity for the log; text of this size is never truncated. */
#define GPD_LEDGER_SUMMARY_MAX 200
void gpd_ledger_summary(const struct gpd_ledger_session *session, char *text, size_t size);
/* Supervisor: frees the entry of an ended session. Uncharges what it still has charged, and adds
 * its counters to the tenant's. */
void gpd_ledger_close(struct gpd_ledger *ledger, struct gpd_ledger_session *session);
/* Supervisor: closes all sessions of a worker that has exited. */
void gpd_ledger_close_worker(struct gpd_ledger *ledger, int32_t worker);
/* Returns the session after this one (NULL: the first), of one worker or of all, or NULL at the
 * end. */
#define GPD_LEDGER_ANY_WORKER (-1)
struct gpd_ledger_session *gpd_ledger_next(const struct gpd_ledger *ledger,
					   const struct gpd_ledger_session *after, int32_t worker);

/*
 * Charges bytes of a device, or of GPD_LEDGER_CODE or GPD_LEDGER_PINNED, to the session. Returns
 * false, and charges nothing, if this would exceed the limit of the session or its tenant, or the
 * device's total.
 */
bool gpd_ledger_charge(struct gpd_ledger *ledger, struct gpd_ledger_session *session, int device,
		       uint64_t bytes);
/*
 * Maximum time that an allocation waits for sessions to release their recalled caches, also if it
 * waits for several of them (account.h).
 */
#define GPD_RECALL_NS UINT64_C(5000000000)
/* Time during which other tenants do not wait for a tenant that was slow. */
#define GPD_SLOW_NS UINT64_C(600000000000)
/* Requests all other sessions (of_tenant: of the same tenant) to release their cached memory.
 * Returns whether any session was newly marked; the caller then notifies the workers. */
bool gpd_ledger_recall(struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
		       bool of_tenant);
/* Returns whether any recalled session may still release its cache in time. Sessions that wait
 * for memory themselves do not count, as they release nothing while they wait; neither do
 * sessions that were slow before, nor those of another tenant with a slow session, as that
 * tenant could open further sessions. */
bool gpd_ledger_has_pending_recall(struct gpd_ledger *ledger,
				   const struct gpd_ledger_session *session, bool of_tenant);
/*
 * Stores whether the session's client caches unused memory, after it has released what was
 * recalled. If the release took longer than GPD_RECALL_LATE_NS, the session counts as slow: no
 * allocation waits for it again, its cached memory no longer counts as available, and other tenants
 * do not wait for its tenant during GPD_SLOW_NS; otherwise it would cost them that delay
 * repeatedly. Time in which the session itself waited is excluded, as no other session waited for
 * it then.
 */
#define GPD_RECALL_LATE_NS UINT64_C(1000000000)
void gpd_ledger_set_cached(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
			   bool cache_state);
/* Adds time during which the session's executor waited for other sessions to the time that it has
 * for a recall. */
void gpd_ledger_extend_recall(struct gpd_ledger_session *session, uint64_t ns);
/* Counts a free of the session's memory as in progress until gpd_ledger_free_end() is called with
 * the returned epoch. */
uint32_t gpd_ledger_free_begin(struct gpd_ledger_session *session);
void gpd_ledger_free_end(struct gpd_ledger_session *session, uint32_t epoch);
/*
 * Returns whether another session (of_tenant: of the same tenant) is freeing memory that an
 * allocation should wait for; waited_ns is how long it has waited. A free that takes longer than
 * GPD_FREE_LATE_NS, for example after a kernel that does not end, is ignored. After that,
 * allocations wait at most GPD_FREE_SLOW_NS for this session, and during GPD_SLOW_NS also for its
 * tenant.
 */
#define GPD_FREE_LATE_NS UINT64_C(2000000000)
#define GPD_FREE_SLOW_NS UINT64_C(100000000)
bool gpd_ledger_has_pending_frees(struct gpd_ledger *ledger,
				  const struct gpd_ledger_session *session, bool of_tenant,
				  uint64_t waited_ns);
/* Marks the session as closing: the client has disconnected, and all its memory is being freed. */
void gpd_ledger_set_closing(struct gpd_ledger *ledger, struct gpd_ledger_session *session);
/* Returns whether any other session is closing and still has its memory. */
bool gpd_ledger_has_closing(const struct gpd_ledger *ledger,
			    const struct gpd_ledger_session *session);
/* Sets the session's allowance (allowance.h): bytes that are charged to it, but that its client
 * does not use yet. allowance_backing is the device memory that the worker has allocated for it, at
 * least as much. */
void gpd_ledger_set_allowance(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
			      int device, uint64_t bytes, uint64_t allowance_backing);
/* Returns charged bytes to the session's and its tenant's quota. */
void gpd_ledger_uncharge(struct gpd_ledger *ledger, struct gpd_ledger_session *session, int device,
			 uint64_t bytes);
/* Moves a charge to another session of the same tenant, regardless of that session's limit. */
void gpd_ledger_move_charge(struct gpd_ledger_session *from, struct gpd_ledger_session *to,
			    int device, uint64_t bytes);

/*
 * Charges host memory for handles or printed text to the session. Returns false, and charges
 * nothing, if the session would exceed GPD_HOST_MIN and the shared limit is exhausted.
 */
bool gpd_ledger_charge_host(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
			    uint64_t bytes);
/* Returns charged host memory. */
void gpd_ledger_uncharge_host(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
			      uint64_t bytes);

/* Memory that the session may use in total and can still allocate, if `cached` bytes of the
 * tenant's quota are released by its other sessions. */
struct gpd_ledger_headroom {
	uint64_t max, left; /* GPD_NO_LIMIT: no quota */
};
struct gpd_ledger_headroom gpd_ledger_headroom(const struct gpd_ledger *ledger,
					       const struct gpd_ledger_session *session, int device,
					       uint64_t cached);

/* Memory that other sessions would release if this one ran out of memory: of the device's memory,
 * and of the tenant's quota. */
struct gpd_ledger_reclaimable {
	uint64_t of_device, of_tenant;
};
struct gpd_ledger_reclaimable gpd_ledger_reclaimable(const struct gpd_ledger *ledger,
						     const struct gpd_ledger_session *session,
						     int device);

/* A session's time slot on its tenant's link. */
struct gpd_ledger_link_slot {
	uint64_t bytes;    /* that may be sent */
	uint64_t start_ns; /* start of the slot, on the monotonic clock */
	uint64_t cost_ns;  /* length of the slot, which no other session may use */
	uint32_t limit;    /* value of link_limit that the slot was computed with */
};

/*
 * Reserves link time under the tenant's bandwidth limit for at most `bytes` bytes, not 0. A slot is
 * short, about GPD_LEDGER_LINK_SLOT_NS, as announced bytes may never arrive; a caller with more
 * bytes reserves another slot after it has sent these. Without a limit the slot covers all bytes.
 * Slots of all sessions of a tenant are in the order of reservation. If start_ns is after now_ns,
 * the caller ends the slot with gpd_ledger_link_release(), unless the session is closed before;
 * otherwise there is nothing to release.
 */
#define GPD_LEDGER_LINK_SLOT_NS UINT64_C(50000000)
struct gpd_ledger_link_slot gpd_ledger_link_acquire(struct gpd_ledger *ledger,
						    struct gpd_ledger_session *session,
						    uint64_t bytes, uint64_t now_ns);
/* Returns whether the bandwidth limit is still the one that the slot was computed with. If not, the
 * caller should reserve again. */
bool gpd_ledger_link_is_current(const struct gpd_ledger *ledger,
				const struct gpd_ledger_session *session,
				const struct gpd_ledger_link_slot *slot);
/* Ends the wait for a slot. If start_ns has not come yet, the link time is returned to the
 * tenant. */
void gpd_ledger_link_release(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
			     const struct gpd_ledger_link_slot *slot, uint64_t now_ns);

/* Charges bytes that are sent at now_ns without a slot; all later slots start later. */
void gpd_ledger_link_charge(struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
			    uint64_t bytes, uint64_t now_ns);

/* Sets another bandwidth limit; slots reserved under the previous limit become invalid. */
void gpd_ledger_set_bandwidth(struct gpd_ledger_tenant *tenant, uint64_t bytes_per_second);

/* Memory in use: charged, without the allowance. For lines of tenants and of sessions. */
#define GPD_LEDGER_IN_USE(line)                                                                    \
	gpd_ledger_difference(atomic_load(&(line)->memory), atomic_load(&(line)->allowance))
static inline uint64_t
gpd_ledger_difference(uint64_t memory, uint64_t allowance)
{
	return memory > allowance ? memory - allowance : 0;
}

static inline void
gpd_ledger_count(_Atomic uint64_t *count, uint64_t amount)
{
	(void)atomic_fetch_add_explicit(count, amount, memory_order_relaxed);
}

#endif /* GPD_LEDGER_H */
