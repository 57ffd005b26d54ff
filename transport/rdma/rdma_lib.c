/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/rdma/rdma_lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

struct gp_rdma_lib gp_rdma_lib;

static char error_text[160];
static bool is_loaded;

static void *
library_open(const char *name)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		(void)snprintf(error_text, sizeof(error_text), "RDMA is not available: %s",
			       dlerror());
	return library;
}

static bool
symbol_load(void *library, const char *name, void *place_p)
{
	void *place = dlsym(library, name);

	if (!place) {
		(void)snprintf(error_text, sizeof(error_text), "RDMA is not available: %s",
			       dlerror());
		return false;
	}
	*(void **)place_p = place;
	return true;
}

static void
library_load(void)
{
	void *verbs = library_open("libibverbs.so.1");
	void *cm = verbs ? library_open("librdmacm.so.1") : NULL;
	bool all = cm != NULL;

	if (!all)
		return;
#define FIND_VERBS(name) all = all && symbol_load(verbs, #name, &gp_rdma_lib.name);
#define FIND_CM(name) all = all && symbol_load(cm, #name, &gp_rdma_lib.name);
	GP_RDMA_VERBS(FIND_VERBS)
	GP_RDMA_CM(FIND_CM)
	if (all)
		*(void **)&gp_rdma_lib.ibv_reg_dmabuf_mr = dlsym(verbs, "ibv_reg_dmabuf_mr");
	/* Prevents a forked child from taking registered pages from its parent by copy-on-write. */
	if (all)
		(void)gp_rdma_lib.ibv_fork_init();
	is_loaded = all;
}

int
gp_rdma_lib_load(char *detail, size_t size)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, library_load);
	if (is_loaded)
		return 0;
	(void)snprintf(detail, size, "%s", error_text);
	return -EOPNOTSUPP;
}
