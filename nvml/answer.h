/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answered function of NVML: ANSWER(name, parameters) { body }.  Its symbol jumps to it through
 * entry.h.  Any thread; results are enum gpn_result.
 */
#ifndef GPN_ANSWER_H
#define GPN_ANSWER_H

#define GPN_FUNCTION(name, ...)                                                                    \
	int gpn_##name(__VA_ARGS__);                                                               \
	int gpn_##name(__VA_ARGS__)

#endif /* GPN_ANSWER_H */
