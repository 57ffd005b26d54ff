/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: limits and usage of every tenant and session, in memory that the supervisor shares
 * with its workers.
 *
 * The supervisor creates the ledger, assigns its entries and writes the limits; the worker that
 * runs a session writes the session's usage. If a worker dies, its entries keep their values until
 * the supervisor closes them. A tenant's usage is the sum over its sessions in all workers; it is
 * only changed by atomic operations, and no charge by gpd_ledger_charge() raises it above the
 * limit. Lowering a quota below the current usage frees nothing: only new allocations fail.
 *
 * A worker may write only parts of tenants whose sessions it has run, so that a client that takes
 * over a worker cannot change accounts of other tenants. Each struct below therefore has two
 * halves, each in pages of its own:
 * - The common half is in one file that is sealed against new writable mappings
 *   (F_SEAL_FUTURE_WRITE). Only the supervisor writes it; every worker reads it.
 * - The part (from the member that is aligned to GPD_LEDGER_PAGE) is in a file of the tenant,
 *   together with the parts of the tenant's sessions. The supervisor and workers that have got the
 *   file with GPD_CHANNEL_OPEN write it. In other workers the part reads as zeros.
 * Limits of a tenant are in its part, because the worker itself enforces them. The supervisor takes
 * no index, size or identity from a part. A worker that needs the parts of other tenants queries
 * the supervisor (struct gpd_ledger_query).
 *
 * Terms: a tenant and a session each have an entry, and an entry has one line for each device and
 * kind of host memory (devices[]).
 * Ownership: gpd_ledger_create() or gpd_ledger_attach() maps the ledger and gpd_ledger_destroy()
 * unmaps it; it contains no pointers. Pointers to its entries are borrowed and valid until
 * gpd_ledger_destroy(). A session's entry belongs to the session from gpd_ledger_open() to
 * gpd_ledger_close().
 * Threads: any, of any process; members that one process may change while another one reads them
 * are atomic. Members of plain types are written by the supervisor, unless a member states
 * otherwise, before the session's worker gets GPD_CHANNEL_OPEN (channel.h) or the tenant gets its
 * first session. Only the supervisor's main thread opens and closes entries and sets limits. No
 * function blocks, except for queries in a worker.
 * Errors: gpd_ledger_charge() and gpd_ledger_charge_host() return false if a limit would be
 * exceeded.
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

/* Maximum number of devices. Arrays of this size are indexed by the device's ordinal. */
#define GPD_LEDGER_DEVICES 32
/* Index after the devices: host memory for device code that sessions have loaded. It is charged and
 * uncharged as a device's memory. */
#define GPD_LEDGER_CODE GPD_LEDGER_DEVICES
/* The next index: pinned host memory that kernels of sessions access (worker/host/host_space.h). */
#define GPD_LEDGER_PINNED (GPD_LEDGER_DEVICES + 1)
/* Number of lines of a tenant or session: the devices, GPD_LEDGER_CODE and GPD_LEDGER_PINNED. */
#define GPD_LEDGER_LINES (GPD_LEDGER_DEVICES + 2)
/* Maximum numbers of tenants and of sessions, and size of a tenant's name including the terminating
 * zero. */
#define GPD_LEDGER_TENANTS 256
#define GPD_LEDGER_SESSIONS 4096
#define GPD_TENANT_NAME_MAX 64
/* Index of the tenant of clients that request none; it always exists. */
#define GPD_TENANT_DEFAULT 0

/* Size in bytes of the largest page that the processor's kernels use. */
#ifdef __x86_64__
#define GPD_LEDGER_PAGE 4096
#else
#define GPD_LEDGER_PAGE 65536
#endif
/* Declares the first member of a part. */
#define GPD_LEDGER_PART __attribute__((aligned(GPD_LEDGER_PAGE)))

/* Value of a limit that is not set. */
#define GPD_NO_LIMIT UINT64_MAX

