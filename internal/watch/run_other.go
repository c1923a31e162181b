//go:build !linux

package watch

import (
	"context"
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

func run(context.Context, Config, func(*View) error) error {
	return fmt.Errorf("watching connections (Linux): %w", socket.ErrNotSupported)
}
