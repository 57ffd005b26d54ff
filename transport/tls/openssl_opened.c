/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every function of openssl_calls.h as a jump through a place in memory, which gp_openssl_open()
 * fills.  Until then, and without OpenSSL, each of them does nothing and returns 0: who has not
 * opened it frees what is NULL at most.
 */
#include "transport/tls/openssl.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define SSL "libssl.so.3"
#define CRYPTO "libcrypto.so.3"

static long
nothing(void)
{
	return 0;
}

/* The names are the assembler's only, so no header of OpenSSL can contradict them. */
#define CALL(name)                                                                                 \
	extern void *gp_openssl_place_##name __attribute__((visibility("hidden")));                \
	void *gp_openssl_place_##name = (void *)nothing;                                           \
	JUMP(#name, "gp_openssl_place_" #name)

#if defined(__x86_64__)
#define JUMP(name, place)                                                                          \
	__asm__(".text\n.globl " name "\n.hidden " name "\n.type " name ",@function\n" name        \
		":\n\tendbr64\n\tjmp *" place "(%rip)\n.size " name ",.-" name "\n");
#elif defined(__aarch64__)
#define JUMP(name, place)                                                                          \
	__asm__(".text\n.globl " name "\n.hidden " name "\n.type " name                            \
		",@function\n.balign 4\n" name ":\n\thint 34\n\tadrp x16, " place                  \
		"\n\tldr x16, [x16, :lo12:" place "]\n\tbr x16\n.size " name ",.-" name "\n");
#else
#error "the way to OpenSSL is written for x86-64 and aarch64"
#endif

#include "transport/tls/openssl_calls.h"
#undef CALL

static const struct {
	const char *name;
	void **place;
} calls[] = {
#define CALL(name) { #name, &gp_openssl_place_##name },
#include "transport/tls/openssl_calls.h"
#undef CALL
};

static char problem[320];
static bool opened;

static void *
open_beside(const char *name)
{
	char path[PATH_MAX];
	const char *slash;
	Dl_info info;

	if (!dladdr(calls, &info) || !(slash = strrchr(info.dli_fname, '/')) ||
	    snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname,
		     name) >= (int)sizeof(path))
		return NULL;
	return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

/* The machine's; else one that lies beside this library. */
static void *
open_library(void)
{
	void *library = dlopen(SSL, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (library)
		return library;
	(void)snprintf(problem, sizeof(problem),
		       "TLS needs OpenSSL 3 (%s): install it (Debian: libssl3), or put " SSL
		       " and " CRYPTO " beside gpupool's libcuda.so.1",
		       dlerror());
	/* libssl finds libcrypto if that is there already. */
	return open_beside(CRYPTO) ? open_beside(SSL) : NULL;
}

static void
open_once(void)
{
	const size_t count = sizeof(calls) / sizeof(calls[0]);
	void *library = open_library(), *found[sizeof(calls) / sizeof(calls[0])];

	if (!library)
		return;
	/* libcrypto's, too: it is searched with what needs it. */
	for (size_t i = 0; i < count; i++) {
		found[i] = dlsym(library, calls[i].name);
		if (!found[i]) {
			(void)snprintf(
				problem, sizeof(problem),
				"this machine's OpenSSL is not complete: there is no %s in it",
				calls[i].name);
			return;
		}
	}
	for (size_t i = 0; i < count; i++)
		*calls[i].place = found[i];
	opened = true;
}

bool
gp_openssl_open(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, open_once);
	return opened;
}

const char *
gp_openssl_problem(void)
{
	return problem;
}
