GP_CALL(0x7001, WAIT, SIGNAL_SAFE)
CUresult cuProfilerStart(void);