/* Host memory in bytes that each session may use regardless of other sessions.
 * GPD_DEFERRED_QUEUE_MIN: for its deferred queue, which contains records (requests of the client)
 * that wait for host functions. GPD_HOST_MIN: for handles and printed text. */
#define GPD_DEFERRED_QUEUE_MIN GP_DEFERRED_QUEUE_MIN
#define GPD_HOST_MIN ((uint64_t)4 << 20)

/* Maximum bytes of device code that a session may have loaded. */
#define GPD_CODE_SESSION_MAX ((uint64_t)8 << 30)

/* How a device's time is shared among tenants. */
enum gpd_policy {
	GPD_POLICY_NONE,        /* no scheduling: work is submitted to the GPU as it arrives */
	GPD_POLICY_BEST_EFFORT, /* by weight; unused time goes to the other tenants */
	GPD_POLICY_EQUAL, /* equal parts for all tenants with a session; unused time is lost */
	GPD_POLICY_FIXED, /* each tenant its time_share; unused time is lost */
};

/* Counters that only increase. */
struct gpd_ledger_counts {
	_Atomic uint64_t launches, copies;
	_Atomic uint64_t copied_in, copied_out; /* bytes from the client and to the client */
	_Atomic uint64_t refusals;              /* number of allocations rejected by a quota */
	_Atomic uint64_t waited_ns; /* time by which launches were delayed for other tenants */
	/* Time by which copies were delayed by the bandwidth limit. */
	_Atomic uint64_t throttled_ns;
};

/* clang-format off */
/* Applies DO to the name of each counter. */
#define GPD_LEDGER_EACH_COUNT(DO) \
	DO(launches) DO(copies) DO(copied_in) DO(copied_out) DO(refusals) DO(waited_ns) DO(throttled_ns)
/* clang-format on */

/* Limits and usage of a tenant on one device, or of one kind of host memory. */
struct gpd_ledger_tenant_line {
	_Atomic uint64_t memory_max; /* quota; GPD_NO_LIMIT: only the device's memory limits it */
	/* Charged by its sessions, at most memory_max at the time of a charge; a quota lowered
	 * later leaves it above. */
	_Atomic uint64_t memory;
	/* Part of `memory`: allowance of its sessions, which is charged but not used by their
	 * clients yet (worker/memory/allowance.h). */
	_Atomic uint64_t allowance;
	_Atomic uint32_t sm_wanted;  /* multiprocessors of all its sessions together; 0: all */
	_Atomic uint32_t weight;     /* weight for sharing GPU time, 1 to 1000 */
	_Atomic uint32_t limit;      /* percent of GPU time; 100: no limit */
	_Atomic uint32_t time_share; /* percent, for GPD_POLICY_FIXED */
	_Atomic uint64_t gpu_ns;     /* measured kernel time of ended sessions */
};

/* Entry of a tenant. */
struct gpd_ledger_tenant {
	char name[GPD_TENANT_NAME_MAX]; /* "": the entry is free */
	/* Unique per tenant; an entry may be reused by another tenant. 0: never used. */
	uint64_t identity;
	/* Supervisor: descriptor of the tenant's file, owned; valid if identity is not 0. */
	int32_t fd;
	_Atomic uint32_t sessions;       /* number of open sessions */
	_Atomic uint64_t sessions_total; /* number of sessions opened since the entry was created */
	/* Maximum of `host` (below), as the supervisor has granted it. */
	_Atomic uint64_t host_granted;
	/* Memory of the daemon's machine that its sessions may use for device code and for pinned
	 * memory. Used by the supervisor only. */
	uint64_t host_memory_max;
	struct gpd_ledger_counts ended; /* sums over ended sessions */
	/* The tenant's part. Bandwidth limit in bytes per second; GPD_NO_LIMIT: none. */
	_Atomic uint64_t bandwidth_max GPD_LEDGER_PART;
	_Atomic uint32_t priority; /* 0 normal, 1 low, 2 high */
	/* Time at which the bandwidth limit permits the next bytes. */
	_Atomic uint64_t link_free_ns;
	_Atomic uint32_t link_limit; /* number of changes of bandwidth_max */
	/* Time at which one of its sessions was slow to release its cache (GPD_RECALL_LATE_NS); 0:
	 * never. */
	_Atomic uint64_t slow_ns;
	/* Time at which a free of one of its sessions was slow (GPD_FREE_LATE_NS); 0: never. */
	_Atomic uint64_t frees_slow_ns;
	/* Sum over its sessions of the host memory for handles and printed text beyond
	 * GPD_HOST_MIN. */
	_Atomic uint64_t host;
	struct gpd_ledger_tenant_line devices[GPD_LEDGER_LINES];
	/* Log budgets of its sessions, by index in the second half of gpd_ledger.log_budgets. */
	struct gpd_log_bucket log_buckets[GPD_LOG_BUDGETS];
};

