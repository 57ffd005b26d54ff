GP_CALL(0x1, LATER)
CUresult cuInit(unsigned int Flags);
