/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch threads: threads that pass one session's kernel launches to the driver.
 *
 * The driver takes 3 us for a launch, the executor's own part takes a thirtieth of that, and the
 * driver accepts launches on different streams concurrently. If a program with several streams
 * sends its calls faster than one thread can launch, several threads therefore give two to three
 * times the throughput. The executor does everything except the driver's call, which it hands over
 * to the stream's launcher: a queue with a thread. Only launches and the markers of stream_depth.h
 * between a stream's launches are handed over.
 *
 * Order: a stream has one launcher. The executor calls gpd_issue_settle() before any other driver
 * call about a stream, and before it destroys an object that a queued launch uses: the driver's
 * handles and the kernel's name.
 *
 * Ownership: struct gpd_issue is part of a session. The threads are started on first use and owned
 * by it until gpd_issue_stop().
 * Threads: the session's executor calls all functions; a launcher's thread calls failed().
 * gpd_issue_settle(), gpd_issue_barrier(), gpd_issue_stop(), gpd_issue_message() of a message that
 * is not deep, and, while a queue is full, gpd_issue_launch() and gpd_issue_write() wait for
 * launchers.
 * Errors: a launcher's thread reports a failed launch by failed().
 *
 * Sequence of calls: gpd_issue_message() for each message; for each of its launches
 * gpd_issue_wants() and, if it returns true, gpd_issue_launch(); gpd_issue_barrier() before each
 * other record; gpd_issue_stop() at the session's end.
 */
#ifndef GPD_ISSUE_H
#define GPD_ISSUE_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum number of launchers of a session. */
#define GPD_LAUNCHERS 8
/* Maximum total bytes of the attributes and parameters of a launch that can be handed over. */
#define GPD_ISSUE_ROOM 384

/* Minimum size in bytes of a message (records that arrive together) whose launches may be handed
 * over. A message of this size has about forty launches. */
#define GPD_ISSUE_DEEP ((size_t)4 << 10)

/* A queue of launches with a thread. */
struct gpd_launcher;

/* A launch with all data that the driver's call needs. */
struct gpd_issue_launch {
	int device; /* CUDA device ordinal of the daemon; the launcher makes its context current */
	CUfunction function;
	/* Configuration with the driver's stream. Its attributes, an array, must be valid during
	 * gpd_issue_launch(). */
	CUlaunchConfig config;
	/* Kernel parameters in the packed format, valid during gpd_issue_launch(). */
	const void *params;
	size_t params_size; /* in bytes; 0: no parameters */
	/* The kernel's name for the report of a failure; must stay valid until the launch is
	 * settled. */
	const char *kernel;
	/* Maximum bytes of dynamic shared memory of the kernel, for the report of a failure. */
	int dynamic;
};

/* State of a session's launch threads. If all members are zero, the executor launches everything
 * itself. */
struct gpd_issue {
	/* Set when the session is created. */

	/* Reports a failed launch (gpd_launch_failed(), module/launch.h). A launcher's thread calls
	 * it; several may do so at once. launch is valid during the call. */
	void (*failed)(struct gpd_issue *issue, const struct gpd_issue_launch *launch,
		       CUresult result);
	/* the session is ending; its sticky error, a CUresult. Queued launches are dropped while
	 * one of them is nonzero. */
	const _Atomic bool *closing;
	const _Atomic int *sticky;
	/* Maximum number of launch threads in the process, of all sessions, from gpd_issue_most();
	 * 0: no launch is handed over. Also set to 0 by gpd_issue_stop(). */
	unsigned int most;

	/* Internal state, executor only, initialized to zeros. */

	bool pending; /* launches or writes were handed over since the last gpd_issue_settle() */
	bool deep;    /* launches of the current message may be handed over */
	const void *last; /* stream of the last launch in the current message; NULL: none */
	uint32_t run;     /* number of launches handed over since the last barrier */
	uint32_t wait; /* number of launches that the executor makes itself before threads are tried
			  again */
	uint64_t handed; /* total number of launches handed over */
	/* Number of launchers started, and a counter that assigns them to streams in turn. */
	unsigned int begun, next;
	struct gpd_launcher *launchers[GPD_LAUNCHERS]; /* the first `begun` are valid */
};