/* Limits and usage of a session on one device, or of one kind of host memory. */
struct gpd_ledger_line {
	_Atomic uint32_t allowed;     /* 1: the session may use the device */
	_Atomic uint64_t memory_max;  /* the session's own limit; GPD_NO_LIMIT: only its tenant's */
	_Atomic uint32_t sm_wanted;   /* limit of multiprocessors; 0: all */
	_Atomic uint32_t sm_assigned; /* number of multiprocessors, set by the worker; 0: all */
	_Atomic uint64_t memory;      /* charged to the session */
	/* Part of `memory`: charged, but not used by the client yet. */
	_Atomic uint64_t allowance;
	/* Device memory that the worker has allocated for the allowance. */
	_Atomic uint64_t allowance_backing;
	/* Part of the memory in use that the client caches, as the client reports it. */
	_Atomic uint64_t cached;
	_Atomic uint64_t memory_peak; /* maximum of the memory in use (GPD_LEDGER_IN_USE()) */
	_Atomic uint64_t gpu_ns;      /* measured kernel time */
};

/* Last event of a session that has been logged, so that the end of a session is logged once: by its
 * worker, or by the supervisor if the worker has exited before. */
enum gpd_ledger_logged {
	GPD_LOGGED_NOTHING,
	GPD_LOGGED_OPEN,
	GPD_LOGGED_CLOSED,
};

/* State of a client's cache of freed memory. */
enum gpd_ledger_cache_state {
	GPD_CACHE_EMPTY,
	GPD_CACHE_FILLED,
	GPD_CACHE_RECALLED, /* the client has been requested to release its cache */
};

/* Type of a query that a worker sends to the supervisor, which reads the parts of all tenants. */
enum gpd_ledger_query_type {
	GPD_LEDGER_RECALL,         /* gpd_ledger_recall() */
	GPD_LEDGER_PENDING_RECALL, /* gpd_ledger_has_pending_recall() */
	GPD_LEDGER_PENDING_FREES,  /* gpd_ledger_has_pending_frees() */
	GPD_LEDGER_CLOSING,        /* gpd_ledger_has_closing() */
	GPD_LEDGER_RECLAIMABLE,    /* gpd_ledger_reclaimable() */
	GPD_LEDGER_HOST,           /* more of the host memory that all sessions share */
	GPD_LEDGER_QUERIES,
};

/* A query: data of GPD_CHANNEL_QUERY. */
struct gpd_ledger_query {
	uint32_t type;      /* enum gpd_ledger_query_type */
	uint32_t serial;    /* number of the query in its process */
	uint32_t of_tenant; /* 1: only sessions of the same tenant */
	int32_t device;     /* GPD_LEDGER_RECLAIMABLE: index of the line */
	/* GPD_LEDGER_PENDING_FREES: time waited so far; GPD_LEDGER_HOST: bytes needed. */
	uint64_t amount;
};

/* Bytes that other sessions would release if a session ran out of memory. of_device: of the
 * device's memory. of_tenant: of the quota of the session's tenant. */
struct gpd_ledger_reclaimable {
	uint64_t of_device, of_tenant;
};

