/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: what every tenant and session may use and uses, in memory that the supervisor shares
 * with its workers.
 *
 * The supervisor makes it, gives out its lines and writes what is *allowed*; the worker that has a
 * session writes what is *used*.  A worker that dies leaves its lines as they were: the supervisor
 * closes them.  A tenant's memory counts over all its sessions, whichever worker has them, so the
 * sum is changed by atomic operations only and is never more than allowed.  All fields that two
 * processes touch are atomic; any thread.  A quota that is lowered below what is in use takes
 * nothing away: only new allocations fail.
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
/* The line behind those of the devices: the machine's memory for device code that sessions have
 * loaded, which is taken and given back as a device's memory is. */
#define GPD_LEDGER_CODE GPD_LEDGER_DEVICES
/* And the one behind that: the machine's memory that kernels of sessions reach (host_memory.h). */
#define GPD_LEDGER_PINNED (GPD_LEDGER_DEVICES + 1)
#define GPD_LEDGER_LINES (GPD_LEDGER_DEVICES + 2)
#define GPD_LEDGER_TENANTS 256
#define GPD_LEDGER_SESSIONS 4096
#define GPD_TENANT_NAME_MAX 64
/* The tenant of clients that name none; it always exists. */
#define GPD_TENANT_DEFAULT 0

#define GPD_NO_LIMIT UINT64_MAX

/* What each session may have of the machine's memory in any case, whatever others have: of records
 * behind host functions, and of names and printed text. */
#define GPD_DEFERRED_QUEUE_MIN GP_DEFERRED_QUEUE_MIN
#define GPD_HOST_MIN ((uint64_t)4 << 20)

/* Device code that one session may have loaded. */
#define GPD_CODE_SESSION_MAX ((uint64_t)8 << 30)

/* How a device's time is shared between tenants. */
enum gpd_policy {
	GPD_POLICY_NONE,        /* everybody's work goes to the GPU as it comes */
	GPD_POLICY_BEST_EFFORT, /* by weight; what one does not use the others get */
	GPD_POLICY_EQUAL,       /* equal parts for those that have a session; idle time is lost */
	GPD_POLICY_FIXED,       /* each its time_share; idle time is lost */
};

/* What only grows. */
struct gpd_ledger_counts {
	_Atomic uint64_t launches, copies;
	_Atomic uint64_t copied_in, copied_out; /* bytes from and to the client */
	_Atomic uint64_t refusals;              /* allocations past a quota */
	_Atomic uint64_t waited_ns;             /* launches held back for others */
	_Atomic uint64_t throttled_ns;          /* copies held back by the limit of bandwidth */
};

/* clang-format off */
#define GPD_LEDGER_EACH_COUNT(DO) \
	DO(launches) DO(copies) DO(copied_in) DO(copied_out) DO(refusals) DO(waited_ns) DO(throttled_ns)
/* clang-format on */

/* A tenant on one device. */
struct gpd_ledger_tenant_line {
	_Atomic uint64_t memory_max; /* bytes; GPD_NO_LIMIT: the device's */
	_Atomic uint64_t memory;     /* bytes that its sessions hold */
	_Atomic uint64_t allowance;  /* of it, what their clients have not begun to use */
	_Atomic uint32_t sm_wanted;  /* multiprocessors of all its sessions together; 0: all */
	_Atomic uint32_t weight;     /* of GPU time */
	_Atomic uint32_t limit;      /* per cent of GPU time; 100: none */
	_Atomic uint32_t time_share; /* per cent, for GPD_POLICY_FIXED */
	_Atomic uint64_t gpu_ns;     /* measured time of the kernels of sessions that have ended */
};

struct gpd_ledger_tenant {
	char name[GPD_TENANT_NAME_MAX]; /* "": the line is free */
	uint64_t identity; /* of the tenant: a line that is left is another tenant's later */
	_Atomic uint32_t sessions;
	_Atomic uint32_t priority;      /* 0 normal, 1 low, 2 high */
	_Atomic uint64_t bandwidth_max; /* bytes per second of the link; GPD_NO_LIMIT */
	_Atomic uint64_t link_free_ns;  /* when its next byte may travel, on the monotonic clock */
	_Atomic uint32_t link_limit;    /* counts the limits that it has had */
	_Atomic uint64_t slow_ns;       /* when a session was slow, as below; 0: none was */
	_Atomic uint64_t frees_slow_ns; /* the same, for memory on its way to the driver */
	_Atomic uint64_t sessions_total;
	int64_t isolated_until_ms; /* supervisor: until then new sessions get workers of their own
				    */
	struct gpd_ledger_counts ended; /* of the sessions that have ended */
	struct gpd_ledger_tenant_line devices[GPD_LEDGER_LINES];
};

