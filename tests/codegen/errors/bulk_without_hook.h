GP_MESSAGE(0x1, POST, BULK_IN)
void gpFoo(int value);
