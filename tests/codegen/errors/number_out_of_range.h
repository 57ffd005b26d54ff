GP_CALL(0xff00, WAIT)
CUresult cuInit(unsigned int Flags);
