//go:build linux

package harness

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
)

// Programs that speak HTTP/2 without TLS: a server that gives its clients a window of
// HTTP2WindowVariable bytes for each stream, and a client that posts http2Bytes to it.
const (
	HTTP2WindowVariable = "FULLPIPE_E2E_WINDOW"
	http2Port           = "8081"
	http2Bytes          = 24 << 20
)

// http2ServerProgram serves HTTP/2 without TLS and discards what is posted.
func http2ServerProgram() error {
	window, err := strconv.Atoi(os.Getenv(HTTP2WindowVariable))
	if err != nil {
		return err
	}
	var plain http.Protocols
	plain.SetUnencryptedHTTP2(true)
	server := http.Server{Addr: ":" + http2Port, Protocols: &plain,
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: window, MaxReceiveBufferPerConnection: 64 << 20},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
		})}
	return server.ListenAndServe()
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// http2ClientProgram posts http2Bytes to the server.
func http2ClientProgram() error {
	var plain http.Protocols
	plain.SetUnencryptedHTTP2(true)
	client := http.Client{Transport: &http.Transport{Protocols: &plain}}
	r, err := client.Post("http://"+os.Getenv(LineAddressVariable)+":"+http2Port, "application/octet-stream",
		io.LimitReader(zeroes{}, http2Bytes))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.ProtoMajor != 2 {
		return errors.New(r.Proto)
	}
	return nil
}
