GP_LOCAL(OF(active), ANSWERS(CUDA_SUCCESS), VIA(gpSample))
CUresult cuProfilerStart(void);

GP_MESSAGE(0x7001, POST, SERVER_HOOK)
void gpSample(
        int number);
