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
#include <unistd.h>

#define SSL "libssl.so.3"
#define CRYPTO "libcrypto.so.3"

static long
stub_return_zero(void)
{
	return 0;
}

/* The names are the assembler's only, so no header of OpenSSL can contradict them. */
#define CALL(name)                                                                                 \
	extern void *gp_openssl_place_##name __attribute__((visibility("hidden")));                \
	void *gp_openssl_place_##name = (void *)stub_return_zero;                                  \
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

static char error_text[320];
static bool is_open;

/* The folder of the library, or of the program, that this is part of. */
static bool
library_get_directory(char *folder, size_t size)
{
	char *slash = NULL;
	Dl_info info;

	if (dladdr(calls, &info) && strchr(info.dli_fname, '/')) {
		if (snprintf(folder, size, "%s", info.dli_fname) < (int)size)
			slash = strrchr(folder, '/');
	} else { /* a program that was found by PATH */
		ssize_t length = readlink("/proc/self/exe", folder, size - 1);

		folder[length > 0 ? length : 0] = '\0';
		slash = strrchr(folder, '/');
	}
	if (slash)
		*slash = '\0';
	return slash;
}

static void *
library_open_bundled(const char *name)
{
	/* Seen from the library, and from gpupool(1). */
	static const char *const places[] = { "openssl", "../lib/gpupool/openssl" };
	char folder[PATH_MAX], path[PATH_MAX + 64];
	void *library = NULL;

	if (!library_get_directory(folder, sizeof(folder)))
		return NULL;
	for (size_t i = 0; !library && i < sizeof(places) / sizeof(places[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s/%s", folder, places[i], name);
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	}
	return library;
}

/*
 * The machine's; else a copy beside this library, in a folder of its own: where this library lies
 * the loader looks for what the program needs, too, and that is to be the machine's.
 */
static void *
library_open(void)
{
	void *library = dlopen(SSL, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (library)
		return library;
	(void)snprintf(error_text, sizeof(error_text),
		       "TLS needs OpenSSL 3 (%s): install it (Debian: libssl3), or put " SSL
		       " and " CRYPTO " into the directory openssl next to gpupool's libcuda.so.1",
		       dlerror());
	/* libssl finds libcrypto if that is there already. */
	return library_open_bundled(CRYPTO) ? library_open_bundled(SSL) : NULL;
}

static void
library_load(void)
{
	const size_t count = sizeof(calls) / sizeof(calls[0]);
	void *library = library_open(), *found[sizeof(calls) / sizeof(calls[0])];

	if (!library)
		return;
	/* libcrypto's, too: it is searched with what needs it. */
	for (size_t i = 0; i < count; i++) {
		found[i] = dlsym(library, calls[i].name);
		if (!found[i]) {
			(void)snprintf(error_text, sizeof(error_text),
				       "incomplete OpenSSL: symbol %s not found", calls[i].name);
			return;
		}
	}
	for (size_t i = 0; i < count; i++)
		*calls[i].place = found[i];
	is_open = true;
}

bool
gp_openssl_open(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, library_load);
	return is_open;
}

const char *
gp_openssl_get_error(void)
{
	return error_text;
}
