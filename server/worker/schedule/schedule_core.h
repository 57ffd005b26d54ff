/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turn order: decides which session may use a device next. Pure arithmetic; the caller provides the
 * clock.
 *
 * A *run* is a session on the device; runs belong to tenants. One run at a time is the *holder* of
 * the turn. Tenants are served in the order of their GPU time divided by weight, the runs of a
 * tenant in the order of their GPU time; a higher rank goes first. A tenant with a cap is served
 * while its time budget lasts, which grows with time.
 *
 * Ownership: the caller owns the runs; tenants are created and freed with their runs.
 * Threads: no locking; the caller serializes all calls.
 * Units: nanoseconds.
 */
#ifndef GPD_SCHEDULE_CORE_H
#define GPD_SCHEDULE_CORE_H

#include <stdbool.h>
#include <stdint.h>

#define GPD_ORDER_UNCAPPED 1000000u
#define GPD_ORDER_NEVER UINT64_MAX
/* GPU time by which a holder may exceed a waiting run before it must yield. */
#define GPD_ORDER_QUANTUM_NS UINT64_C(5000000)
/* Minimum length of a turn if the waiting run has the same rank. */
#define GPD_ORDER_TURN_MIN_NS UINT64_C(1000000)
/* A run that has waited this long for runs of higher rank gets a quantum. */
#define GPD_ORDER_AGE_NS UINT64_C(500000000)

struct gpd_order_tenant {
	struct gpd_order_tenant *next;
	uint32_t id;
	uint32_t runs;
	uint32_t weight;
	uint32_t cap;      /* in millionths of the device's time */
	uint64_t had;      /* GPU time divided by weight */
	uint64_t seen_ns;  /* when one of its runs last requested a turn or was charged */
	int64_t budget;    /* ns, with a cap; may be negative */
	uint64_t grown_ns; /* when the budget last grew */
};

struct gpd_order_run {
	struct gpd_order_run *next;
	struct gpd_order_tenant *tenant;
	uint64_t had; /* GPU time */
	uint64_t since_ns;
	uint64_t seen_ns; /* when it last requested a turn or was charged */
	uint8_t rank;     /* 0 low, 1 normal, 2 high */
	bool wants;       /* waits for its turn; cleared by the caller to give it up */
	bool aged;        /* has the turn because it waited long */
};

struct gpd_order {
	struct gpd_order_tenant *tenants;
	struct gpd_order_run *runs;
	struct gpd_order_run *holder; /* set to NULL by the caller when its turn has ended */
	uint64_t since_ns;            /* start of the holder's turn */
	uint64_t had;                 /* minimum of the active tenants; never decreases */
};

/* Adds a run of the tenant. Returns 0 or -ENOMEM. */
int gpd_order_add(struct gpd_order *order, struct gpd_order_run *run, uint32_t tenant,
		  uint64_t now);
/* If the run is the holder, there is none afterwards. */
void gpd_order_remove(struct gpd_order *order, struct gpd_order_run *run);

/* Sets weight and cap. cap: at least 1; GPD_ORDER_UNCAPPED: none. */
void gpd_order_set_policy(struct gpd_order_tenant *tenant, uint32_t weight, uint32_t cap,
			  uint64_t now);

/* Requests a turn for the run. */
void gpd_order_want(struct gpd_order *order, struct gpd_order_run *run, uint64_t now);

/* Charges GPU time to the run and its tenant. */
void gpd_order_charge(struct gpd_order *order, struct gpd_order_run *run, uint64_t ns,
		      uint64_t now);

/*
 * Makes a waiting run the holder if there is none, and returns it. NULL: no run may start now;
 * *when_p is the time of the next attempt, GPD_ORDER_NEVER if no run waits.
 */
struct gpd_order_run *gpd_order_pick(struct gpd_order *order, uint64_t now, uint64_t *when_p);

/* Whether the holder, whose enqueued work still takes `pending` ns, must not enqueue more. */
bool gpd_order_must_end(struct gpd_order *order, uint64_t pending, uint64_t now);
/* Whether a run other than the holder waits. */
bool gpd_order_others_wait(const struct gpd_order *order);
/* The same, or the holder has a cap. */
bool gpd_order_is_contended(const struct gpd_order *order);

#endif /* GPD_SCHEDULE_CORE_H */