/* A session on one device. */
struct gpd_ledger_line {
	_Atomic uint32_t allowed;     /* whether the session may use the device at all */
	_Atomic uint64_t memory_max;  /* the session's own cap, below its tenant's; GPD_NO_LIMIT */
	_Atomic uint32_t sm_wanted;   /* multiprocessors; 0: all */
	_Atomic uint32_t sm_assigned; /* the worker's answer; 0: all */
	_Atomic uint64_t memory;
	_Atomic uint64_t allowance;         /* of it, what the client has not begun to use */
	_Atomic uint64_t allowance_backing; /* of the device's memory, for what is granted */
	_Atomic uint64_t cached;      /* of what is in use: the client's word that it keeps it */
	_Atomic uint64_t memory_peak; /* in use */
	_Atomic uint64_t gpu_ns;
};

/* What the log has said of a session. */
enum gpd_ledger_logged {
	GPD_LOGGED_NOTHING,
	GPD_LOGGED_OPEN,
	GPD_LOGGED_CLOSED,
};

/* Whether a session's client has memory that nothing uses. */
enum gpd_ledger_cache_state {
	GPD_CACHE_EMPTY,
	GPD_CACHE_FILLED,
	GPD_CACHE_RECALLED, /* and has been asked for it */
};

struct gpd_ledger_session {
	_Atomic uint64_t id;      /* 0: the line is free */
	uint32_t tenant;          /* index */
	int32_t worker;           /* process that has it */
	_Atomic uint32_t pid;     /* of its client, on the client's machine */
	_Atomic uint64_t machine; /* a hash of that machine's name, as the client says it */
	uint32_t log_budget;      /* index: what the log has room for about it */
	_Atomic uint32_t logged;  /* enum gpd_ledger_logged */
	_Atomic uint32_t priority;
	/* Memory that is on its way back to the driver, how often: what began before
	 * pending_epoch_ns in one place, the rest in the other (pending_epoch). */
	_Atomic uint32_t pending_frees[2];
	_Atomic uint32_t pending_epoch;
	_Atomic uint64_t pending_epoch_ns;
	_Atomic uint32_t frees_slow;  /* 1: some of it once took longer than GPD_FREE_LATE_NS */
	_Atomic uint32_t ended;       /* 1: the client is gone, and all its memory is on its way */
	_Atomic uint32_t cache_state; /* enum gpd_ledger_cache_state */
	_Atomic uint64_t recalled_ns; /* when it was asked last for what it keeps */
	_Atomic uint64_t
		recall_extension_ns; /* since then it could not answer, as it waited itself */
	_Atomic uint32_t slow;       /* 1: it took too long once to give back what it keeps */
	_Atomic uint32_t waiting;    /* 1: for what others keep, and does nothing else meanwhile */
	uint64_t deferred_max;       /* bytes of records behind its host functions */
	_Atomic uint64_t host;       /* bytes of the machine's memory for names and printed text */
	_Atomic uint64_t link_ns;    /* of its tenant's link: what it has asked for and waits for */
	struct gpd_ledger_counts counts;
	struct gpd_ledger_line devices[GPD_LEDGER_LINES];
} __attribute__((aligned(64)));

struct gpd_ledger {
	uint64_t daemon; /* random: this run of the daemon, in handles that clients pass on */
	_Atomic uint32_t policies[GPD_LEDGER_DEVICES]; /* enum gpd_policy */
	/* Multiprocessors are given out in multiples of it: 2 or 8. */
	_Atomic uint32_t sm_granularity[GPD_LEDGER_DEVICES];
	/* Bytes that a device has, as its workers say; 0: none has said so. */
	_Atomic uint64_t device_memory[GPD_LEDGER_LINES];
	_Atomic uint32_t ended;        /* sessions whose line has ended set */
	_Atomic uint32_t idle_timeout; /* of sessions, in seconds; 0: none */
	_Atomic uint32_t timeout_ms;   /* of peers that are silent; 0: without limit */
	/* Bytes of the machine's memory for all sessions: half of them for records behind host
	 * functions, half for names and printed text. */
	_Atomic uint64_t host_max;
	_Atomic uint64_t host; /* of names and text: what sessions have beyond GPD_HOST_MIN */
	struct gpd_ledger_tenant tenants[GPD_LEDGER_TENANTS];
	struct gpd_ledger_session sessions[GPD_LEDGER_SESSIONS];
	struct gpd_log_budget log_budgets[GPD_LOG_BUDGET_OWNERS * GPD_LOG_BUDGETS];
	uint64_t tenant_identities;     /* given out by the supervisor */
	_Atomic uint64_t lanes_refused; /* by workers, to those who have shown no ticket */
};