/* Parses the limit on launch threads per process of the daemon's environment (GPUPOOL_LAUNCHERS).
 * Returns true with *most_p set, to at most 64; true with *most_p unchanged if text is NULL or "";
 * or false, with *most_p undefined, if text is not a number. */
bool gpd_issue_parse(const char *text, unsigned int *most_p);
/* Returns the maximum number of launch threads of the process: the limit in text, or a quarter of
 * the number of processors if text is NULL, "" or does not begin with a digit. Returns 0 (no
 * threads) instead of 1, because a single thread would not be faster than the executor. The daemon
 * has checked text with gpd_issue_parse() when it started. */
unsigned int gpd_issue_most(int cpus, const char *text);

/* Slow paths of the inline functions below. */
void gpd_issue_settle_pending(struct gpd_issue *issue);
void gpd_issue_barrier_pending(struct gpd_issue *issue);
bool gpd_issue_begins(struct gpd_issue *issue);

/* Waits until everything handed over has been passed to the driver or dropped; does not wait for
 * the GPU. */
static inline void
gpd_issue_settle(struct gpd_issue *issue)
{
	if (__builtin_expect(issue->pending, 0))
		gpd_issue_settle_pending(issue);
}

/* Settles as gpd_issue_settle(). Called before each record that is not a launch: if few launches
 * were handed over since the last such record, threads are not worthwhile, and the executor makes
 * the next launches itself. */
static inline void
gpd_issue_barrier(struct gpd_issue *issue)
{
	if (__builtin_expect(issue->pending, 0))
		gpd_issue_barrier_pending(issue);
}

/* Starts a message. deep: its launches may be handed over, because it has at least GPD_ISSUE_DEEP
 * bytes. The executor makes the launches of other messages itself, and settles before them. */
static inline void
gpd_issue_message(struct gpd_issue *issue, bool deep)
{
	issue->deep = deep && issue->most;
	issue->last = NULL;
	if (!issue->deep)
		gpd_issue_settle(issue);
}

/* Called once for each launch that the client does not wait for: returns whether the caller should
 * hand it over by gpd_issue_launch(). A caller that does not follow a result of true must call
 * gpd_issue_settle() before it launches. stream: identifies the launch's stream, not NULL; only
 * compared. */
static inline bool
gpd_issue_wants(struct gpd_issue *issue, const void *stream)
{
	const void *last = issue->last;

	issue->last = stream;
	return __builtin_expect(issue->pending || (last != stream && issue->deep && last), 0) &&
	       (issue->pending || gpd_issue_begins(issue));
}

/* Hands over a copy of the launch; waits while the launcher's queue is full. *launcher: number of
 * the stream's launcher, from 1; the caller stores it with the stream and initializes it to 0, and
 * the first call sets it. Returns true; or false if the launch is larger than GPD_ISSUE_ROOM or no
 * thread is available: everything is then settled, and the caller launches it itself.
 * The launch is dropped without a report if *closing or *sticky becomes nonzero first. */
bool gpd_issue_launch(struct gpd_issue *issue, uint8_t *launcher,
		      const struct gpd_issue_launch *launch);
/* Hands over a stream memory write of the value to the 32-bit word at device address `to`, to be
 * issued by the stream's launcher after the launches that were handed over to it. launcher: the
 * stream's, not 0. host: host address of the word; if the write is dropped or fails, the launcher's
 * thread stores the value there, so that waits for it end. Waits while the launcher's queue is
 * full. Called only while issue->pending is true. */
void gpd_issue_write(struct gpd_issue *issue, uint8_t launcher, int device, CUstream stream,
		     CUdeviceptr to, volatile uint32_t *host, uint32_t value);

/* Settles, and ends and joins the threads; afterwards the executor launches everything itself. */
void gpd_issue_stop(struct gpd_issue *issue);

#endif /* GPD_ISSUE_H */
