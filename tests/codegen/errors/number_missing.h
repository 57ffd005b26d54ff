GP_CALL(WAIT)
CUresult cuInit(unsigned int Flags);
