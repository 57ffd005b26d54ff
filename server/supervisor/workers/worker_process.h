/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker process, as seen by the supervisor.
 *
 * A shared worker runs the sessions of a worker group (tenants.h): of all tenants of class
 * "shared", or of one tenant. A dedicated worker runs one session and exits after it. A spare
 * worker has started in advance and becomes one of these. Orphaned work is GPU work of clients that
 * have disconnected.
 *
 * Ownership: the admission's list of workers contains all of them; worker_pool.c starts and
 * destroys them.
 * Threads: the supervisor's main thread.
 * Units: times are milliseconds of gp_now_ms().
 */
#ifndef GPD_WORKER_PROCESS_H
#define GPD_WORKER_PROCESS_H

#include "protocol/control.h"
#include "server/common/base/device_list.h"
#include "server/common/ledger/channel.h"
#include "server/common/ledger/ledger.h"
#include "server/supervisor/workers/heartbeat.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

struct gpd_client_address;

/* Size in bytes of gpd_worker_process.reason. */
#define GPD_WORKER_REASON_MAX 128
/* Maximum number of workers: every worker has a session, except for one of each tenant and a few
 * that are starting, spare or about to exit. */
#define GPD_WORKERS_MAX (GPD_LEDGER_SESSIONS + GPD_LEDGER_TENANTS + 64)

/*
 * State of a worker. In any state a worker may lose its GPU contexts (LOST), exit or be killed
 * (ENDING). It is removed when the process has been reaped.
 */
enum gpd_worker_process_state {
	/* Initial state: the process has been started. Left when the worker reports that it is
	 * ready or why it failed. It runs no session and can only be stopped; a dedicated one has a
	 * session slot already. */
	GPD_WORKER_STARTING,
	/* Shared. Entered when the worker is ready, and again when orphaned work has ended. Left
	 * when the worker reports orphaned work, or is requested to retire. It can get new
	 * sessions. */
	GPD_WORKER_SERVING,
	/* Shared. Entered when the worker reports orphaned work; left when the work ends, takes too
	 * long, or the worker is requested to retire. New sessions wait or get another worker;
	 * existing ones continue. */
	GPD_WORKER_BUSY,
	/* Shared. Entered when orphaned work has run for too long. Left when the work ends, when
	 * the worker is requested to retire, or when the worker is killed because too many workers
	 * are in this state and this one is the oldest of them. New sessions get another worker. */
	GPD_WORKER_WEDGED,
	/* Spare. Entered when the worker is ready; left when a tenant or a session of class
	 * "session" uses it, or it is retired. It has no session. */
	GPD_WORKER_SPARE,
	/* Shared or spare. Entered when the worker is requested to retire. It gets no new sessions
	 * and exits after its last one. */
	GPD_WORKER_RETIRED,
	/* Dedicated. Entered when the worker, started for the session or spare, is requested to
	 * open it and to retire afterwards; left when the client disconnects. It exits after the
	 * session. */
	GPD_WORKER_DEDICATED,
	/* Dedicated. Entered when the client has disconnected, possibly before the worker was
	 * ready; left when the worker exits. Its session slot becomes free when the process has
	 * exited. */
	GPD_WORKER_ABANDONED,
	/* Entered when the worker reports that it has lost its GPU contexts. Its sessions are over.
	 * The worker and the supervisor notify their clients; the worker exits, or is killed after
	 * 1.5 s. */
	GPD_WORKER_LOST,
	/* Entered when the worker has failed to start, was requested to stop, was killed, or has
	 * exited. It gets no new sessions. */
	GPD_WORKER_ENDING,
	GPD_WORKER_STATES,
};

/* A worker. */
struct gpd_worker_process {
	struct gpd_worker_process *next;
	struct gpd_worker_process *next_child; /* list of worker_process.c */
	pid_t pid;
	struct gpd_channel channel;          /* the supervisor's end */
	enum gpd_worker_process_state state; /* changed by gpd_worker_process_set_state() only */
	int64_t started_ms;                  /* time of its start */
	int64_t state_ms;                    /* time of the last change of state; 0: none yet */
	/* Time at which the process is killed; INT64_MAX: never; set by worker_pool.c. */
	int64_t deadline_ms;
	/* The part of Welcome (protocol/control.proto) that is common to all sessions, owned; NULL
	 * until the worker is ready. */
	Gpupool__Welcome *facts;
	/* Dedicated: reference to the address of its client, released when the worker is destroyed.
	 * NULL: shared or spare. */
	struct gpd_client_address *client_address;
	/* Shared: its worker group (tenants.h), whose sessions it runs. Dedicated: that of the
	 * session's tenant. */
	uint32_t group;
	/* Name of the group's tenant; "": GPD_GROUP_SHARED. */
	char tenant[GPD_TENANT_NAME_MAX];
	uint64_t memory_max; /* limit of its control group (worker_cgroup.h) */
	int64_t unused_ms;   /* since when it has had no session; 0: it has one */
	int connections;     /* as started */
	bool spare;          /* started as a spare, and not assigned to a session since */
	int orphaned;        /* number of disconnected sessions whose GPU work still runs */
	/* Why the worker's sessions end when it exits; "": the worker reports the reason itself. */
	char reason[GPD_WORKER_REASON_MAX];
	struct gpd_heartbeat heartbeat; /* whether its main thread responds */
	uint32_t devices;               /* bit n: its sessions may use device n */
	/* Bit n: it has a context on device n, is creating one, or will when it starts. */
	uint32_t contexts;
	/* Bit n: sessions may create a context on device n, whose place (tenants.h) it has. */
	uint32_t granted;
	uint32_t wanted;   /* bit n: it has requested a place on device n (GPD_CHANNEL_PLACE) */
	int64_t wanted_ms; /* time of its last request */
	uint32_t refused;  /* bit n: a refused request for device n has been logged */
	uint32_t creating; /* bit n: it is creating a context on device n (GPD_CHANNEL_CONTEXT) */
	/* Device memory that the context on each device takes; 0: there is none, or it is not
	 * known. */
	uint64_t context_bytes[GPD_LEDGER_DEVICES];
	bool channel_closed; /* the worker has closed its end */
	bool recall;         /* it is to get GPD_CHANNEL_RECALL */
	bool killed;         /* its deadline has passed */
	int poll_index;      /* index in the array of gpd_worker_pool_poll(); -1: none */
};

