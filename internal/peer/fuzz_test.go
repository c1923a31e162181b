package peer

import (
	"bufio"
	"bytes"
	"strconv"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/probe"
)

// FuzzAwaitReady checks that an ssh far end is ready only with a key and a port.
func FuzzAwaitReady(f *testing.F) {
	f.Add([]byte("Welcome\nfullpipe-arrived\n{\"event\":\"ready\",\"listen\":\"127.0.0.1:5201\",\"key\":\"" +
		probe.NewKey().String() + "\"}\n"))
	f.Add([]byte(`{"error":{"message":"x"}}`))
	f.Add([]byte(`{"event":"ready","listen":"x","key":"y"}`))
	f.Fuzz(func(t *testing.T, said []byte) {
		s := &sshSession{signs: make(chan struct{}, 1)}
		if s.awaitReady(bufio.NewScanner(bytes.NewReader(said))) != nil {
			return
		}
		if _, err := strconv.ParseUint(s.port, 10, 16); err != nil {
			t.Errorf("ready at port %q", s.port)
		}
	})
}
