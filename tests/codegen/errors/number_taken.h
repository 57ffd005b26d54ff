GP_CALL(0x1, WAIT)
CUresult cuInit(unsigned int Flags);

GP_CALL(0x1, WAIT)
CUresult cuFoo(unsigned int Flags);
