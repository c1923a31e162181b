package probe

// Linux supports every field of transfer.Socket.
const systemOptions = true