/* A new one, with the tenant "default", and its descriptor, close-on-exec, for the workers.  NULL:
 * errno says why. */
struct gpd_ledger *gpd_ledger_create(int *fd_p);
/* In a worker: the one behind the descriptor, which is closed.  NULL: errno says why. */
struct gpd_ledger *gpd_ledger_attach(int fd);
void gpd_ledger_destroy(struct gpd_ledger *ledger);

/* Supervisor: a tenant without limits, in this place. */
void gpd_ledger_add_tenant(struct gpd_ledger *ledger, uint32_t index, const char *name);

/* Supervisor: a line for a session of this tenant, without limits of its own; NULL: all are taken.
 * Its records behind host functions may be GP_DEFERRED_QUEUE_MAX as long as there is room for that,
 * then GPD_DEFERRED_QUEUE_MIN. */
struct gpd_ledger_session *gpd_ledger_open(struct gpd_ledger *ledger, uint64_t id, uint32_t tenant,
					   int32_t worker);
/* Its place in the ledger, which is what travels between processes. */
uint32_t gpd_ledger_index(const struct gpd_ledger *ledger,
			  const struct gpd_ledger_session *session);
/* NULL: there is none. */
struct gpd_ledger_session *gpd_ledger_find(struct gpd_ledger *ledger, uint64_t id);
/* What it has done so far, for the log: with this size nothing is cut off. */
#define GPD_LEDGER_SUMMARY_MAX 200
void gpd_ledger_summary(const struct gpd_ledger_session *session, char *text, size_t size);
/* The session has ended, and its memory with it: the tenant gets back what it still held, and
 * keeps its counts. */
void gpd_ledger_close(struct gpd_ledger *ledger, struct gpd_ledger_session *session);
/* The same for all sessions of a worker that is gone. */
void gpd_ledger_close_worker(struct gpd_ledger *ledger, int32_t worker);
/* The one behind this (NULL: the first) among the sessions of a worker, or of all; NULL: no more.
 */
#define GPD_LEDGER_ANY_WORKER (-1)
struct gpd_ledger_session *gpd_ledger_next(const struct gpd_ledger *ledger,
					   const struct gpd_ledger_session *after, int32_t worker);

/*
 * Takes bytes of a device, or of GPD_LEDGER_CODE or GPD_LEDGER_PINNED, for the session: false, and
 * nothing is taken, if that would be more than the session or its tenant may have, or the device
 * has.
 */
bool gpd_ledger_charge(struct gpd_ledger *ledger, struct gpd_ledger_session *session, int device,
		       uint64_t bytes);
/*
 * Asks all other sessions that keep memory for it, or those of the same tenant; whether there are
 * any, which the workers are to be told.  Whether any of them still has time to give back what it
 * was asked for: a client that does not do so costs others no more than GPD_RECALL_NS, an
 * allocation that waits for several of them no more either (account.h).  One that waits for others
 * itself gives nothing back meanwhile, and does not count; neither does one that was slow before,
 * or one of another tenant of which a session was, as that tenant can open further sessions.
 */
#define GPD_RECALL_NS UINT64_C(5000000000)
/* For so long other tenants do not wait for a tenant that was slow. */
#define GPD_SLOW_NS UINT64_C(600000000000)
bool gpd_ledger_recall(struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
		       bool of_tenant);
bool gpd_ledger_has_pending_recall(struct gpd_ledger *ledger,
				   const struct gpd_ledger_session *session, bool of_tenant);
/*
 * The session has given back what it was asked for, and keeps more or nothing.  If it has taken
 * more than GPD_RECALL_LATE_NS, no allocation waits for it again, nor for its tenant during
 * GPD_SLOW_NS, and what it keeps does not count as free: it would cost others that time again and
 * again.  Time in which it waited for
 * others itself is excused, as nobody waited for it then.
 */
#define GPD_RECALL_LATE_NS UINT64_C(1000000000)
void gpd_ledger_set_cached(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
			   bool cache_state);
/* The session's executor has waited for others for so long. */
void gpd_ledger_extend_recall(struct gpd_ledger_session *session, uint64_t ns);
/* Memory of the session is on its way back to the driver, until gpd_ledger_free_end() gets what
 * this returns. */
