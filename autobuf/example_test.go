package autobuf_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/fullpipe-net/fullpipe/autobuf"
)

// A backup over a path of 1 Gbit/s and 100 ms. The path is known, so the buffers are set before the handshake.
func ExampleDialer() {
	d := autobuf.Dialer{Config: autobuf.Config{Path: autobuf.Path{Bps: 1e9, RTT: 100 * time.Millisecond}}}
	conn, err := d.Dial("tcp", "backup.example.net:9000")
	if err != nil {
		log.Print(err)
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "hello")
}

// A server with clients on unknown paths. All connections together use at most 1 GiB.
func ExampleListenConfig() {
	lc := autobuf.ListenConfig{Config: autobuf.Config{Budget: autobuf.NewBudget(1 << 30)}}
	l, err := lc.Listen(context.Background(), "tcp", ":9000")
	if err != nil {
		log.Print(err)
		return
	}
	_ = http.Serve(l, http.FileServer(http.Dir("/srv")))
}

// An HTTP client uses the dialer in its transport.
func ExampleDialer_DialContext() {
	d := autobuf.Dialer{Net: net.Dialer{Timeout: 10 * time.Second}}
	client := http.Client{Transport: &http.Transport{DialContext: d.DialContext}}
	resp, err := client.Get("https://example.net/large")
	if err != nil {
		log.Print(err)
		return
	}
	resp.Body.Close()
}

func ExamplePath_Window() {
	fmt.Println(autobuf.Path{Bps: 100e6, RTT: 40 * time.Millisecond}.Window(), "bytes")
	// Output: 625000 bytes
}