/* Returns whether the worker was started for, or assigned to, a single session. */
static inline bool
gpd_worker_process_is_dedicated(const struct gpd_worker_process *process)
{
	return process->client_address != NULL;
}

/* Returns whether the worker has a place on the device (tenants.h). */
static inline bool
gpd_worker_process_has_place(const struct gpd_worker_process *process, int device)
{
	return (process->contexts | process->granted) & process->devices & UINT32_C(1) << device;
}

/* Returns whether the worker was started for, or assigned to, sessions of this group: the index of
 * a tenant that has no session may be reused for another tenant. */
static inline bool
gpd_worker_process_serves(const struct gpd_worker_process *process, const struct gpd_ledger *ledger,
			  uint32_t group)
{
	return !gpd_worker_process_is_dedicated(process) && !process->spare &&
	       process->group == group &&
	       (group == 0 || strcmp(process->tenant, ledger->tenants[group - 1].name) == 0);
}

/* Sets the state and state_ms. Returns true; or false, without changing anything, if the worker is
 * already in this state or the state cannot follow the current one, because messages of a worker
 * may arrive after its state has changed. */
bool gpd_worker_process_set_state(struct gpd_worker_process *process,
				  enum gpd_worker_process_state state);

/* How a worker is started. */
struct gpd_worker_start {
	bool monitor;       /* the device monitor (server/monitor/monitor.h) instead of a worker */
	const char *driver; /* path of the driver library; NULL: the default */
	bool software;      /* the software device is allowed */
	const char *rdma;   /* the worker's RDMA address as a URL; NULL: no RDMA */
	bool peer_memory;   /* copies over RDMA may access device memory directly (GPUDirect) */
	/* CUDA_DEVICE_MAX_CONNECTIONS of a worker, unless the environment has it; 0: a monitor. */
	int connections;
	const char *syscall_filter; /* value of --syscall-filter; NULL: the default */
	int ledger_fd; /* descriptor of the ledger's memory, which stays the caller's */
	/* The devices that the worker may use, and those on which it creates a context when it
	 * starts; it creates others when a session uses them. */
	struct gpd_device_list devices;
};

/*
 * Starts a worker: a process of this program that uses the supervisor's log level and ledger. Does
 * not wait until the worker is ready. *start may be freed on return.
 *
 * Returns a worker in STARTING, which the caller owns and frees with gpd_worker_process_destroy();
 * or NULL with errno set. The caller reaps the process by waitpid(2) before it frees the worker.
 */
struct gpd_worker_process *gpd_worker_process_start(const struct gpd_worker_start *start);

/* Handles GPD_CHANNEL_CONTEXT: changes contexts, creating and context_bytes. Ignores a message that
 * is not valid. Returns the ordinal of the device; -1: the message is not valid. */
int gpd_worker_process_follow_context(struct gpd_worker_process *process,
				      const struct gpd_channel_message *message);

/* Frees a worker whose process has been reaped, its `facts` and its channel. The caller has removed
 * it from the list and released client_address. */
void gpd_worker_process_destroy(struct gpd_worker_process *process);

/* Returns whether the process may be one that gpd_worker_process_start() has started: it is, or it
 * has ended, so that its ID is not known any more. pid: of the peer of a local socket
 * (SO_PEERCRED); 0: not in this process's PID namespace, so it is none of them. A worker cannot
 * create processes (syscall_filter.h), but has the daemon's user ID: if a client has taken it over,
 * it must not be treated as that user. */
bool gpd_worker_process_is_own(pid_t pid);

/* Writes a description of a status of waitpid() to text, for example "was killed by signal 11
 * (Segmentation fault)". The text is truncated to size bytes and always terminated. */
void gpd_worker_process_explain_exit(int status, char *text, size_t size);

#endif /* GPD_WORKER_PROCESS_H */
