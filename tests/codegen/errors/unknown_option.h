GP_CALL(0x1, WAIT, FAST)
CUresult cuInit(unsigned int Flags);
