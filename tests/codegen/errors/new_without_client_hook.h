GP_CALL(0x1, POST, SERVER_HOOK, CHARGES_NOTHING)
CUresult cuEventCreate(OUT NEW CUevent *phEvent, unsigned int Flags);
