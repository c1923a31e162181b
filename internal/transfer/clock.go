package transfer

import "time"

// Clock is how far the far end's clock is ahead of this host's, wrong by Bound at most as
// long as neither is set.
type Clock struct{ Offset, Bound time.Duration }
