GP_MESSAGE(0x1, POST, SERVER_HOOK)
void gpFoo(
        IN_BYTES(size) const void *a,
        IN_BYTES(size) const void *b,
        size_t size);
