/* SPDX-License-Identifier: Apache-2.0 */
/*
 * getaddrinfo(3) within a time, for threads that others wait for: a name server that does not
 * answer is waited for by a thread of its own.  Any thread.
 */
#ifndef GPD_RESOLVE_H
#define GPD_RESOLVE_H

struct addrinfo;

/* As getaddrinfo(); host NULL: as hints say; service NULL or shorter than 32.  EAI_AGAIN: it took
 * longer than so many milliseconds (0: it may take any time). */
int gpd_resolve(const char *host, const char *service, const struct addrinfo *hints,
		unsigned int timeout_ms, struct addrinfo **list_p);

#endif /* GPD_RESOLVE_H */
