GP_CALL(0x7001, WAIT, ANSWERS(CUDA_SUCCESS))
CUresult cuProfilerStart(void);
