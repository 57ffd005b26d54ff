/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/rdma/rdma_lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

struct gp_rdma_lib gp_rdma_lib;

static char problem[160];
static bool loaded;

static void *
open_library(const char *name)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		(void)snprintf(problem, sizeof(problem), "no RDMA here: %s", dlerror());
	return library;
}

static bool
find(void *library, const char *name, void *place_p)
{
	void *place = dlsym(library, name);

	if (!place) {
		(void)snprintf(problem, sizeof(problem), "no RDMA here: %s", dlerror());
		return false;
	}
	*(void **)place_p = place;
	return true;
}

static void
load(void)
{
	void *verbs = open_library("libibverbs.so.1");
	void *cm = verbs ? open_library("librdmacm.so.1") : NULL;
	bool all = cm != NULL;

	if (!all)
		return;
#define FIND_VERBS(name) all = all && find(verbs, #name, &gp_rdma_lib.name);
#define FIND_CM(name) all = all && find(cm, #name, &gp_rdma_lib.name);
	GP_RDMA_VERBS(FIND_VERBS)
	GP_RDMA_CM(FIND_CM)
	if (all)
		*(void **)&gp_rdma_lib.ibv_reg_dmabuf_mr = dlsym(verbs, "ibv_reg_dmabuf_mr");
	/* A child of a fork must not take registered pages away from its parent. */
	if (all)
		(void)gp_rdma_lib.ibv_fork_init();
	loaded = all;
}

int
gp_rdma_lib_load(char *detail, size_t size)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, load);
	if (loaded)
		return 0;
	(void)snprintf(detail, size, "%s", problem);
	return -EOPNOTSUPP;
}
