package probe

import (
	"errors"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestLimits_CheckTrafficClass(t *testing.T) {
	hello := Hello{Limits: DefaultLimits()}
	check := func(near, far int) error {
		return hello.Check(transfer.Spec{Direction: transfer.Up, Time: time.Second, Near: transfer.Socket{TOS: near},
			Far: transfer.Socket{TOS: far}})
	}
	hello.Limits.Options = true
	for _, tos := range []int{0, 4, 46 << 2, 252} {
		if err := check(tos, tos); err != nil {
			t.Errorf("%d: %v", tos, err)
		}
	}
	for _, tos := range []int{-4, 1, 2, 3, 185, 255, 256, 1 << 20} {
		for field, err := range map[string]error{"Near.TOS": check(tos, 0), "Far.TOS": check(0, tos)} {
			var refused *transfer.Unsupported
			if !errors.As(err, &refused) || refused.Field != field {
				t.Errorf("%s %d: %v", field, tos, err)
			}
		}
	}
	hello.Limits.Options = false
	if err := check(0, 4); err == nil {
		t.Error("a far end without options takes a traffic class")
	}
}
