/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turn order: decides which session may use a device next. Pure arithmetic; the caller provides the
 * clock.
 *
 * A *run* is a session on the device; runs belong to tenants. One run at a time is the *holder* of
 * the turn. Tenants are served in the order of their GPU time divided by weight, the runs of a
 * tenant in the order of their GPU time; a higher rank is served first, except that a run of lower
 * rank gets a turn after GPD_ORDER_AGE_NS. A tenant with a cap has a budget of GPU time, which
 * grows with time, and is served while the budget lasts.
 *
 * Ownership: the caller owns the order and the runs; tenants are created and freed with their runs.
 * An order of zeros is empty.
 * Threads: no locking; the caller serializes all calls.
 * Units: nanoseconds; now is the time of any monotonic clock.
 */
#ifndef GPD_SCHEDULE_CORE_H
#define GPD_SCHEDULE_CORE_H

#include <stdbool.h>
#include <stdint.h>

/* Value of cap without a limit. */
#define GPD_ORDER_UNCAPPED 1000000u
/* A time that never comes. */
#define GPD_ORDER_NEVER UINT64_MAX
/* GPU time by which a holder may exceed a waiting run before it must yield. */
#define GPD_ORDER_QUANTUM_NS UINT64_C(5000000)
/* Minimum length of a turn if the waiting run has the same rank. */
#define GPD_ORDER_TURN_MIN_NS UINT64_C(1000000)
/* A run that has waited this long for runs of higher rank gets a turn of one quantum
 * (GPD_ORDER_QUANTUM_NS). */
#define GPD_ORDER_AGE_NS UINT64_C(500000000)

/* A tenant with at least one run. */
struct gpd_order_tenant {
	struct gpd_order_tenant *next;
	uint32_t id;     /* from gpd_order_add() */
	uint32_t runs;   /* number of its runs */
	uint32_t weight; /* relative share of GPU time, at least 1; initially 1 */
	/* Maximum share of the device's time, in millionths, at least 1; GPD_ORDER_UNCAPPED, the
	 * initial value: no maximum. */
	uint32_t cap;
	uint64_t had;      /* GPU time divided by weight, plus an offset for a late start */
	uint64_t seen_ns;  /* time at which one of its runs last requested a turn or was charged */
	int64_t budget;    /* with a cap: GPU time that it may still use; may be negative */
	uint64_t grown_ns; /* time up to which the budget has grown */
};

/* A run. */
struct gpd_order_run {
	struct gpd_order_run *next;
	struct gpd_order_tenant *tenant; /* owned by the order */
	uint64_t had;                    /* GPU time, plus an offset for a late start */
	uint64_t since_ns;               /* time of its request for a turn */
	uint64_t seen_ns;                /* time at which it last requested a turn or was charged */
	uint8_t rank; /* 0 low, 1 normal, 2 high; set by the caller, which may change it */
	/* It waits for its turn. The caller may clear it to withdraw the request. */
	bool wants;
	bool aged; /* it has the turn because it waited longer than GPD_ORDER_AGE_NS */
};

/* The runs of a device. */
struct gpd_order {
	struct gpd_order_tenant *tenants;
	struct gpd_order_run *runs;
	/* Run that has the turn; NULL: none. The caller sets NULL when the turn has ended. */
	struct gpd_order_run *holder;
	uint64_t since_ns; /* start of the holder's turn */
	uint64_t had;      /* minimum of tenant->had over the active tenants; never decreases */
};

/* Adds a zeroed run of the tenant with this ID, without a request for a turn; the caller sets
 * run->rank. tenant: chosen by the caller. A tenant without runs is created, with weight 1 and no
 * cap until gpd_order_set_policy(). Returns 0; or -ENOMEM, and the run is not added. */
int gpd_order_add(struct gpd_order *order, struct gpd_order_run *run, uint32_t tenant,
		  uint64_t now);
/* Removes the run, and frees its tenant, with its policy, with the last run. If the run is the
 * holder, there is no holder afterwards. */
void gpd_order_remove(struct gpd_order *order, struct gpd_order_run *run);

/* Sets weight (0 counts as 1) and cap. cap: at least 1; GPD_ORDER_UNCAPPED: none. */
void gpd_order_set_policy(struct gpd_order_tenant *tenant, uint32_t weight, uint32_t cap,
			  uint64_t now);

/* Requests a turn for the run, which is not the holder; gpd_order_pick() grants it. Does nothing if
 * it waits already. */
void gpd_order_want(struct gpd_order *order, struct gpd_order_run *run, uint64_t now);

/* Charges GPU time to the run, which need not be the holder, and its tenant. */
void gpd_order_charge(struct gpd_order *order, struct gpd_order_run *run, uint64_t ns,
		      uint64_t now);

/*
 * Makes a waiting run the holder if there is no holder, and returns it, with a small charge for the
 * turn; its request is then done, and *when_p is undefined. Returns NULL if no run may start now,
 * with *when_p set to the time of the next attempt; GPD_ORDER_NEVER if no run waits. If there is a
 * holder, returns NULL with *when_p GPD_ORDER_NEVER.
 */
struct gpd_order_run *gpd_order_pick(struct gpd_order *order, uint64_t now, uint64_t *when_p);

/* Returns whether the holder, whose enqueued work still takes `pending` ns, must not enqueue more.
 * There must be a holder. */
bool gpd_order_must_end(struct gpd_order *order, uint64_t pending, uint64_t now);
/* Returns whether a run other than the holder waits. */
bool gpd_order_others_wait(const struct gpd_order *order);
/* Returns whether a run other than the holder waits, or the holder's tenant has a cap. */
bool gpd_order_is_contended(const struct gpd_order *order);

#endif /* GPD_SCHEDULE_CORE_H */
