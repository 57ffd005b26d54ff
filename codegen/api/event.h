/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: events. The words are defined in vocabulary.h; codegen/README.md explains how to
 * add a call. */

GP_CALL(0x0411, POST, CLIENT_HOOK, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT, QUICK)
CUresult cuEventCreate(
        OUT NEW CUevent *phEvent,
        unsigned int Flags);

GP_CALL(0x0412, POST, CLIENT_HOOK, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT, CAPTURE(node))
CUresult cuEventRecordWithFlags(
        CUevent hEvent,
        CUstream hStream,
        unsigned int flags);

GP_LOCAL(FORWARD(cuEventRecordWithFlags, hEvent, hStream, CU_EVENT_RECORD_DEFAULT), VIA(cuEventRecordWithFlags), CAPTURE(node), QUICK)
CUresult cuEventRecord(
        CUevent hEvent,
        CUstream hStream);

GP_CALL(0x0413, WAIT, CLIENT_HOOK, SERVER_HOOK, QUERY, NO_DTOH_WAIT, CAPTURE(node), QUICK)
CUresult cuEventQuery(
        CUevent hEvent);

GP_CALL(0x0414, WAIT, CLIENT_HOOK, SERVER_HOOK, NO_DTOH_WAIT, CAPTURE(node), QUICK)
CUresult cuEventSynchronize(
        CUevent hEvent);

GP_CALL(0x0415, POST, CLIENT_HOOK, SERVER_HOOK, ALIAS(cuEventDestroy), QUICK)
CUresult cuEventDestroy_v2(
        DROP CUevent hEvent);

GP_CALL(0x0416, WAIT, CLIENT_HOOK, ALIAS(cuEventElapsedTime), QUERY, NO_DTOH_WAIT, QUICK)
CUresult cuEventElapsedTime_v2(
        OUT float *pMilliseconds,
        CUevent hStart,
        CUevent hEnd);