/* Answer to a query, in the part of the session. */
struct gpd_ledger_answer {
	_Atomic uint32_t serial; /* that of the query, written last; a futex */
	uint32_t result;         /* the function's result: 0 or 1 */
	struct gpd_ledger_reclaimable reclaimable;
};

/* Entry of a session. */
struct gpd_ledger_session {
	_Atomic uint64_t id;       /* ID of the session; 0: the entry is free */
	uint32_t tenant;           /* index of its tenant in gpd_ledger.tenants */
	int32_t worker;            /* process ID of the worker */
	_Atomic uint32_t pid;      /* process ID of the client on its machine */
	_Atomic uint64_t machine;  /* hash of the name of the client's machine, as it reports it */
	uint32_t log_budget;       /* index of its log budget (log_budget.h) */
	_Atomic uint32_t priority; /* 0 normal, 1 low, 2 high */
	/* 1: the client has disconnected, and its GPU work still runs. Used by the supervisor
	 * only. */
	uint32_t orphaned;
	/* Limit of its deferred queue in bytes; constant while the session is open. */
	uint64_t deferred_max;
	/* The session's part. enum gpd_ledger_logged. */
	_Atomic uint32_t logged GPD_LEDGER_PART;
	/* Numbers of frees in progress, in two epochs. pending_epoch is the index for new frees;
	 * the other element counts those that began before pending_epoch_ns. */
	_Atomic uint32_t pending_frees[2];
	_Atomic uint32_t pending_epoch;
	_Atomic uint64_t pending_epoch_ns;
	_Atomic uint32_t frees_slow; /* 1: a free once took longer than GPD_FREE_LATE_NS */
	/* 1: the client has disconnected, and all its memory is being freed. */
	_Atomic uint32_t ended;
	_Atomic uint32_t cache_state; /* enum gpd_ledger_cache_state */
	/* Time of the last recall, the request to release the cache. */
	_Atomic uint64_t recalled_ns;
	/* Time since the recall during which the session waited for memory itself and could not
	 * respond. */
	_Atomic uint64_t recall_extension_ns;
	_Atomic uint32_t slow;           /* 1: it once took too long to release its cache */
	_Atomic uint32_t waiting;        /* 1: its executor waits for memory of other sessions */
	struct gpd_ledger_answer answer; /* written by the supervisor */
	_Atomic uint64_t host;           /* host memory charged for handles and printed text */
	_Atomic uint64_t link_ns; /* length of the link slots that it has reserved and waits for */
	struct gpd_ledger_counts counts; /* of this session */
	struct gpd_ledger_line devices[GPD_LEDGER_LINES];
};

/* The shared memory. */
struct gpd_ledger {
	/* Random number that identifies this run of the daemon; part of handles that clients
	 * exchange. */
	uint64_t daemon;
	_Atomic uint32_t policies[GPD_LEDGER_DEVICES]; /* enum gpd_policy */
	/* Multiprocessors are assigned in multiples of this number: 2 or 8. */
	_Atomic uint32_t sm_granularity[GPD_LEDGER_DEVICES];
	/* 1: the device is sick (supervisor/tenancy/device_health.h): no context may be created on
	 * it. */
	_Atomic uint32_t sick[GPD_LEDGER_DEVICES];
	/* Total memory of a device, as reported by its workers; 0: not reported yet. */
	_Atomic uint64_t device_memory[GPD_LEDGER_LINES];
	/* Number of entries at the start of `sessions` of which some have been used. */
	_Atomic uint32_t sessions_used;
	_Atomic uint32_t sessions_open; /* number of open sessions */
	_Atomic uint32_t idle_timeout;  /* seconds after which an idle session is ended; 0: never */
	/* Milliseconds after which a silent peer is disconnected; 0: never. */
	_Atomic uint32_t timeout_ms;
	/* Limit of host memory for all sessions together: half of it for deferred queues, half for
	 * handles and printed text. GPD_NO_LIMIT: none. */
	_Atomic uint64_t host_max;
	uint64_t tenant_identities; /* number of identities assigned; used by the supervisor only */
	/* Number of connections that workers rejected for lack of a valid ticket. */
	_Atomic uint64_t lanes_refused;
	struct gpd_log_budget log_budgets[GPD_LOG_BUDGET_OWNERS * GPD_LOG_BUDGETS];
	struct gpd_ledger_tenant tenants[GPD_LEDGER_TENANTS];
	struct gpd_ledger_session sessions[GPD_LEDGER_SESSIONS];
};

