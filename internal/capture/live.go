package capture

import (
	"context"
	"errors"
)

// ErrNotSupported is the error of Listen on a system without support for captures.
var ErrNotSupported = errors.New("capturing live needs Linux: diagnose a file of tcpdump or Wireshark")

// liveSnaplen is how much is taken of each packet: all headers, next to no payload.
const liveSnaplen = 192

// Listen captures the headers of what passes an interface, or all of them when the name
// is "any", until ctx ends. On Linux it needs CAP_NET_RAW.
func Listen(ctx context.Context, name string) (*File, error) { return listen(ctx, name) }
