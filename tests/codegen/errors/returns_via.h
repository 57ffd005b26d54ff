GP_LOCAL(CLIENT_OBJECT(active), RETURNS(CUDA_SUCCESS), VIA(gpSample))
CUresult cuProfilerStart(void);

GP_MESSAGE(0x7001, POST, SERVER_HOOK)
void gpSample(
        int number);