/* Creates and maps a ledger with the tenant "default". *fd_p is its descriptor for the workers,
 * close-on-exec, which the caller closes; it allows no writable mapping (a kernel before 5.1 cannot
 * ensure that, and a warning is logged). On failure returns NULL with errno set, and *fd_p is
 * -1. */
struct gpd_ledger *gpd_ledger_create(int *fd_p);
/* Unmaps the ledger, and in the process that has created it closes the files of the tenants.
 * Accepts NULL. */
void gpd_ledger_destroy(struct gpd_ledger *ledger);

/* Worker: maps the ledger for reading, and closes fd also on failure. A process attaches one
 * ledger at a time. send: sends a query of the session with this ID to the
 * supervisor, from any thread, and returns whether it was sent; NULL: queries have the answer that
 * there are no other sessions. Returns NULL with errno set on failure; EINVAL: fd is not a ledger
 * of this program. */
typedef bool gpd_ledger_send_query(uint64_t session, const struct gpd_ledger_query *query);
struct gpd_ledger *gpd_ledger_attach(int fd, gpd_ledger_send_query *send);
/* Worker: maps the parts of the entry and of its tenant for writing. entry: index of a session that
 * gpd_ledger_open() has opened for this worker. fd: from gpd_ledger_share(); closed, also on
 * failure. Returns false with errno set on failure; EINVAL: fd is not a tenant's
 * file. Main thread, before the session's first use of the ledger. */
bool gpd_ledger_attach_session(struct gpd_ledger *ledger, uint32_t entry, int fd);
/* Returns whether this process has attached the ledger. */
bool gpd_ledger_is_attached(const struct gpd_ledger *ledger);
/* Supervisor: returns a descriptor of the file of the session's tenant for the session's worker,
 * close-on-exec, which the caller owns; -1 with errno set on failure. */
int gpd_ledger_share(const struct gpd_ledger *ledger, const struct gpd_ledger_session *session);

/* Supervisor: initializes the entry at this index for a tenant without limits, and gives it a new
 * identity and a new file. The entry must be free or without sessions, as everything in it is
 * overwritten. name: at most GPD_TENANT_NAME_MAX - 1 bytes; it is copied. Returns false with errno
 * set, and changes nothing, if no file can be created. */
bool gpd_ledger_add_tenant(struct gpd_ledger *ledger, uint32_t index, const char *name);

/* Supervisor: answers a query of the session's worker, and wakes the thread that waits for it.
 * Invalid queries get the answer 0. */
void gpd_ledger_answer(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
		       const struct gpd_ledger_query *query);
/* Supervisor: sets the limit of host memory (host_max). */
void gpd_ledger_set_host_max(struct gpd_ledger *ledger, uint64_t bytes);
/* Copies the line of a session of a tenant that has had a session in this process. */
void gpd_ledger_read_line(const struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
			  int device, struct gpd_ledger_line *line);

/* Supervisor: assigns an entry to a session of this tenant, without limits of its own except
 * GPD_CODE_SESSION_MAX; the caller sets the limits and the other members before it requests the
 * worker to open the session. id: not 0 and not used by another session. tenant: index of an entry
 * with a name. worker: process ID. The limit of its deferred queue is GP_DEFERRED_QUEUE_MAX while
 * host memory for it is available, else GPD_DEFERRED_QUEUE_MIN. Returns the entry, or NULL if all
 * are in use. */
struct gpd_ledger_session *gpd_ledger_open(struct gpd_ledger *ledger, uint64_t id, uint32_t tenant,
					   int32_t worker);
