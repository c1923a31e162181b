package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// stepTime limits each step of Reach, which makes three at most.
const stepTime = 4 * time.Second

// smallMSS fits any path.
const smallMSS = 536

// BlackHoleError reports that a hub is reached by small packets only.
type BlackHoleError struct{ URL string }

func (e *BlackHoleError) Error() string {
	return e.URL + ": packets of full size do not arrive, small ones do: an MTU black hole on the path; lower this " +
		"host's MTU (ip link set DEVICE mtu 1280), or let the routers of the path send ICMP or clamp the MSS"
}

// Reach reports why a TLS connection to a hub's URL fails, nil if it does not. It returns within 12 s. It makes
// up to two connections of its own, because the failure of one has several causes.
func Reach(ctx context.Context, text string, config *tls.Config) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" {
		return nil // a NATS server of the user's
	}
	address := u.Host
	if u.Port() == "" {
		address += ":443"
	}
	if config == nil {
		config = PinnedTLS("")
	}
	config = config.Clone()
	config.ServerName = u.Hostname()
	connected, err := handshake(ctx, address, config, 0)
	switch {
	case err == nil:
		return nil
	case !connected && errors.Is(err, os.ErrDeadlineExceeded), !connected && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: no reply within %v: the host is down, or a firewall drops packets to this port", text,
			stepTime)
	case !connected || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%s: %w", text, err)
	}
	if _, err := handshake(ctx, address, config, smallMSS); err == nil {
		return &BlackHoleError{text}
	}
	return fmt.Errorf("%s: it accepts connections and does not begin TLS: another service, or an overloaded hub", text)
}

// handshake makes a connection with an MSS, 0 for the system's, and a TLS handshake on it.
func handshake(ctx context.Context, address string, config *tls.Config, mss int) (connected bool, err error) {
	dialing, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	conn, err := socket.Dial(dialing, address, socket.Options{Socket: transfer.Socket{MSS: mss}})
	if err != nil {
		return false, err
	}
	defer conn.Close()
	securing, end := context.WithTimeout(ctx, stepTime)
	defer end()
	return true, tls.Client(conn, config).HandshakeContext(securing)
}

// ReachAny asks Reach for all URLs at the same time. It returns the URLs that are reached, and why the others are not.
func ReachAny(ctx context.Context, urls []string, config *tls.Config) (reached []string, err error) {
	failed := make([]error, len(urls))
	done := make(chan int)
	for i, text := range urls {
		go func() {
			failed[i] = Reach(ctx, text, config)
			done <- i
		}()
	}
	for range urls {
		<-done
	}
	for i, text := range urls {
		if failed[i] == nil {
			reached = append(reached, text)
		}
	}
	return reached, errors.Join(failed...)
}

// usable reports whether an agent may use a URL that its hub announces.
func usable(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || len(text) > 256 {
		return false
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil && (addr.IsUnspecified() || addr.IsMulticast()) {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "nats" || u.Scheme == "tls"
}
