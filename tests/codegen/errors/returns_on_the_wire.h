GP_CALL(0x7001, WAIT, RETURNS(CUDA_SUCCESS))
CUresult cuProfilerStart(void);