/* Returns the session's index in gpd_ledger.sessions, which is the same in all processes. */
uint32_t gpd_ledger_index(const struct gpd_ledger *ledger,
			  const struct gpd_ledger_session *session);
/* Returns the entry of the session with this ID, which is not 0; or NULL if there is none. */
struct gpd_ledger_session *gpd_ledger_find(struct gpd_ledger *ledger, uint64_t id);
/* Writes a summary of the session's activity for the log; it fits into GPD_LEDGER_SUMMARY_MAX
 * bytes. */
#define GPD_LEDGER_SUMMARY_MAX 200
void gpd_ledger_summary(const struct gpd_ledger_session *session, char *text, size_t size);
/* Supervisor: frees the entry of an ended session, which its worker no longer uses. Uncharges
 * everything that is still charged, returns its link time, and adds its counters to the tenant's.
 * After the last session of a tenant the tenant's sums are set to 0. */
void gpd_ledger_close(struct gpd_ledger *ledger, struct gpd_ledger_session *session);
/* Supervisor: closes all sessions of the worker with this process ID, which has exited. */
void gpd_ledger_close_worker(struct gpd_ledger *ledger, int32_t worker);
/* Returns the session after this one (NULL: the first), or NULL at the end. worker: process ID, or
 * GPD_LEDGER_ANY_WORKER. Sessions that are opened or closed during the iteration may be included or
 * not. */
#define GPD_LEDGER_ANY_WORKER (-1)
struct gpd_ledger_session *gpd_ledger_next(const struct gpd_ledger *ledger,
					   const struct gpd_ledger_session *after, int32_t worker);

/*
 * Charges bytes of a device, or of GPD_LEDGER_CODE or GPD_LEDGER_PINNED, to the session and its
 * tenant. Returns true, and gpd_ledger_uncharge() undoes it; or false, without charging anything,
 * if this would exceed the limit of the session or its tenant, or if bytes exceeds the device's
 * total.
 */
bool gpd_ledger_charge(struct gpd_ledger *ledger, struct gpd_ledger_session *session, int device,
		       uint64_t bytes);
/*
 * A worker whose session lacks memory for an allocation (gpd_account_wait(),
 * worker/schedule/account.h) calls gpd_ledger_recall() once, then waits and retries while
 * gpd_ledger_has_pending_recall() or gpd_ledger_has_pending_frees() returns true, and reports its
 * own waiting by gpd_ledger_extend_recall(). The workers of the recalled sessions request their
 * clients to release memory, and call gpd_ledger_set_cached() when the clients have done so. In a
 * worker, functions about other sessions query the supervisor while there are any: they block until
 * it answers, and after a second without an answer return as if there were no other session.
 */

/* Maximum total time that an allocation waits for sessions to release their caches. */
#define GPD_RECALL_NS UINT64_C(5000000000)
/* Time after a slow release or free during which sessions of other tenants do not wait for that
 * tenant. */
#define GPD_SLOW_NS UINT64_C(600000000000)
/* Requests all other sessions with cached memory (of_tenant: only those of the same tenant) to
 * release it, by marking them as GPD_CACHE_RECALLED. Returns whether any session was newly marked;
 * the caller then notifies the workers (GPD_CHANNEL_RECALL). */
bool gpd_ledger_recall(struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
		       bool of_tenant);
/* Returns whether the caller should wait on for a recall: another session (of_tenant: of the same
 * tenant) that was recalled less than GPD_RECALL_NS ago has not released its cache yet. It does not
 * count three kinds of sessions: those that wait for memory themselves, because they release
 * nothing while they wait; those that were slow before; and those of another tenant that has had a
 * slow session within GPD_SLOW_NS, because that tenant could open further sessions. Marks tenants
 * of sessions that are late (GPD_RECALL_LATE_NS) as slow. */
bool gpd_ledger_has_pending_recall(struct gpd_ledger *ledger,
				   const struct gpd_ledger_session *session, bool of_tenant);
