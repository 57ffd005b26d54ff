/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may use a device next: arithmetic only, with a clock that the caller brings.
 *
 * A *run* is a session on the device; runs belong to tenants.  One run at a time is the *holder*.
 * Tenants are served in the order of the GPU time they have had per weight, the runs of a tenant in
 * that of the time they have had; a higher rank goes first.  A tenant with a cap is served while
 * its allowance lasts, which grows with time.  Not locked: the caller sees to that.
 */
#ifndef GPD_SCHEDULE_CORE_H
#define GPD_SCHEDULE_CORE_H

#include <stdbool.h>
#include <stdint.h>

#define GPD_ORDER_UNCAPPED 1000000u
#define GPD_ORDER_NEVER UINT64_MAX
/* By how much GPU time a holder gets ahead of one that waits before it has to let go. */
#define GPD_ORDER_QUANTUM_NS UINT64_C(5000000)
/* Not before so long, if the one that waits has the same rank. */
#define GPD_ORDER_TURN_MIN_NS UINT64_C(1000000)
/* Who has waited so long for those of higher rank gets a quantum. */
#define GPD_ORDER_AGE_NS UINT64_C(500000000)

struct gpd_order_tenant {
	struct gpd_order_tenant *next;
	uint32_t id;
	uint32_t runs;
	uint32_t weight;
	uint32_t cap;      /* millionths of the device's time */
	uint64_t had;      /* GPU time per weight */
	uint64_t seen_ns;  /* when one of its runs last came or was charged */
	int64_t budget;    /* ns, with a cap; may be overdrawn */
	uint64_t grown_ns; /* when the allowance was looked at */
};

struct gpd_order_run {
	struct gpd_order_run *next;
	struct gpd_order_tenant *tenant;
	uint64_t had; /* GPU time */
	uint64_t since_ns;
	uint64_t seen_ns; /* when it last came or was charged */
	uint8_t rank;     /* 0 low, 1 normal, 2 high */
	bool wants;       /* waits for its turn; who forgoes it says so here */
	bool aged;        /* holds because it waited long */
};

struct gpd_order {
	struct gpd_order_tenant *tenants;
	struct gpd_order_run *runs;
	struct gpd_order_run *holder; /* who lets go of the turn makes it NULL */
	uint64_t since_ns;            /* of the holder */
	uint64_t had;                 /* the least that an active tenant had; only grows */
};

/* 0 or -ENOMEM. */
int gpd_order_add(struct gpd_order *order, struct gpd_order_run *run, uint32_t tenant,
		  uint64_t now);
/* If it is the holder there is none afterwards. */
void gpd_order_remove(struct gpd_order *order, struct gpd_order_run *run);

/* cap: at least 1; GPD_ORDER_UNCAPPED is none. */
void gpd_order_set_policy(struct gpd_order_tenant *tenant, uint32_t weight, uint32_t cap,
			  uint64_t now);

/* The run waits for its turn. */
void gpd_order_want(struct gpd_order *order, struct gpd_order_run *run, uint64_t now);

/* It has used the device for so long. */
void gpd_order_charge(struct gpd_order *order, struct gpd_order_run *run, uint64_t ns,
		      uint64_t now);

/*
 * Makes one of those that wait the holder, if there is none.  NULL: nobody may go; *when_p is the
 * time to ask again, GPD_ORDER_NEVER if nobody waits.
 */
struct gpd_order_run *gpd_order_pick(struct gpd_order *order, uint64_t now, uint64_t *when_p);

/* Whether the holder, that has given the device work for pending ns, must give it no more. */
bool gpd_order_must_end(struct gpd_order *order, uint64_t pending, uint64_t now);
/* Whether anybody but the holder waits. */
bool gpd_order_others_wait(const struct gpd_order *order);
/* The same, or the holder has a cap. */
bool gpd_order_is_contended(const struct gpd_order *order);

#endif /* GPD_SCHEDULE_CORE_H */
