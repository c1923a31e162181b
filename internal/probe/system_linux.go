package probe

// systemOptions: this system sets every field of transfer.Socket.
const systemOptions = true