/*
 * Stores whether the session's client caches unused memory (cache_state: true if it does). This
 * also ends a recall, because the client has released the recalled memory before it reports. If the
 * release took longer than GPD_RECALL_LATE_NS, the session counts as slow: no allocation waits for
 * it again, and its cached memory no longer counts as available. Other tenants do not wait for its
 * tenant during GPD_SLOW_NS. Time passed to gpd_ledger_extend_recall() is excluded.
 */
#define GPD_RECALL_LATE_NS UINT64_C(1000000000)
void gpd_ledger_set_cached(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
			   bool cache_state);
/* Extends the session's time for the current recall by ns, during which its executor waited for
 * other sessions. */
void gpd_ledger_extend_recall(struct gpd_ledger_session *session, uint64_t ns);
/* Counts a free of the session's memory as in progress. Returns the epoch to pass to
 * gpd_ledger_free_end(). */
uint32_t gpd_ledger_free_begin(struct gpd_ledger_session *session);
/* Ends a free that gpd_ledger_free_begin() has counted, in any thread. */
void gpd_ledger_free_end(struct gpd_ledger_session *session, uint32_t epoch);
/*
 * Returns whether another session (of_tenant: of the same tenant) is freeing memory that an
 * allocation should wait for. waited_ns: time that the allocation has waited so far. A free that
 * takes longer than GPD_FREE_LATE_NS, for example because it follows a kernel that does not end, is
 * ignored and makes its session slow: later allocations wait at most GPD_FREE_SLOW_NS for the
 * session, and during GPD_SLOW_NS allocations of other tenants wait at most that time for all
 * sessions of its tenant.
 */
#define GPD_FREE_LATE_NS UINT64_C(2000000000)
#define GPD_FREE_SLOW_NS UINT64_C(100000000)
bool gpd_ledger_has_pending_frees(struct gpd_ledger *ledger,
				  const struct gpd_ledger_session *session, bool of_tenant,
				  uint64_t waited_ns);
/* Marks the session as closing: its client has disconnected, and all its memory is being freed. May
 * be called repeatedly; gpd_ledger_close() undoes it. */
void gpd_ledger_set_closing(struct gpd_ledger *ledger, struct gpd_ledger_session *session);
/* Returns whether any session other than this one is closing and still has its memory. */
bool gpd_ledger_has_closing(const struct gpd_ledger *ledger,
			    const struct gpd_ledger_session *session);
/* Sets the session's allowance: bytes of `memory` that are charged to it, but that its client does
 * not use yet (worker/memory/allowance.h). allowance_backing: bytes of device memory that the
 * worker has allocated for the allowance, at least as much. */
void gpd_ledger_set_allowance(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
			      int device, uint64_t bytes, uint64_t allowance_backing);
/* Uncharges bytes that were charged by gpd_ledger_charge(), from the session and its tenant. */
void gpd_ledger_uncharge(struct gpd_ledger *ledger, struct gpd_ledger_session *session, int device,
			 uint64_t bytes);
/* Moves a charge of `from` to `to`, another session of the same tenant, whose limit is not
 * checked. */
void gpd_ledger_move_charge(struct gpd_ledger_session *from, struct gpd_ledger_session *to,
			    int device, uint64_t bytes);

/*
 * Charges host memory for handles or printed text to the session. Returns true; or false, without
 * charging anything, if the session would use more than GPD_HOST_MIN and the limit shared by all
 * sessions is exhausted.
 */
bool gpd_ledger_charge_host(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
			    uint64_t bytes);
/* Uncharges bytes that were charged by gpd_ledger_charge_host(). */
void gpd_ledger_uncharge_host(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
			      uint64_t bytes);

/* Quota of a session on a device. */
struct gpd_ledger_headroom {
	/* Total bytes it may use, and bytes that it can still allocate; GPD_NO_LIMIT: no quota. */
	uint64_t max, left;
};
/* Returns, for each member, the smaller value of the session's own quota and its tenant's. cached:
 * bytes that other sessions of the tenant would release (gpd_ledger_reclaimable()), which count as
 * free; 0: count only bytes that are free now. */
