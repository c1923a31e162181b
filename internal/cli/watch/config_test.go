package watch

import (
	"reflect"
	"testing"

	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/watch"
)

// TestFlags_DefaultConfig checks that watch without options follows what the live page of ui follows.
func TestFlags_DefaultConfig(t *testing.T) {
	f := &flags{}
	f.register(pflag.NewFlagSet("watch", pflag.ContinueOnError))
	cfg := f.config(watch.Match{})
	if want := watch.Default(); !reflect.DeepEqual(cfg, want) {
		t.Errorf("watch: %+v, ui: %+v", cfg, want)
	}
}
