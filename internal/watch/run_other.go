//go:build !linux

package watch

import (
	"context"
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/socklist"
)

func run(ctx context.Context, cfg Config, each func(*View) error) error {
	list, err := socklist.Open(socklist.Options{Count: cfg.Count})
	if err != nil {
		return fmt.Errorf("watching connections: %w", err)
	}
	return follow(ctx, cfg, list, socklist.Program, each)
}

// Running reports nothing: processes are not listed here.
func Running(string) (found bool, names []string) { return false, nil }

// SeesNamespaces reports that there are no network namespaces here.
func SeesNamespaces() bool { return false }