struct gpd_ledger_headroom gpd_ledger_headroom(const struct gpd_ledger *ledger,
					       const struct gpd_ledger_session *session, int device,
					       uint64_t cached);

/* Returns the bytes that other sessions would release for this session on the device: caches and
 * allowances of sessions that respond in time. */
struct gpd_ledger_reclaimable gpd_ledger_reclaimable(const struct gpd_ledger *ledger,
						     const struct gpd_ledger_session *session,
						     int device);

/* A session's time slot on its tenant's link: the time that the tenant's bandwidth limit reserves
 * for some bytes. */
struct gpd_ledger_link_slot {
	uint64_t bytes;    /* bytes that may be sent in the slot */
	uint64_t start_ns; /* start of the slot, on the monotonic clock */
	/* Length of the slot, which no other session may use; 0: there is no limit. */
	uint64_t cost_ns;
	uint32_t limit; /* value of link_limit for which the slot was computed */
};

/*
 * Reserves link time under the tenant's bandwidth limit for at most `bytes` bytes, not 0, and
 * returns the slot. now_ns: current time of gp_now_ns(). A slot is short, about
 * GPD_LEDGER_LINK_SLOT_NS, because announced bytes may never arrive; a caller with more bytes
 * reserves another slot after it has sent the bytes of this one. Without a limit the slot covers
 * all bytes, with start_ns and cost_ns 0. Slots of all sessions of a tenant are in the order of
 * reservation. If start_ns is after now_ns, the caller waits until then and calls
 * gpd_ledger_link_release(), unless the session is closed before; otherwise there is nothing to
 * release.
 */
#define GPD_LEDGER_LINK_SLOT_NS UINT64_C(50000000)
struct gpd_ledger_link_slot gpd_ledger_link_acquire(struct gpd_ledger *ledger,
						    struct gpd_ledger_session *session,
						    uint64_t bytes, uint64_t now_ns);
/* Returns whether the bandwidth limit is still the one for which the slot was computed. If it is
 * not, the caller should release the slot and reserve again. */
bool gpd_ledger_link_is_current(const struct gpd_ledger *ledger,
				const struct gpd_ledger_session *session,
				const struct gpd_ledger_link_slot *slot);
/* Ends the wait for a slot whose start_ns was after the time of its reservation. If now_ns is
 * before start_ns and the slot is current, its time is returned to the tenant, and the caller must
 * not use the slot. */
void gpd_ledger_link_release(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
			     const struct gpd_ledger_link_slot *slot, uint64_t now_ns);

/* Charges bytes that are sent at now_ns without a slot; slots reserved later start later. */
void gpd_ledger_link_charge(struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
			    uint64_t bytes, uint64_t now_ns);

/* Supervisor: sets the bandwidth limit (GPD_NO_LIMIT or 0: none). If it differs, the link is free
 * at once, and slots reserved under the previous limit are no longer current. */
void gpd_ledger_set_bandwidth(struct gpd_ledger_tenant *tenant, uint64_t bytes_per_second);

/* Bytes in use: charged, without the allowance. line: a struct gpd_ledger_tenant_line or
 * gpd_ledger_line. */
#define GPD_LEDGER_IN_USE(line)                                                                    \
	gpd_ledger_difference(atomic_load(&(line)->memory), atomic_load(&(line)->allowance))
static inline uint64_t
gpd_ledger_difference(uint64_t memory, uint64_t allowance)
{
	return memory > allowance ? memory - allowance : 0;
}

/* Adds an amount to a counter of struct gpd_ledger_counts or to gpu_ns. */
static inline void
gpd_ledger_count(_Atomic uint64_t *count, uint64_t amount)
{
	(void)atomic_fetch_add_explicit(count, amount, memory_order_relaxed);
}

#endif /* GPD_LEDGER_H */
