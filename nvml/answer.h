/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPN_FUNCTION(name, parameters) { body } defines an implemented function of NVML as gpn_<name>().
 * The exported symbol <name> jumps to it through gpn_entry[] (entry.h).
 * GPN_ALIAS(name, other, parameters) defines a second name of the function gpn_<other>() of the
 * same file.
 *
 * Ownership: as NVML: results are written to memory of the caller.
 * Threads: the functions may be called by any thread.
 * Errors: the functions return enum gpn_result.
 */
#ifndef GPN_ANSWER_H
#define GPN_ANSWER_H

#define GPN_FUNCTION(name, ...)                                                                    \
	int gpn_##name(__VA_ARGS__);                                                               \
	int gpn_##name(__VA_ARGS__)
#define GPN_ALIAS(name, other, ...)                                                                \
	int gpn_##name(__VA_ARGS__) __attribute__((alias("gpn_" #other)))

#endif /* GPN_ANSWER_H */
