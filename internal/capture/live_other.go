//go:build !linux

package capture

import "context"

func listen(context.Context, string) (*File, error) { return nil, ErrNotSupported }
