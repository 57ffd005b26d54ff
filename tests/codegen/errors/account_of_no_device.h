GP_MESSAGE(0x1, WAIT, SERVER_HOOK, ALLOCATES(size))
void gpFoo(gp_new_address address, size_t size);
