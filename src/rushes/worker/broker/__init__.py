"""Between a slot and its worker: the slot asks for the files of its task, the worker passes file descriptors."""