uint32_t gpd_ledger_free_begin(struct gpd_ledger_session *session);
void gpd_ledger_free_end(struct gpd_ledger_session *session, uint32_t epoch);
/*
 * Whether memory of another session (of_tenant: of the same tenant) is on its way back to the
 * driver, for an allocation that has waited for so long.  What takes longer than GPD_FREE_LATE_NS,
 * such as a free behind a kernel that does not end, is not waited for.  Then the session is waited
 * for no longer than GPD_FREE_SLOW_NS, and so is its tenant during GPD_SLOW_NS.
 */
#define GPD_FREE_LATE_NS UINT64_C(2000000000)
#define GPD_FREE_SLOW_NS UINT64_C(100000000)
bool gpd_ledger_has_pending_frees(struct gpd_ledger *ledger,
				  const struct gpd_ledger_session *session, bool of_tenant,
				  uint64_t waited_ns);
/* The session's client is gone, and all its memory is on its way back to the driver. */
void gpd_ledger_set_closing(struct gpd_ledger *ledger, struct gpd_ledger_session *session);
/* Whether any other session has ended and still has its memory. */
bool gpd_ledger_has_closing(const struct gpd_ledger *ledger,
			    const struct gpd_ledger_session *session);
/* So much of what the session holds its client has not begun to use: credit (grant.h), for which
 * the worker holds at least as much of the device's memory. */
void gpd_ledger_set_allowance(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
			      int device, uint64_t bytes, uint64_t allowance_backing);
void gpd_ledger_uncharge(struct gpd_ledger *ledger, struct gpd_ledger_session *session, int device,
			 uint64_t bytes);
/* Another session of the tenant pays for these bytes from now on, whatever it may have. */
void gpd_ledger_move_charge(struct gpd_ledger_session *from, struct gpd_ledger_session *to,
			    int device, uint64_t bytes);

/*
 * Counts bytes of the machine's memory for names or printed text of the session: false, and nothing
 * is counted, if it has GPD_HOST_MIN and all sessions together have what they may.
 */
bool gpd_ledger_charge_host(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
			    uint64_t bytes);
void gpd_ledger_uncharge_host(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
			      uint64_t bytes);

/* What the session may have in all and can still take, if others of the tenant give back so much of
 * the quota. */
struct gpd_ledger_headroom {
	uint64_t max, left; /* bytes; GPD_NO_LIMIT */
};
struct gpd_ledger_headroom gpd_ledger_headroom(const struct gpd_ledger *ledger,
					       const struct gpd_ledger_session *session, int device,
					       uint64_t cached);

/* What the other sessions would give back if this one ran out of memory: of the device's memory,
 * and of the quota of the tenant. */
struct gpd_ledger_reclaimable {
	uint64_t of_device, of_tenant;
};
struct gpd_ledger_reclaimable gpd_ledger_reclaimable(const struct gpd_ledger *ledger,
						     const struct gpd_ledger_session *session,
						     int device);

/* A session's turn on its tenant's link. */
struct gpd_ledger_link_slot {
	uint64_t bytes;    /* so many may travel */
	uint64_t start_ns; /* from then on, on the monotonic clock */
	uint64_t cost_ns;  /* how long nobody else's may */
	uint32_t limit;    /* which limit says so */
};

/*
 * Asks the limit of bandwidth for at most so many bytes, not 0.  What is given is little (about
 * GPD_LEDGER_LINK_SLOT_NS of the link, without a limit all): bytes that were announced need not
 * come, so who has many asks again when these have travelled.  All sessions of a tenant share the
 * link in the order in which they ask.  start_ns at now_ns or before: at once, there is nothing to
 * end. Else the turn is ended by gpd_ledger_link_release(), or with the session.
 */
#define GPD_LEDGER_LINK_SLOT_NS UINT64_C(50000000)
struct gpd_ledger_link_slot gpd_ledger_link_acquire(struct gpd_ledger *ledger,
						    struct gpd_ledger_session *session,
						    uint64_t bytes, uint64_t now_ns);
/* Whether the limit is still the one that said so; if not, it is worth asking again. */
bool gpd_ledger_link_is_current(const struct gpd_ledger *ledger,
				const struct gpd_ledger_session *session,
				const struct gpd_ledger_link_slot *slot);
/* The session does not wait any more; before start_ns: it gives the turn back. */
void gpd_ledger_link_release(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
			     const struct gpd_ledger_link_slot *slot, uint64_t now_ns);

/* So many bytes travel at now_ns without a turn: all later turns start later. */
void gpd_ledger_link_charge(struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
			    uint64_t bytes, uint64_t now_ns);

/* Another limit; what was asked for under the old one is forgotten. */
void gpd_ledger_set_bandwidth(struct gpd_ledger_tenant *tenant, uint64_t bytes_per_second);

/* What is held and in use: credit can be had back.  Of both kinds of lines. */
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
