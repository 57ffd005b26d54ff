GP_LOCAL()
void cuInit(unsigned int Flags);
