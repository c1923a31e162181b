package transfer

import "time"

// Clock is how far the far end's clock is ahead of this host's. The error is at most MaxError as long as neither clock
// is set.
type Clock struct{ Offset, MaxError time.Duration }
